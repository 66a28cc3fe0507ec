import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { Amounts } from "../../../../src/api/quantity.ts";
import { ranked, recorded } from "../../../../src/controllers/delegation/decision/on-demand.ts";
import { hasProxy, type MemberView, type View } from "../../../../src/controllers/delegation/decision/view.ts";
import { factsOf, onDemand, repelledBy } from "../../../../src/controllers/delegation/observe.ts";
import type { Candidate } from "../../../../src/placement/candidate.ts";
import { type Needs, needsState, preparationIn } from "../../../../src/placement/needs.ts";
import { toDelegate } from "../../../../src/pods/delegate.ts";
import { isBound } from "../../../../src/pods/pod-state.ts";
import { memberOf } from "../../../../src/pods/proxy.ts";
import type { Eligibility } from "../../../../src/scheduling/eligibility.ts";
import type { Attempt, Memory } from "../../../../src/scheduling/memory.ts";
import { type PodParts, pod, proxyPod } from "../../../support/builders/pod.ts";

const host = { id: "host-id", name: "cern" };

/** A member, and the candidate that placement sees of it. */
export interface TestMember extends MemberView {
  readonly candidate: Candidate;
}

/** Facts of a view, some of them as functions of the member. */
export interface WorldParts extends Partial<Omit<View, "needs" | "memory">>, Partial<Omit<Eligibility, "invalid">> {
  readonly memory?: Memory;
  readonly needs?: () => Needs | undefined;
  readonly apiPending?: (member: string) => boolean;
  readonly misfit?: (member: string) => string | undefined;
  readonly unheard?: (member: string) => boolean;
  readonly outOfService?: (member: string) => boolean;
}

/** Returns a member with room for 100 one-core pods, reachable and read. */
export function member(name: string, parts: Partial<TestMember> & { readonly used?: number } = {}): TestMember {
  const { used = 0, ...view } = parts;
  const allocatable = { cpu: 100, pods: 100 };
  return {
    name,
    reachable: true,
    reachableSince: 0,
    read: true,
    candidate: { name, labels: {}, allocatable, largestNode: allocatable, used: { pods: used } },
    scheduleTimeoutMs: 30_000,
    nodesVersion: 1,
    ...view,
  };
}

/** Returns the member with pods of this host of priority 0 that request so much. */
export function preemptibleIn(view: TestMember, amounts: Amounts): TestMember {
  return { ...view, candidate: { ...view.candidate, preemptible: (priority) => (priority > 0 ? amounts : {}) } };
}

/** Returns the view of a decision: by default a fresh proxy, an empty memory, every member allowed. */
export function world(proxy: Stored<Pod> | undefined, members: readonly TestMember[], parts: WorldParts = {}): View {
  const { excludes = () => undefined, lacks, requestsIn, rules, refusedBefore, needs, misfit, ...rest } = parts;
  const { apiPending, unheard, outOfService, ...facts } = rest;
  const sources = members.map(({ candidate, ...connection }) => ({ candidate, connection }));
  const views = sources.map(({ candidate, connection }): MemberView => {
    const { name } = connection;
    const excluded = excludes(candidate);
    const repels = proxy === undefined ? undefined : repelledBy(candidate, proxy);
    return {
      ...connection,
      ...factsOf(candidate),
      ...(excluded === undefined ? {} : { excluded }),
      ...(repels === undefined ? {} : { repels }),
      ...(apiPending?.(name) === true ? { apiPending: true } : {}),
      ...(unheard?.(name) === true ? { notReady: true } : {}),
      ...(outOfService?.(name) === true ? { outOfService: true } : {}),
    };
  });
  const view = {
    ref: { namespace: "team", name: "web-0" },
    proxy,
    members: views,
    memory: memory(),
    ...facts,
  };
  if (!hasProxy(view)) return view;
  const needed = needs?.();
  if (isBound(view.proxy)) return withNeeds(view, needed, misfit);
  const eligibility = {
    excludes,
    ...(lacks === undefined ? {} : { lacks }),
    ...(requestsIn === undefined ? {} : { requestsIn }),
    ...(rules === undefined ? {} : { rules }),
    ...(refusedBefore === undefined ? {} : { refusedBefore }),
  };
  return recorded(
    ranked(
      onDemand(
        view,
        members.map(({ candidate }) => candidate),
        eligibility,
        () => needed,
      ),
    ),
  );
}

/** Returns the view of a bound proxy with its dependencies in its member. */
function withNeeds(view: View, needs: Needs | undefined, misfit: WorldParts["misfit"]): View {
  const own = view.proxy && memberOf(view.proxy);
  const state = needsState(needs);
  const members = view.members.map((each) => {
    if (each.name !== own) return each;
    const problem = misfit?.(each.name);
    return {
      ...each,
      ...(needs === undefined ? {} : { preparation: preparationIn(needs, each.name) }),
      ...(problem === undefined ? {} : { misfit: problem }),
    };
  });
  return { ...view, members, ...(state === undefined ? {} : { needs: state }) };
}

/** A write that a cluster goes on refusing, as it was reported. */
export interface LastingRefusal {
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly since: string;
  readonly at: number;
  readonly until: number;
}

type Entries<T> = ReadonlyMap<string, T> | Readonly<Record<string, T>>;

export interface MemoryParts extends Partial<Omit<Memory, "attempts" | "held" | "confirmedAbsent" | "unproven">> {
  readonly attempts?: Entries<Attempt>;
  readonly ineffective?: Entries<number>;
  readonly refused?: Entries<LastingRefusal>;
  readonly confirmedAbsent?: Iterable<string>;
  readonly unproven?: Iterable<string>;
}

/** Returns a memory; its records may be given as maps, and its lists as sets. */
export function memory(parts: MemoryParts = {}): Memory {
  const { attempts = {}, ineffective, refused, confirmedAbsent, unproven, ...rest } = parts;
  return {
    fresh: true,
    attempts: recordOf(attempts),
    ...(ineffective === undefined && refused === undefined ? {} : { held: heldOf(ineffective, refused) }),
    ...(confirmedAbsent === undefined ? {} : { confirmedAbsent: [...confirmedAbsent] }),
    ...(unproven === undefined ? {} : { unproven: [...unproven] }),
    ...rest,
  };
}

function heldOf(ineffective: Entries<number> = {}, refused: Entries<LastingRefusal> = {}): Required<Memory>["held"] {
  const without = Object.entries(recordOf(ineffective)).map(([write, until]) => [write, { reason: "NoEffect", until }]);
  const told = Object.entries(recordOf(refused)).map(([write, { reason, message, since, at, until }]) => {
    const why = { reason, message };
    return [
      write,
      { reason: "Refused", until, refusal: { why, reported: why, reportedAt: at, since: Date.parse(since) } },
    ];
  });
  return Object.fromEntries([...without, ...told]);
}

function recordOf<T>(entries: Entries<T>): Readonly<Record<string, T>> {
  return Object.fromEntries(entries instanceof Map ? entries : Object.entries(entries));
}

/** The memory after the member was asked for the recorded delegate, and lacks it. */
export const gone: Pick<View, "memory"> = { memory: memory({ gone: "delegate-uid" }) };

/** Returns the delegate of a proxy, as its member holds it. */
export function delegateOf(proxy: Stored<Pod>, { metadata, ...parts }: PodParts = {}): Stored<Pod> {
  const made = toDelegate(proxy, host);
  return pod({ uid: "delegate-uid", ...parts, metadata: { ...made.metadata, name: "web-0", ...metadata } });
}

/** Returns a proxy that is bound to `west` with `delegate-uid`. */
export function boundProxy({ metadata, spec, ...parts }: PodParts = {}): Stored<Pod> {
  const annotations = { [CLUSTER_ANNOTATION]: "west", [DELEGATE_UID_ANNOTATION]: "delegate-uid" };
  return proxyPod({
    ...parts,
    metadata: { ...metadata, annotations: { ...annotations, ...metadata?.annotations } },
    spec: { nodeName: "legation-west", ...spec },
  });
}
