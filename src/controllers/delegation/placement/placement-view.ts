import { type ApiMode, type Placement, placementExcludes } from "../../../api/annotations.ts";
import { jsonEqual } from "../../../api/json.ts";
import { OVERRIDES_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { Override } from "../../../api/overrides.ts";
import { preferencesFor, type SchedulingPreferences } from "../../../api/preferences.ts";
import type { Amounts } from "../../../api/quantity.ts";
import { wishedMembers } from "../../../api/virtual-node-wish.ts";
import type { Candidate, RefusalReason, Rule } from "../../../placement/candidate.ts";
import { inMembers } from "../../../placement/in-member.ts";
import type { RankInput } from "../../../placement/rank.ts";
import { podRequests } from "../../../placement/requests.ts";
import { type HostIdentity, toDelegate } from "../../../pods/delegate.ts";
import { type ApiAccess, apiChoice, type HomeApi, wantedTokens } from "../../../pods/home-api.ts";
import { withoutMerged } from "../../../pods/host-admission.ts";
import { asksHostFirst } from "../../../pods/overflow.ts";
import { type OverriddenSpec, overrideSpec } from "../../../pods/overrides.ts";
import { isBound } from "../../../pods/phase.ts";
import { specForNodesOf } from "../../../pods/virtual-node-terms.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Sharing } from "../../preferences/controller.ts";
import type { Divisions } from "../../preferences/divisions.ts";
import { type Needs, readinessIn, refusalIn } from "../model/needs.ts";
import type { ShapeRefusal, View } from "../model/view.ts";
import type { Groups } from "./groups.ts";
import type { PlacementMember, PlacementMembers } from "./placement-members.ts";
import type { PlacementRules } from "./placement-rules.ts";
import { type Shapes, shapeOf } from "./refused-shapes.ts";

// A member that refuses one more for such a reason keeps what it has: a limit is reached, its nodes are being renewed.
// Without it in the division, all that it has would be too much.
const KEEPING: ReadonlySet<RefusalReason> = new Set(["OverLimit", "NoNodeMatches", "TooLarge"]);

/** What a pod's place depends on. Its functions are for the moment of one observation. */
export interface Eligibility {
  /** False: the pod's namespace is not opted in, as far as is known. Absent: it is. */
  readonly optedIn?: boolean;
  /** Why the placement annotations cannot be read. */
  readonly invalid?: string;
  /** The members that the author names, whether they exist or not. */
  readonly named?: readonly string[];
  /** A member that the division counts on is still being read. */
  readonly settling?: boolean;
  /** Another pod of the group is being placed first. */
  readonly follows?: boolean;
  /** Returns why the author's placement leaves a member out. Such a member never had the pod. */
  readonly excludes: (candidate: Candidate) => string | undefined;
  /** Returns what a member lacks for the pod at present. It may have had the pod all the same. */
  readonly lacks?: (candidate: Candidate) => string | undefined;
  /** Returns what the pod requests in a member. Absent: what its spec says. */
  readonly requestsIn?: (candidate: Candidate) => Amounts;
  /** Returns what else refuses or prefers members, strongest preference first. */
  readonly rules?: () => readonly Rule[];
  /** Returns why a member is not asked for a place that it has just refused to a pod like this one. */
  readonly refusedBefore?: (member: string) => ShapeRefusal | undefined;
}

/** Returns the parts of an eligibility that are plain data. */
export function placementFacts({
  optedIn,
  invalid,
  named,
  settling,
  follows,
}: Eligibility): Pick<View, "optedIn" | "invalid" | "named" | "settling" | "follows"> {
  return {
    ...(optedIn === undefined ? {} : { optedIn }),
    ...(invalid === undefined ? {} : { invalid }),
    ...(named === undefined ? {} : { named }),
    ...(settling === undefined ? {} : { settling }),
    ...(follows === undefined ? {} : { follows }),
  };
}

/** Returns the input of a ranking of these members for a proxy. */
export function rankInput(
  proxy: Stored<Pod>,
  { excludes, lacks, rules, requestsIn }: Eligibility,
  candidates: readonly Candidate[],
  needs?: Needs,
): RankInput {
  const missingIn = (member: string): string | undefined =>
    needs?.state === "there" ? refusalIn(readinessIn(needs, member)) : undefined;
  const selection: Rule = {
    refusal: (candidate) => {
      const message = excludes(candidate) ?? lacks?.(candidate) ?? missingIn(candidate.name);
      return message === undefined ? undefined : { reason: "NotSelected", message };
    },
  };
  const { priority = 0, preemptionPolicy } = proxy.spec ?? {};
  return {
    requests: podRequests(proxy),
    ...(preemptionPolicy === "Never" ? {} : { priority }),
    ...(requestsIn === undefined ? {} : { requestsIn }),
    rules: [selection, ...(rules?.() ?? [])],
    candidates,
  };
}

/** What placement is reckoned from. */
export interface PlacementViewOptions {
  readonly registry: PlacementMembers;
  readonly rules: PlacementRules;
  readonly divisions: Divisions;
  readonly groups: Groups;
  readonly shapes: Shapes;
  readonly homeApi: (member: string) => HomeApi;
  readonly clock: Pick<Clock, "now">;
}

/** What a decision about one proxy sees of the members that it may go to. */
export class PlacementView {
  readonly #options: PlacementViewOptions;

  constructor(options: PlacementViewOptions) {
    this.#options = options;
  }

  /** Returns the proxy's spec as its author wants it in the member; overrides see what the host's admission merged, as their authors do. */
  specIn(proxy: Stored<Pod> | undefined, candidate: Candidate): OverriddenSpec {
    const spec = proxy?.spec ?? { containers: [] };
    const parsed = proxy === undefined ? undefined : this.#options.rules.parse(proxy);
    // What its author wants to be different there, nobody knows any more.
    if (parsed?.ok === false) return { problem: parsed.problems[0]?.message ?? "its annotations cannot be read" };
    const overrides = parsed?.placement.overrides;
    const overridden = overrides === undefined ? { spec } : overrideSpec(spec, overrides, candidate);
    if ("problem" in overridden) return overridden;
    const merged = proxy && this.#options.rules.merged(proxy);
    return { spec: specForNodesOf(candidate, withoutMerged(overridden.spec, merged)) };
  }

  /** Returns the proxy's delegate as the member is to have it. A spec that the overrides do not fit goes as its author wrote it. */
  delegateIn(proxy: Stored<Pod>, candidate: Candidate, host: HostIdentity): Pod {
    const { name } = candidate;
    const overridden = this.specIn(proxy, candidate);
    const written = proxy.spec && withoutMerged(proxy.spec, this.#options.rules.merged(proxy));
    const spec = "spec" in overridden ? overridden.spec : written && specForNodesOf({ name, labels: {} }, written);
    return toDelegate(proxy, host, this.apiAccess(proxy, name), spec);
  }

  /** Returns why the author's overrides do not fit the member; undefined when they do. */
  misfit(proxy: Stored<Pod>, candidate: Candidate): string | undefined {
    const overridden = this.specIn(proxy, candidate);
    return "problem" in overridden ? overridden.problem : undefined;
  }

  /** What the member lacks for the pod: a way to the host's API server, or what the author's overrides are written for. */
  #lacks(proxy: Stored<Pod>, placement: Placement, candidate: Candidate): string | undefined {
    return this.#apiRefusal(proxy, placement, candidate) ?? this.#misfit(proxy, placement, candidate);
  }

  /** Why the member cannot give the pod the API server that its author wants. */
  #apiRefusal(proxy: Stored<Pod>, { api }: Placement, { name }: Candidate): string | undefined {
    return apiChoice(proxy, api, this.#options.homeApi(name)).refusal;
  }

  /** Why the author's overrides cannot be applied to the pod in the member. */
  #misfit(proxy: Stored<Pod>, { api, overrides }: Placement, candidate: Candidate): string | undefined {
    const { spec } = proxy;
    if (overrides === undefined || spec === undefined) return undefined;
    const overridden = overrideSpec(spec, overrides, candidate);
    if ("problem" in overridden) return `${OVERRIDES_ANNOTATION}: ${overridden.problem}`;
    // The host gives the tokens that the pod mounts as it stands there.
    const isHosts = apiChoice(proxy, api, this.#options.homeApi(candidate.name)).access?.mode === "host";
    if (!isHosts || jsonEqual(wantedTokens({ spec }), wantedTokens(overridden))) return undefined;
    return `${OVERRIDES_ANNOTATION}: a patch changes the service account tokens that the pod mounts, which are the host's`;
  }

  /** Where an unbound proxy may go, and what is better; of a bound one, only whether its namespace is opted in. */
  of(proxy: Stored<Pod> | undefined): Eligibility {
    if (proxy === undefined) return { excludes: () => undefined };
    if (!this.#options.rules.optedIn(proxy)) return { excludes: () => undefined, optedIn: false };
    if (isBound(proxy)) return { excludes: () => undefined };
    const parsed = this.#options.rules.parse(proxy);
    if (!parsed.ok)
      return { excludes: () => undefined, invalid: parsed.problems.map(({ message }) => message).join("; ") };
    const { preferences, ...undivided } = parsed.placement;
    // Some of a workload that overflows stay on the host, or somebody chooses for each pod by itself: what is left is not divided.
    const isDivided = !asksHostFirst(proxy) && undivided.virtualNode?.selected === undefined;
    const placement = preferences === undefined || !isDivided ? undivided : { ...undivided, preferences };
    const { clusters, virtualNode, overrides } = placement;
    const named = (virtualNode && wishedMembers(virtualNode)) ?? clusters;
    return {
      excludes: (candidate) => placementExcludes(placement, candidate),
      lacks: (candidate) => this.#lacks(proxy, placement, candidate),
      ...(named === undefined ? {} : { named }),
      ...requestsIn(proxy, overrides),
      ...this.#refusedBefore(proxy),
      follows: this.#options.groups.placeOf(proxy.metadata.uid)?.first !== undefined,
      ...this.#division(proxy, placement),
    };
  }

  /** What the workload's division over members says of where this one of its pods goes. */
  #division(proxy: Stored<Pod>, placement: Placement): Pick<Eligibility, "rules" | "settling"> {
    const { preferences } = placement;
    if (preferences === undefined) {
      return {
        rules: () => {
          const { policy, wishes } = this.#options.rules.of(proxy, placement);
          return [...policy, ...wishes];
        },
      };
    }
    const sharing = this.#sharing(placement, preferences);
    return {
      settling: sharing.some(({ settling }) => settling),
      rules: () => {
        const { policy, wishes } = this.#options.rules.of(proxy, placement);
        const open = openTo(sharing, policy).filter(
          (candidate) => this.#apiRefusal(proxy, placement, candidate) === undefined,
        );
        const inOverrides = requestsIn(proxy, placement.overrides);
        return [...policy, this.#options.divisions.rule(proxy, preferences, open, inOverrides.requestsIn), ...wishes];
      },
    };
  }

  /** How the pod's workload is to be divided, and over which members; undefined when nobody says, or nobody knows. */
  sharing(proxy: Stored<Pod>): Sharing | undefined {
    if (asksHostFirst(proxy)) return undefined;
    // Without the namespace's defaults, members that these leave out would get a share.
    if (!this.#options.rules.optedIn(proxy)) return undefined;
    const parsed = this.#options.rules.parse(proxy);
    if (!parsed.ok || parsed.placement.preferences === undefined) return undefined;
    const { placement } = parsed;
    // Kueue, say, chooses for each pod by itself.
    if (placement.virtualNode?.selected !== undefined) return undefined;
    const { policy, wishes } = this.#options.rules.of(proxy, placement);
    const { registry } = this.#options;
    const closed = registry.members().filter((member) => member.candidate().closed !== undefined);
    const unconnected = registry.unconnected().map(({ metadata }) => metadata.name);
    const sharing = this.#sharing(placement, parsed.placement.preferences);
    const candidates = openTo(sharing, policy, KEEPING);
    // One that is late would have the replacement wait, and then perhaps not get it.
    const full = candidates.filter(
      (candidate) =>
        candidate.overdue === true ||
        this.#lacks(proxy, placement, candidate) !== undefined ||
        [...policy, ...wishes].some(({ refusal }) => refusal?.(candidate) !== undefined),
    );
    return {
      preferences: parsed.placement.preferences,
      candidates,
      full: new Set(full.map(({ name }) => name)),
      closed: new Set([...closed.map(({ name }) => name), ...unconnected]),
      settling: sharing.some((member) => member.settling),
      ...requestsIn(proxy, placement.overrides),
    };
  }

  #sharing(placement: Placement, preferences: SchedulingPreferences): PlacementMember[] {
    return this.#options.registry.members().filter((member) => {
      if (preferencesFor(preferences, member.name) === undefined) return false;
      return placementExcludes(placement, member.candidate()) === undefined;
    });
  }

  /** Why members are not asked for a place again that has been refused to pods like this one. */
  #refusedBefore(proxy: Stored<Pod>): Required<Pick<Eligibility, "refusedBefore">> | undefined {
    if (this.#options.shapes.empty) return undefined;
    const shape = shapeOf(proxy);
    const now = this.#options.clock.now();
    return {
      refusedBefore: (name) => {
        const version = this.#options.registry.member(name)?.roomVersion ?? "";
        return this.#options.shapes.refusal(name, shape, proxy.metadata.uid, version, now);
      },
    };
  }

  /** What the author wrote, on the pod or its namespace; undefined also when it cannot be read. */
  apiMode(proxy: Stored<Pod>): ApiMode | undefined {
    const parsed = this.#options.rules.parse(proxy);
    return parsed.ok ? parsed.placement.api : undefined;
  }

  /** Whether the pod would have no token in a member only because it is still being found out how it reaches the host from there. */
  apiPending(proxy: Stored<Pod>, member: string): boolean {
    const home = this.#options.homeApi(member);
    if (home.state !== "pending" || !this.#options.rules.parse(proxy).ok) return false;
    return apiChoice(proxy, this.apiMode(proxy), home).refusal !== undefined;
  }

  /** What the pod's in-cluster configuration leads to in a member. */
  apiAccess(proxy: Stored<Pod> | undefined, member: string): ApiAccess {
    // A member that refuses is not asked; one that has had the pod before, and cannot do it any more, gives no token.
    const none: ApiAccess = { mode: "none" };
    if (proxy === undefined || !this.#options.rules.parse(proxy).ok) return none;
    return apiChoice(proxy, this.apiMode(proxy), this.#options.homeApi(member)).access ?? none;
  }
}

/** The members that no rule refuses, but for reasons that are disregarded. */
function openTo(
  members: readonly PlacementMember[],
  policy: readonly Rule[],
  disregarded: ReadonlySet<RefusalReason> = new Set(),
): Candidate[] {
  return members
    .map((member) => member.candidate())
    .filter(({ closed }) => closed === undefined)
    .filter((candidate) =>
      policy.every(({ refusal }) => {
        const refused = refusal?.(candidate);
        return refused === undefined || disregarded.has(refused.reason);
      }),
    );
}

/** What the pod requests in members where its overrides say so. */
function requestsIn(proxy: Stored<Pod>, overrides: readonly Override[] | undefined): Pick<Eligibility, "requestsIn"> {
  if (overrides === undefined) return {};
  const inMember = inMembers(proxy, overrides);
  return { requestsIn: (candidate) => inMember(candidate).requests };
}
