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

/** A member for one pod: as placement sees it, and as the phases do. */
export interface ObservedMember {
  readonly candidate: Candidate;
  readonly connection: MemberView;
}

/** Reads the view that a decision on one pod name depends on. Changes nothing. */
export class Observer {
  readonly #options: ObserverOptions;
  /** The members as they were last, in their order. One makes another candidate whenever anything but its amounts changes. */
  readonly #known: ObservedMember[] = [];

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  observe(key: ObjectKey): View | undefined {
    const { proxies } = this.#options;
    // Before the host's proxies are known, every delegate would look like an orphan.
    if (!proxies.synced) return undefined;
    const proxy = proxies.get(key);
    const sources = [...this.#sources(key, this.#concerned(key, proxy)), ...this.#unconnected(proxy)];
    if (proxy === undefined && sources.every(({ connection }) => connection.delegate === undefined)) return undefined;
    return this.#view(key, proxy, sources);
  }

  /** Returns the view of a pod that is no proxy yet, as if it were the proxy under the key. */
  seen(key: ObjectKey, pod: Stored<Pod>): View {
    const sources = [...this.#sources(key, this.#options.registry.members()), ...this.#unconnected(pod)];
    const eligibility = this.#options.placementState.eligibilities.of(pod);
    const view = this.#base(key, pod, sources, eligibility);
    return hasProxy(view) ? ranked(onDemand(view, sources, eligibility, () => undefined)) : view;
  }

  /** Returns the members as they are for the pod. Most have nothing of it, and are the same for all such pods. */
  #sources(key: ObjectKey, members: readonly Member[]): ObservedMember[] {
    const holders = new Set(this.#options.registry.holders(key));
    return members.map((member, index) => {
      const candidate = member.candidate();
      let known = this.#known[index];
      if (known?.candidate !== candidate) {
        known = { candidate, connection: connectionOf(member, candidate) };
        this.#known[index] = known;
      }
      if (!holders.has(member)) return known;
      const [delegate, departed] = [member.delegates.get(key), member.delegates.departed(key)];
      return { candidate, connection: { ...known.connection, ...defined({ delegate, departed }) } };
    });
  }

  #view(key: ObjectKey, proxy: Stored<Pod> | undefined, sources: readonly ObservedMember[]): View {
    const { placementState, preparer } = this.#options;
    const eligibility = placementState.eligibilities.of(proxy);
    const view = this.#base(key, proxy, sources, eligibility);
    if (!hasProxy(view) || isDeleting(view.proxy)) return view;
    if (isBound(view.proxy)) return this.#withNeeds(view, sources);
    return onDemand(view, sources, eligibility, () => preparer.needs(view.proxy));
  }

  #base(
    key: ObjectKey,
    proxy: Stored<Pod> | undefined,
    sources: readonly ObservedMember[],
    eligibility: Eligibility,
  ): View {
    const { placementState, clock } = this.#options;
    const memory = placementState.memories.of(proxy?.metadata.uid ?? "");
    const waitingSince = this.#options.waiting.since(key);
    const merged = proxy && placementState.podRules.merged(proxy);
    return {
      ref: objectRef(key),
      proxy,
      members: sources.map((source) => this.#memberView(source, proxy, memory, eligibility)),
      memory,
      wallOffsetMs: clock.wall() - clock.now(),
      ...placementFacts(eligibility),
      ...defined({ waitingSince, merged }),
    };
  }

  #memberView(
    { candidate, connection }: ObservedMember,
    proxy: Stored<Pod> | undefined,
    memory: Memory,
    eligibility: Eligibility,
  ): MemberView {
    const { name, reachable, read } = connection;
    const view = reachable && read ? connection : { ...connection, ...this.#nodeState(name) };
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
  #withNeeds(view: PodView, sources: readonly ObservedMember[]): View {
    const { proxy } = view;
    const source = sources.find(({ connection }) => connection.name === memberOf(proxy));
    if (source === undefined || isTerminal(proxy) || isFor(source.connection.delegate, proxy)) {
      return view;
    }
    const { placementState, preparer } = this.#options;
    const { name } = source.connection;
    const needs = preparer.needs(proxy);
    const misfit = placementState.eligibilities.misfit(proxy, source.candidate);
    // The delegate also waits until it is known how it reaches the host's API server.
    const isPending =
      placementState.eligibilities.apiPending(proxy, name) && (needs === undefined || needs.state === "there");
    const preparation = isPending ? "unprepared" : preparationIn(needs, name);
    const own = { preparation, ...defined({ misfit }) };
    const members = view.members.map((member) => (member.name === name ? { ...member, ...own } : member));
    return { ...view, ...stateOf(needs), members };
  }

  #concerned(key: ObjectKey, proxy: Stored<Pod> | undefined): readonly Member[] {
    const { placementState, registry } = this.#options;
    if (proxy !== undefined && !isBound(proxy)) return registry.members();
    const concerned = new Set(registry.holders(key));
    const { uid = "" } = proxy?.metadata ?? {};
    for (const name of [proxy && memberOf(proxy), placementState.memories.of(uid).uncertain]) {
      const member = name === undefined ? undefined : registry.member(name);
      if (member !== undefined) concerned.add(member);
    }
    return [...concerned];
  }

  /** Returns the Clusters that cannot be reached for want of credentials: a proxy may have its delegate in one all the same. */
  #unconnected(proxy: Stored<Pod> | undefined): ObservedMember[] {
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
          const problem = registry.problem(cluster.metadata.name) ?? "it is not connected";
          const { candidate, connection } = unconnectedSource(cluster, problem);
          return { candidate, connection: isRefused(cluster) ? { ...connection, excluded: problem } : connection };
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
  sources: readonly ObservedMember[],
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
        facts ??= rankedFacts(view, sources, eligibility, known());
        return facts;
      },
      known: () => facts ?? stateOf(needed?.needs),
    },
  };
}

function rankedFacts(
  view: PodView,
  sources: readonly ObservedMember[],
  eligibility: Eligibility,
  needs: Needs | undefined,
): RankedFacts {
  const { requestsIn, learntIn, refusedBefore } = eligibility;
  const candidates = sources.map(({ candidate }) => candidate);
  const hasFacts = needs?.state === "there" || requestsIn !== undefined || refusedBefore !== undefined;
  const withFacts = (member: MemberView, index: number): MemberView => {
    const { name } = member;
    const candidate = candidates[index];
    const facts = {
      preparation: needs?.state === "there" ? needs.in(name) : undefined,
      requests: candidate && requestsIn?.(candidate),
      learntUntil: candidate && learntIn?.(candidate)?.until,
      refusedBefore: refusedBefore?.(name),
    };
    return { ...member, ...defined(facts) };
  };
  const members = hasFacts ? view.members.map(withFacts) : view.members;
  return { ...stateOf(needs), members, ranking: rank(rankInput(view.proxy, eligibility, candidates, needs)) };
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

function unconnectedSource(cluster: Stored<Cluster>, problem: string): ObservedMember {
  const connection = {
    name: cluster.metadata.name,
    reachable: false,
    reachableSince: 0,
    read: false,
    scheduleTimeoutMs: 0,
    nodesVersion: 0,
  };
  return { candidate: unconnectedCandidate(cluster, problem), connection };
}

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
