import { type ApiMode, placementExcludes, problemsText, type RequestedPlacement } from "../api/annotations.ts";
import { defined } from "../api/defined.ts";
import { jsonEqual } from "../api/json.ts";
import { OVERRIDES_ANNOTATION } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { setLatest } from "../api/latest-entries.ts";
import { preferencesFor, type SchedulingPreferences } from "../api/preferences.ts";
import type { Amounts } from "../api/quantity.ts";
import { wishedMembers } from "../api/virtual-node-wish.ts";
import { wishesOfText } from "../api/workload-wishes.ts";
import type { Candidate, RefusalReason, Rule } from "../placement/candidate.ts";
import { type Needs, preparationIn, refusalIn } from "../placement/needs.ts";
import type { OpenMembers } from "../placement/open-division.ts";
import { nothingRanked, type RankInput, type SharedRanking } from "../placement/rank.ts";
import type { Why } from "../placement/refusal-messages.ts";
import { podRequests } from "../placement/requests.ts";
import { gangShortage } from "../placement/rules.ts";
import { type HostIdentity, toDelegate } from "../pods/delegate.ts";
import { type ApiAccess, apiChoice, asksHomeApi, type HomeApi, wantedTokens } from "../pods/home-api.ts";
import { withoutMerged } from "../pods/host-admission.ts";
import { asksHostFirst, isOverflow } from "../pods/overflow.ts";
import { type OverriddenSpec, overrideSpec } from "../pods/overrides.ts";
import { isBound } from "../pods/pod-state.ts";
import { specForNodesOf } from "../pods/virtual-node-terms.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Divisions } from "./divisions.ts";
import type { GroupPlace, Groups } from "./groups.ts";
import type { Memories } from "./memories.ts";
import type { Pause, PlacementFacts } from "./placement-view.ts";
import type { PlacementMember, PlacementMembers, PodRules } from "./pod-rules.ts";
import { shapeOf } from "./pod-shapes.ts";
import type { LearntMutation, RequestMutations } from "./request-mutations.ts";
import type { Retries } from "./retries/retries.ts";

// Whether members have room is found as for a division of equal shares.
const UNDIVIDED: SchedulingPreferences = { rebalance: false, clusters: { "*": { weight: 1, minReplicas: 0 } } };

// A member that refuses one more pod for these reasons keeps those it has, and stays in the division.
const KEEPING: ReadonlySet<RefusalReason> = new Set(["OverLimit", "NoNodeMatches", "TooLarge"]);

// A ranking takes a few hundred bytes for each member, and pods of one workload come together.
const KEPT_RANKINGS = 16;

/** The members that may have a pod of a division. */
export interface Sharing extends OpenMembers {
  /** A member is not read yet. Until then it looks closed, and the division wrong. */
  readonly syncing: boolean;
}

/** Why replicas of a workload may have to move. */
export interface Moving extends Sharing {
  /** Reports whether the workload's wishes exclude the member of a replica. Absent: they exclude none. */
  readonly excludes?: (replica: Stored<Pod>, member: string) => boolean;
  /** The workload has no division: the preferences only say who has room. */
  readonly undivided?: boolean;
}

/** The facts and functions that a pod's place depends on, at the moment of one observation. */
export interface Eligibility extends PlacementFacts {
  /** Returns why the placement leaves a member out now. It may have had the pod before wishes or defaults changed. */
  readonly excludes: (candidate: Candidate) => string | undefined;
  /** Returns why the pod itself leaves a member out. Such a member never had it. Absent: it leaves out none. */
  readonly never?: (candidate: Candidate) => string | undefined;
  /** Returns what a member lacks for the pod at present. It may have had the pod all the same. */
  readonly lacks?: (candidate: Candidate) => string | undefined;
  /** Returns what the pod requests in a member. Absent: what its spec says. */
  readonly requestsIn?: (candidate: Candidate) => Amounts;
  /** Returns what the member made of the requests of a pod like this one. */
  readonly learntIn?: (candidate: Candidate) => LearntMutation | undefined;
  /** Returns why a member lacks room for all pods that start with this one. Absent: it starts alone. */
  readonly gangShortage?: (candidate: Candidate) => Why | undefined;
  /** Returns what else refuses or prefers members, strongest preference first. */
  readonly rules?: () => readonly Rule[];
  /** Returns the last ranking for equal pods. Absent: the pod's place depends on other pods, or on what it tried before. */
  readonly shared?: () => SharedRanking;
  /** Returns why a member is not asked for a place that it has just refused to a pod like this one. */
  readonly refusedBefore?: (member: string) => Pause | undefined;
}

/** Returns the parts of an eligibility that are plain data. */
export function placementFacts(eligibility: Eligibility): PlacementFacts {
  const { optedIn, unseen, invalid, named, syncing, follows, home, gang } = eligibility;
  return defined({ unseen, optedIn, invalid, named, syncing, follows, home, gang });
}

/** Returns the input of a ranking of these members for a proxy. */
export function rankInput(
  proxy: Stored<Pod>,
  { excludes, lacks, rules, requestsIn, learntIn, gangShortage, shared }: Eligibility,
  candidates: readonly Candidate[],
  needs?: Needs,
): RankInput {
  const lackIn =
    lacks === undefined && needs?.state !== "there"
      ? undefined
      : (candidate: Candidate) => lacks?.(candidate) ?? refusalIn(preparationIn(needs, candidate.name));
  const selection: Rule = {
    filter: (candidate) => {
      const message = excludes(candidate) ?? lackIn?.(candidate);
      return message === undefined ? undefined : { reason: "NotSelected", message };
    },
  };
  const { priority = 0, preemptionPolicy } = proxy.spec ?? {};
  return {
    requests: podRequests(proxy),
    ...(preemptionPolicy === "Never" ? {} : { priority }),
    ...defined({ requestsIn, gangShortage, lackIn }),
    ...(learntIn === undefined ? {} : { mutationIn: (candidate) => learntIn(candidate)?.mutation }),
    rules: [selection, ...(rules?.() ?? [])],
    candidates,
    shared: shared?.(),
  };
}

export interface EligibilitiesOptions {
  readonly registry: PlacementMembers;
  readonly podRules: PodRules;
  readonly divisions: Divisions;
  readonly groups: Groups;
  readonly retries: Retries;
  readonly mutations: RequestMutations;
  readonly memories: Pick<Memories, "of">;
  readonly homeApi: (member: string) => HomeApi;
  readonly clock: Pick<Clock, "now">;
}

/** Computes what decides over a proxy's place. */
export class Eligibilities {
  readonly #options: EligibilitiesOptions;
  readonly #rankings = new Map<string, SharedRanking>();

  constructor(options: EligibilitiesOptions) {
    this.#options = options;
  }

  /** Returns the proxy's spec with the author's overrides for the member. They apply to what the host's admission merged, too. */
  specIn(proxy: Stored<Pod> | undefined, candidate: Candidate): OverriddenSpec {
    const spec = proxy?.spec ?? { containers: [] };
    const parsed = proxy === undefined ? undefined : this.#options.podRules.parse(proxy);
    if (parsed?.ok === false) return { problem: parsed.problems[0]?.message ?? "its annotations cannot be read" };
    const overrides = parsed?.placement.overrides;
    const overridden = overrides === undefined ? { spec } : overrideSpec(spec, overrides, candidate);
    if ("problem" in overridden) return overridden;
    const merged = proxy && this.#options.podRules.merged(proxy);
    return { spec: specForNodesOf(candidate, withoutMerged(overridden.spec, merged)) };
  }

  /** Derives the delegate for a member. Where the overrides do not fit, the spec goes as its author wrote it. */
  delegateIn(proxy: Stored<Pod>, candidate: Candidate, host: HostIdentity): Pod {
    const { name } = candidate;
    const overridden = this.specIn(proxy, candidate);
    const written = proxy.spec && withoutMerged(proxy.spec, this.#options.podRules.merged(proxy));
    const spec = "spec" in overridden ? overridden.spec : written && specForNodesOf({ name, labels: {} }, written);
    return toDelegate(proxy, host, this.apiAccess(proxy, name), spec);
  }

  /** Returns why the author's overrides do not fit the member; undefined when they do. */
  misfit(proxy: Stored<Pod>, candidate: Candidate): string | undefined {
    const overridden = this.specIn(proxy, candidate);
    return "problem" in overridden ? overridden.problem : undefined;
  }

  /** Returns what the member lacks for the pod: a way to the host's API server, or what the overrides patch. */
  #lacks(proxy: Stored<Pod>, placement: RequestedPlacement, candidate: Candidate): string | undefined {
    return this.#apiRefusal(proxy, placement, candidate) ?? this.#misfit(proxy, placement, candidate);
  }

  /** Returns why the member cannot give the pod the API server that its author wants. */
  #apiRefusal(proxy: Stored<Pod>, { api }: RequestedPlacement, { name }: Candidate): string | undefined {
    return apiChoice(proxy, api, this.#options.homeApi(name)).refusal;
  }

  #misfit(proxy: Stored<Pod>, { api, overrides }: RequestedPlacement, candidate: Candidate): string | undefined {
    const { spec } = proxy;
    if (overrides === undefined || spec === undefined) return undefined;
    const overridden = overrideSpec(spec, overrides, candidate);
    if ("problem" in overridden) return `${OVERRIDES_ANNOTATION}: ${overridden.problem}`;
    // The host issues the tokens that the pod mounts.
    const isHosts = apiChoice(proxy, api, this.#options.homeApi(candidate.name)).access?.mode === "host";
    if (!isHosts || jsonEqual(wantedTokens({ spec }), wantedTokens(overridden))) return undefined;
    return `${OVERRIDES_ANNOTATION}: a patch changes the service account tokens that the pod mounts, which are the host's`;
  }

  /** Returns where an unbound proxy may go; of a bound one, only whether its namespace is opted in. */
  of(proxy: Stored<Pod> | undefined): Eligibility {
    if (proxy === undefined) return { excludes: () => undefined };
    if (!this.#options.podRules.optedIn(proxy)) return { excludes: () => undefined, optedIn: false };
    if (isBound(proxy)) return { excludes: () => undefined };
    const unseen = this.#options.podRules.unseen(proxy);
    if (unseen !== undefined) return { excludes: () => undefined, unseen: wishesOfText(unseen) };
    const parsed = this.#options.podRules.parse(proxy);
    if (!parsed.ok) return { excludes: () => undefined, invalid: problemsText(parsed) };
    const { preferences, ...undivided } = parsed.placement;
    // An overflowing workload leaves pods on the host, and some schedulers choose a member per pod: neither is divided.
    const isDivided = !asksHostFirst(proxy) && undivided.virtualNode?.selected === undefined;
    const placement = preferences === undefined || !isDivided ? undivided : { ...undivided, preferences };
    const { clusters, virtualNode } = placement;
    const named = (virtualNode && wishedMembers(virtualNode)) ?? clusters;
    const refusedBefore = this.#options.retries.ofOthers(proxy);
    const group = this.#options.groups.placeOf(proxy.metadata.uid);
    return {
      excludes: (candidate) => placementExcludes(placement, candidate),
      never: (candidate) => placementExcludes(this.#options.podRules.fixed(proxy), candidate),
      ...(placement.overrides === undefined && !asksHomeApi(proxy, placement.api)
        ? {}
        : { lacks: (candidate) => this.#lacks(proxy, placement, candidate) }),
      ...defined({ named }),
      ...this.#requests(proxy, placement),
      ...defined({ refusedBefore, home: group?.home }),
      follows: group?.first !== undefined,
      ...gangPlace(group),
      ...(group?.gang === undefined ? {} : { gangShortage: (candidate) => gangShortage(group, candidate) }),
      ...(group === undefined ? this.#lastRanking(proxy, placement) : {}),
      ...this.#division(proxy, placement),
    };
  }

  /** Finds the last ranking for pods of the same shape, wishes and namespace, unless the pod's place depends on other pods. */
  #lastRanking(proxy: Stored<Pod>, placement: RequestedPlacement): Pick<Eligibility, "shared"> {
    const { podRules, mutations, memories, clock } = this.#options;
    const { uid, namespace = "" } = proxy.metadata;
    if (placement.preferences !== undefined || placement.spread !== undefined) return {};
    // A limit does not count what is reserved for the pod itself.
    if (memories.of(uid).lastReserved !== undefined || mutations.of(proxy, clock.now()) !== undefined) return {};
    return {
      shared: () => {
        const facts = [isOverflow(proxy), placement, podRules.merged(proxy), podRules.namespaceLabels(namespace)];
        const key = shapeOf(proxy).spec + JSON.stringify(facts, bigintsAsText);
        const shared = this.#rankings.get(key) ?? nothingRanked();
        setLatest(this.#rankings, key, shared, KEPT_RANKINGS);
        return shared;
      },
    };
  }

  #division(proxy: Stored<Pod>, placement: RequestedPlacement): Pick<Eligibility, "rules" | "syncing"> {
    const { preferences } = placement;
    if (preferences === undefined) {
      return {
        rules: () => {
          const { policy, wishes } = this.#options.podRules.of(proxy, placement);
          return [...policy, ...wishes];
        },
      };
    }
    const sharing = this.#sharing(placement, preferences);
    return {
      syncing: sharing.some(({ syncing }) => syncing),
      rules: () => {
        const { policy, wishes } = this.#options.podRules.of(proxy, placement);
        const open = openTo(sharing, policy).filter(
          (candidate) => this.#apiRefusal(proxy, placement, candidate) === undefined,
        );
        const { requestsIn } = this.#requests(proxy, placement);
        return [...policy, this.#options.divisions.rule(proxy, preferences, open, requestsIn), ...wishes];
      },
    };
  }

  /** Returns how the workload is divided, and over which members; undefined when it is not, or not known. */
  sharing(proxy: Stored<Pod>): Sharing | undefined {
    const placement = this.#shared(proxy);
    return placement?.preferences && this.#sharingOf(proxy, placement, placement.preferences);
  }

  /** Returns by what replicas of the workload may have to move: its division, or members that its wishes exclude. */
  moving(proxy: Stored<Pod>): Moving | undefined {
    const placement = this.#shared(proxy);
    if (placement === undefined) return undefined;
    const { podRules, registry } = this.#options;
    const isDemanding = podRules.demanded(proxy) !== undefined;
    const preferences = placement.preferences ?? (isDemanding ? UNDIVIDED : undefined);
    if (preferences === undefined) return undefined;
    const excludes = (replica: Stored<Pod>, member: string): boolean => {
      const demanded = podRules.demanded(replica);
      const candidate = registry.member(member)?.candidate();
      return demanded !== undefined && candidate !== undefined && placementExcludes(demanded, candidate) !== undefined;
    };
    return {
      ...this.#sharingOf(proxy, placement, preferences),
      ...(isDemanding ? { excludes } : {}),
      ...(placement.preferences === undefined ? { undivided: true } : {}),
    };
  }

  /** Returns the placement of a workload whose replicas this controller may move. */
  #shared(proxy: Stored<Pod>): RequestedPlacement | undefined {
    if (asksHostFirst(proxy)) return undefined;
    // Without the namespace's defaults, excluded members would get a share.
    if (!this.#options.podRules.optedIn(proxy)) return undefined;
    const parsed = this.#options.podRules.parse(proxy);
    // Kueue, for one, chooses a member per pod.
    return parsed.ok && parsed.placement.virtualNode?.selected === undefined ? parsed.placement : undefined;
  }

  #sharingOf(proxy: Stored<Pod>, placement: RequestedPlacement, preferences: SchedulingPreferences): Sharing {
    const { policy, wishes } = this.#options.podRules.of(proxy, placement);
    const { registry } = this.#options;
    const closed = registry.members().filter((member) => member.candidate().closed !== undefined);
    const unconnected = registry.unconnected().map(({ metadata }) => metadata.name);
    const sharing = this.#sharing(placement, preferences);
    const candidates = openTo(sharing, policy, KEEPING);
    // A replacement would wait for an overdue member, and then perhaps not get it.
    const full = candidates.filter(
      (candidate) =>
        candidate.overdue === true ||
        this.#lacks(proxy, placement, candidate) !== undefined ||
        [...policy, ...wishes].some(({ filter }) => filter?.(candidate) !== undefined),
    );
    return {
      preferences,
      candidates,
      full: new Set(full.map(({ name }) => name)),
      closed: new Set([...closed.map(({ name }) => name), ...unconnected]),
      syncing: sharing.some((member) => member.syncing),
      ...this.#requests(proxy, placement),
    };
  }

  #sharing(placement: RequestedPlacement, preferences: SchedulingPreferences): PlacementMember[] {
    return this.#options.registry.members().filter((member) => {
      if (preferencesFor(preferences, member.name) === undefined) return false;
      return placementExcludes(placement, member.candidate()) === undefined;
    });
  }

  #requests(proxy: Stored<Pod>, placement: RequestedPlacement): Pick<Eligibility, "requestsIn" | "learntIn"> {
    const { podRules, mutations, clock } = this.#options;
    const learnt = mutations.of(proxy, clock.now());
    if (placement.overrides === undefined && learnt === undefined) return {};
    const inMember = podRules.inMember(proxy, placement);
    return {
      requestsIn: (candidate) => inMember(candidate).requests,
      ...(learnt === undefined ? {} : { learntIn: ({ name }) => learnt(name) }),
    };
  }

  /** Returns what the author wrote on the pod or its namespace; undefined also when it cannot be read. */
  apiMode(proxy: Stored<Pod>): ApiMode | undefined {
    const parsed = this.#options.podRules.parse(proxy);
    return parsed.ok ? parsed.placement.api : undefined;
  }

  /** Reports whether the pod would lack its token in a member only because the way to the host is not known yet. */
  apiPending(proxy: Stored<Pod>, member: string): boolean {
    const home = this.#options.homeApi(member);
    if (home.state !== "pending" || !this.#options.podRules.parse(proxy).ok) return false;
    return apiChoice(proxy, this.apiMode(proxy), home).refusal !== undefined;
  }

  /** Returns where the pod's in-cluster configuration leads in a member. */
  apiAccess(proxy: Stored<Pod> | undefined, member: string): ApiAccess {
    // A member that had the pod before, and has no way to the host any more, gives no token.
    const none: ApiAccess = { mode: "none" };
    if (proxy === undefined || !this.#options.podRules.parse(proxy).ok) return none;
    return apiChoice(proxy, this.apiMode(proxy), this.#options.homeApi(member)).access ?? none;
  }
}

/** Returns what binds a pod to the others of its gang. Plain data, and none for most pods. */
function gangPlace(group: GroupPlace | undefined): Pick<PlacementFacts, "gang"> {
  const { text = "", heldIn = [], leads } = group ?? {};
  return heldIn.length === 0 && leads === undefined ? {} : { gang: { text, heldIn, ...defined({ leads }) } };
}

function bigintsAsText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/** Returns the members that no rule refuses, except for disregarded reasons. */
function openTo(
  members: readonly PlacementMember[],
  policy: readonly Rule[],
  disregarded: ReadonlySet<RefusalReason> = new Set(),
): Candidate[] {
  return members
    .map((member) => member.candidate())
    .filter(({ closed }) => closed === undefined)
    .filter((candidate) =>
      policy.every(({ filter }) => {
        const refused = filter?.(candidate);
        return refused === undefined || disregarded.has(refused.reason);
      }),
    );
}
