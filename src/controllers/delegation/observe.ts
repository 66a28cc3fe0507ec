import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { defined } from "../../api/defined.ts";
import { virtualNodeName } from "../../api/keys.ts";
import { type ObjectKey, objectKey, objectRef, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Candidate } from "../../placement/candidate.ts";
import { BEING_REMOVED, CORDONED, candidateOf, isOutOfService } from "../../placement/member-candidate.ts";
import { type Needs, preparationIn } from "../../placement/needs.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { isOverfull, rank } from "../../placement/rank.ts";
import { taintRefusal } from "../../placement/rules.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { isBound, isDeleting, isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { type Eligibility, placementFacts, rankInput } from "../../scheduling/eligibility.ts";
import { type Memory, mayHold } from "../../scheduling/memory.ts";
import type { PlacementState } from "../../scheduling/placement-state.ts";
import { requestMutation } from "../../scheduling/request-mutations.ts";
import type { WaitingProxies } from "../../scheduling/retries/waiting-proxies.ts";
import type { Preparer } from "../preparer.ts";
import { isFor } from "./decision/delegates.ts";
import { ranked, stateOf } from "./decision/on-demand.ts";
import { hasProxy, type MemberView, type PodView, type RankedFacts, type View } from "./decision/view.ts";
import type { DelegationOptions } from "./options.ts";

export interface ObserverOptions extends Pick<DelegationOptions, "registry" | "virtualNodes"> {
  readonly preparer: Pick<Preparer, "needs">;
  readonly clock: Pick<Clock, "now" | "wall">;
  readonly placementState: Pick<PlacementState, "memories" | "spread" | "eligibilities" | "podRules">;
  readonly proxies: Pick<ReadStore<Pod>, "get" | "synced">;
  readonly waiting: Pick<WaitingProxies, "since">;
}

/** The members for one pod, in one order: as placement sees them, and as the phases do. */
export interface ObservedMembers {
  readonly candidates: readonly Candidate[];
  readonly connections: readonly MemberView[];
  /** The places of those that have something of the pod, or cannot be read: the others are the same for all such pods. */
  readonly special: ReadonlySet<number>;
}

/** Reads the view that a decision on one pod name depends on. Changes nothing. */
export class Observer {
  readonly #options: ObserverOptions;
  /** All members as they were last, without any pod. One has another candidate whenever it changes. */
  #all: ObservedMembers = { candidates: [], connections: [], special: new Set() };

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  observe(key: ObjectKey): View | undefined {
    const { proxies } = this.#options;
    // Before the host's proxies are known, every delegate would look like an orphan.
    if (!proxies.synced) return undefined;
    const proxy = proxies.get(key);
    const sources = this.#sources(key, proxy);
    if (proxy === undefined && sources.connections.every(({ delegate }) => delegate === undefined)) return undefined;
    return this.#view(key, proxy, sources);
  }

  /** Returns the view of a pod that is no proxy yet, as if it were the proxy under the key. */
  seen(key: ObjectKey, pod: Stored<Pod>): View {
    const sources = this.#sources(key, pod);
    const eligibility = this.#options.placementState.eligibilities.of(pod);
    const view = this.#base(key, pod, sources, eligibility);
    return hasProxy(view) ? ranked(onDemand(view, sources.candidates, eligibility, () => undefined)) : view;
  }

  /** Returns the members that a decision on the pod depends on. */
  #sources(key: ObjectKey, proxy: Stored<Pod> | undefined): ObservedMembers {
    const all = proxy === undefined || isBound(proxy) ? this.#concerned(key, proxy) : this.#everywhere(key);
    const unconnected = this.#unconnected(proxy);
    if (unconnected.length === 0) return all;
    const { candidates, connections, special } = all;
    return {
      candidates: [...candidates, ...unconnected.map(({ candidate }) => candidate)],
      connections: [...connections, ...unconnected.map(({ connection }) => connection)],
      special: new Set([...special, ...unconnected.map((_, index) => candidates.length + index)]),
    };
  }

  #everywhere(key: ObjectKey): ObservedMembers {
    const { registry } = this.#options;
    this.#refresh();
    const holders = registry.holders(key);
    if (holders.length === 0) return this.#all;
    const members = registry.members();
    const connections = [...this.#all.connections];
    const special = new Set(this.#all.special);
    for (const member of holders) {
      const index = members.indexOf(member);
      const connection = connections[index];
      if (connection === undefined) continue;
      connections[index] = { ...connection, ...shownBy(member, key) };
      special.add(index);
    }
    return { ...this.#all, connections, special };
  }

  /** Looks again at the members that have changed: few of a thousand. */
  #refresh(): void {
    const { registry } = this.#options;
    const candidates = registry.candidates();
    const before = this.#all;
    if (candidates === before.candidates) return;
    const connections = before.connections.slice(0, candidates.length);
    const special = new Set([...before.special].filter((index) => index < candidates.length));
    const members = registry.members();
    for (let index = 0; index < candidates.length; index += 1) {
      const candidate = candidates[index];
      if (candidate === before.candidates[index]) continue;
      const member = members[index];
      if (member === undefined || candidate === undefined) continue;
      const connection = connectionOf(member, candidate);
      connections[index] = connection;
      if (isSettled(connection)) special.delete(index);
      else special.add(index);
    }
    this.#all = { candidates, connections, special };
  }

  #view(key: ObjectKey, proxy: Stored<Pod> | undefined, sources: ObservedMembers): View {
    const { placementState, preparer } = this.#options;
    const eligibility = placementState.eligibilities.of(proxy);
    const view = this.#base(key, proxy, sources, eligibility);
    if (!hasProxy(view) || isDeleting(view.proxy)) return view;
    if (isBound(view.proxy)) return this.#withNeeds(view, sources);
    return onDemand(view, sources.candidates, eligibility, () => preparer.needs(view.proxy));
  }

  #base(key: ObjectKey, proxy: Stored<Pod> | undefined, sources: ObservedMembers, eligibility: Eligibility): View {
    const { placementState, clock } = this.#options;
    const memory = placementState.memories.of(proxy?.metadata.uid ?? "");
    const waitingSince = this.#options.waiting.since(key);
    const merged = proxy && placementState.podRules.merged(proxy);
    return {
      ref: objectRef(key),
      proxy,
      members: this.#memberViews(sources, proxy, memory, eligibility),
      memory,
      wallOffsetMs: clock.wall() - clock.now(),
      ...placementFacts(eligibility),
      ...defined({ waitingSince, merged }),
    };
  }

  #memberViews(
    { candidates, connections, special }: ObservedMembers,
    proxy: Stored<Pod> | undefined,
    memory: Memory,
    eligibility: Eligibility,
  ): readonly MemberView[] {
    const mayHoldUnseen = !memory.fresh || memory.unproven !== undefined || memory.uncertain !== undefined;
    if (special.size === 0 && !mayHoldUnseen) return connections;
    const views = [...connections];
    for (const index of mayHoldUnseen ? views.keys() : special) {
      const [candidate, connection] = [candidates[index], connections[index]];
      if (candidate === undefined || connection === undefined) continue;
      views[index] = this.#memberView(candidate, connection, proxy, memory, eligibility);
    }
    return views;
  }

  #memberView(
    candidate: Candidate,
    connection: MemberView,
    proxy: Stored<Pod> | undefined,
    memory: Memory,
    eligibility: Eligibility,
  ): MemberView {
    const { name } = connection;
    const view = isSettled(connection) ? connection : { ...connection, ...this.#nodeState(name) };
    if (proxy === undefined) return view;
    const mutation = this.#mutation(candidate, connection, proxy);
    if (isBound(proxy)) return { ...view, ...mutation };
    const excluded = mayHold(memory, name) ? eligibility.never?.(candidate) : undefined;
    const repels = isFor(view.delegate, proxy) ? repelledBy(candidate, proxy) : undefined;
    const apiPending = memory.uncertain === name && this.#options.placementState.eligibilities.apiPending(proxy, name);
    if (view.delegate === undefined && excluded === undefined && !apiPending) return view;
    return { ...view, ...mutation, ...defined({ excluded, repels }), ...(apiPending ? { apiPending } : {}) };
  }

  #mutation(
    candidate: Candidate,
    { delegate }: MemberView,
    proxy: Stored<Pod>,
  ): Pick<MemberView, "mutation" | "overfull"> {
    if (delegate === undefined || isBound(delegate) || !isFor(delegate, proxy)) return {};
    const sent = this.#options.placementState.eligibilities.specIn(proxy, candidate);
    const mutation = "spec" in sent ? requestMutation({ ...proxy, spec: sent.spec }, delegate) : undefined;
    if (mutation === undefined) return {};
    return { mutation, ...(isOverfull(mutation.requests, candidate) ? { overfull: true } : {}) };
  }

  /** Adds what a bound proxy without a delegate needs in its member: it has no other to go to. */
  #withNeeds(view: PodView, { candidates, connections }: ObservedMembers): View {
    const { proxy } = view;
    const index = connections.findIndex((connection) => connection.name === memberOf(proxy));
    const [candidate, connection] = [candidates[index], connections[index]];
    if (candidate === undefined || isTerminal(proxy) || isFor(connection?.delegate, proxy)) return view;
    const { placementState, preparer } = this.#options;
    const { name } = candidate;
    const needs = preparer.needs(proxy);
    const misfit = placementState.eligibilities.misfit(proxy, candidate);
    // The delegate also waits until it is known how it reaches the host's API server.
    const isPending =
      placementState.eligibilities.apiPending(proxy, name) && (needs === undefined || needs.state === "there");
    const preparation = isPending ? "unprepared" : preparationIn(needs, name);
    const own = { preparation, ...defined({ misfit }) };
    const members = view.members.map((member) => (member.name === name ? { ...member, ...own } : member));
    return { ...view, ...stateOf(needs), members };
  }

  #concerned(key: ObjectKey, proxy: Stored<Pod> | undefined): ObservedMembers {
    const { placementState, registry } = this.#options;
    const concerned = new Set(registry.holders(key));
    const { uid = "" } = proxy?.metadata ?? {};
    for (const name of [proxy && memberOf(proxy), placementState.memories.of(uid).uncertain]) {
      const member = name === undefined ? undefined : registry.member(name);
      if (member !== undefined) concerned.add(member);
    }
    const members = [...concerned];
    return {
      candidates: members.map((member) => member.candidate()),
      connections: members.map((member) => ({ ...connectionOf(member, member.candidate()), ...shownBy(member, key) })),
      special: new Set(members.keys()),
    };
  }

  /** Returns the Clusters that cannot be reached for want of credentials: a proxy may have its delegate in one all the same. */
  #unconnected(proxy: Stored<Pod> | undefined): { readonly candidate: Candidate; readonly connection: MemberView }[] {
    if (proxy === undefined) return [];
    const { registry, placementState } = this.#options;
    const name = isBound(proxy) ? memberOf(proxy) : undefined;
    const { uncertain } = placementState.memories.of(proxy.metadata.uid);
    const isRefused = ({ metadata }: Stored<Cluster>): boolean => registry.joinedAs(metadata.name) !== undefined;
    return (
      registry
        .unconnected()
        .filter(({ metadata }) => name === undefined || metadata.name === name)
        // The delegates of a refused Cluster are those of the one that keeps the member, but for an uncertain create.
        .filter((cluster) => name === undefined || name === uncertain || !isRefused(cluster))
        .map((cluster) => {
          const own = cluster.metadata.name;
          const problem = registry.problem(own) ?? "it is not connected";
          const connection = { ...UNCONNECTED, name: own, ...(isRefused(cluster) ? { excluded: problem } : {}) };
          return { candidate: unconnectedCandidate(cluster, problem), connection };
        })
    );
  }

  #nodeState(member: string): Pick<MemberView, "notReady" | "outOfService"> {
    const node = this.#options.virtualNodes.get(objectKey({ name: virtualNodeName(member) }));
    const notReady = node !== undefined && !isNodeReady(node);
    return { ...(notReady ? { notReady } : {}), ...(isOutOfService(node) ? { outOfService: true } : {}) };
  }
}

/** Lets phases ask for what the pod needs of its namespace, and for the ranking of members. */
export function onDemand(
  view: PodView,
  candidates: readonly Candidate[],
  eligibility: Eligibility,
  needs: () => Needs | undefined,
): PodView {
  let needed: { readonly needs: Needs | undefined } | undefined;
  let facts: RankedFacts | undefined;
  const known = (): Needs | undefined => {
    needed ??= { needs: needs() };
    return needed.needs;
  };
  return {
    ...view,
    onDemand: {
      needs: known,
      ranked: () => {
        facts ??= rankedFacts(view, candidates, eligibility, known());
        return facts;
      },
      known: () => (facts === undefined ? stateOf(needed?.needs) : withPreparations(facts, needed?.needs)),
    },
  };
}

function rankedFacts(
  view: PodView,
  candidates: readonly Candidate[],
  eligibility: Eligibility,
  needs: Needs | undefined,
): RankedFacts {
  const { requestsIn, learntIn, refusedBefore } = eligibility;
  const hasFacts = requestsIn !== undefined || refusedBefore !== undefined;
  const withFacts = (member: MemberView, index: number): MemberView => {
    const { name } = member;
    const candidate = candidates[index];
    const facts = {
      requests: candidate && requestsIn?.(candidate),
      learntUntil: candidate && learntIn?.(candidate)?.until,
      refusedBefore: refusedBefore?.(name),
    };
    return { ...member, ...defined(facts) };
  };
  const members = hasFacts ? view.members.map(withFacts) : view.members;
  return { ...stateOf(needs), members, ranking: rank(rankInput(view.proxy, eligibility, candidates, needs)) };
}

/** Adds the state of what the pod needs in each member. Phases ask for that of one. */
function withPreparations(facts: RankedFacts, needs: Needs | undefined): RankedFacts {
  if (needs?.state !== "there") return facts;
  return { ...facts, members: facts.members.map((member) => ({ ...member, preparation: needs.in(member.name) })) };
}

/** Reports whether a member answers and was read, so that its virtual node says no more. */
function isSettled({ reachable, read }: MemberView): boolean {
  return reachable && read;
}

/** Returns what the member shows, or showed, under the pod's name. */
function shownBy({ delegates }: Member, key: ObjectKey): Pick<MemberView, "delegate" | "departed"> {
  return defined({ delegate: delegates.get(key), departed: delegates.departed(key) });
}

function connectionOf(member: Member, candidate: Candidate): MemberView {
  const { name, reachable, reachableSince, read, nodesVersion, cluster } = member;
  const { scheduleTimeoutSeconds = CLUSTER_DEFAULTS.scheduleTimeoutSeconds } = cluster.spec;
  return {
    name,
    reachable,
    reachableSince,
    read,
    ...(candidate.closed !== undefined && isFaltering(member) ? { faltering: true } : {}),
    scheduleTimeoutMs: scheduleTimeoutSeconds * 1000,
    nodesVersion,
    ...factsOf(candidate),
  };
}

export function factsOf({ closed, overdue }: Candidate): Pick<MemberView, "removed" | "lacksNode" | "overdue"> {
  return {
    ...(closed?.reason === BEING_REMOVED.reason ? { removed: true } : {}),
    ...(closed?.lacksNode === true ? { lacksNode: true } : {}),
    ...(overdue === true ? { overdue } : {}),
  };
}

const UNCONNECTED = {
  reachable: false,
  reachableSince: 0,
  read: false,
  scheduleTimeoutMs: 0,
  nodesVersion: 0,
};

export function unconnectedCandidate(cluster: Stored<Cluster>, problem: string): Candidate {
  return candidateOf({
    cluster,
    closed: { reason: "ClusterNotReady", message: problem },
    overdue: false,
    foreign: undefined,
    nodeTaints: [],
    allocatable: {},
    largestNode: {},
    used: {},
    usedIn: () => ({}),
    reservedFor: () => undefined,
  });
}

/** Returns why a pod that waits for a node in the member would not go there now; undefined if it would. */
export function repelledBy(candidate: Candidate, proxy: Stored<Pod>): MemberView["repels"] {
  return candidate.closed?.reason === CORDONED.reason ? CORDONED : taintRefusal(proxy, candidate);
}

/** Reports whether a probe or watch failed, but not for so long that the virtual node would say so. */
export function isFaltering({
  probed,
  reachable,
  read,
  nodesRead,
  unreadable,
}: Pick<Member, "probed" | "reachable" | "read" | "nodesRead" | "unreadable">): boolean {
  if (!probed.reachable || unreadable.pods !== undefined || unreadable.nodes !== undefined) return false;
  return probed.message !== undefined || !(reachable && read && nodesRead);
}

/** Returns the proxy's uid, which every log line about a pod carries. */
export function identifyPod({ proxy, members }: View): Readonly<Record<string, string>> {
  if (proxy !== undefined) return { proxy: proxy.metadata.uid };
  for (const { delegate } of members) {
    const uid = delegate === undefined ? undefined : ownerOf(delegate)?.uid;
    if (uid !== undefined) return { proxy: uid };
  }
  return {};
}
