import { annotationRoomProblem } from "../api/annotation-room.ts";
import { type Annotations, type ParsedPlacement, parsePlacement, type RequestedPlacement } from "../api/annotations.ts";
import type { ClusterSpread } from "../api/cluster-spread.ts";
import { defined } from "../api/defined.ts";
import { GROUP_ANNOTATION, GROUP_BY_ANNOTATION } from "../api/keys.ts";
import { type Namespace, objectKey, type Pod, type Stored } from "../api/kubernetes.ts";
import { defaultPlacement, PLACEMENT_DEFAULTS_NAME, type PlacementDefaults } from "../api/placement-defaults.ts";
import { outdatedWishes, type WorkloadRef, wishesAmong, withWishes } from "../api/workload-wishes.ts";
import type { DelegateRequests } from "../clusters/delegate-requests.ts";
import type { Candidate, Rule } from "../placement/candidate.ts";
import { type InMember, inMembers } from "../placement/in-member.ts";
import { groupRule, placementRules, policyRules } from "../placement/rules.ts";
import { type HostAdmission, type Merged, mergedInto } from "../pods/host-admission.ts";
import { controllerOf, isLive } from "../pods/pod-state.ts";
import { memberOf } from "../pods/proxy.ts";
import { virtualNodeSpread, virtualNodeWish } from "../pods/virtual-node-terms.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ReadStore } from "../runtime/store.ts";
import { type FindPod, type GroupName, type Groups, groupOf } from "./groups.ts";
import type { KnownPods } from "./known-pods.ts";
import type { Memories } from "./memories.ts";
import { mayHold } from "./memory.ts";
import type { OwnedProxies } from "./owned-proxies.ts";
import type { RequestMutations } from "./request-mutations.ts";
import type { SpreadCounts } from "./spread-counts.ts";
import type { PodWishes } from "./workload.ts";

const GROUP_KEYS = [GROUP_ANNOTATION, GROUP_BY_ANNOTATION];

/** A member as placement uses it; `plan` and simulations have members without a connection. */
export interface PlacementMember {
  readonly name: string;
  readonly read: boolean;
  /** The member's delegates are still being read, and nothing says that they cannot be. */
  readonly syncing: boolean;
  /** Changes with each event that may let it take a pod that it refused. */
  readonly roomVersion: string;
  readonly requests: Pick<DelegateRequests, "reserve" | "correct" | "release">;
  candidate(): Candidate;
}

export interface PlacementMembers {
  members(): readonly PlacementMember[];
  member(name: string): PlacementMember | undefined;
  /** Returns Clusters without usable credentials: pods may be there all the same. */
  unconnected(): readonly { readonly metadata: { readonly name: string } }[];
}

export interface PodRulesOptions {
  readonly registry: PlacementMembers;
  readonly namespaces: ReadStore<Namespace>;
  readonly defaults: ReadStore<PlacementDefaults>;
  /** The host's classes, by which its admission completes pods. Undefined: pods are as their authors write them. */
  readonly classes: Pick<HostAdmission, "runtimeClass" | "priorityClass"> | undefined;
  /** Absent: pods carry their wishes. */
  readonly wishes?: PodWishes | undefined;
  readonly pods: Pick<KnownPods, "get" | "joining">;
  readonly owned: OwnedProxies;
  readonly memories: Memories;
  readonly mutations: RequestMutations;
  readonly groups: Groups;
  /** Returns the group of pods that an object confines to one member. Absent: none does. */
  readonly confinement?: ((pod: Pod) => GroupName | undefined) | undefined;
  readonly spread: SpreadCounts;
  readonly clock: Pick<Clock, "now">;
}

/** Makes the rules for a pod from Clusters, namespaces and annotations. */
export class PodRules {
  readonly #options: PodRulesOptions;

  constructor(options: PodRulesOptions) {
    this.#options = options;
  }

  /** Returns the pod's own annotations, completed by its workload's wishes and the defaults of the namespace and of all namespaces. */
  parse(pod: Stored<Pod>): ParsedPlacement {
    const { metadata } = pod;
    const message = pod.spec?.nodeName === undefined ? annotationRoomProblem(metadata.annotations) : undefined;
    if (message !== undefined) return { ok: false, problems: [{ key: "metadata.annotations", message }] };
    const fallback = this.#options.defaults.get(objectKey({ name: PLACEMENT_DEFAULTS_NAME }));
    const base = fallback === undefined ? {} : defaultPlacement(fallback.spec);
    const defaults = this.#namespace(metadata)?.metadata.annotations ?? {};
    const parsed = parsePlacement(this.#annotations(pod), defaults, base);
    return parsed.ok ? { ok: true, placement: withOwnTerms(parsed.placement, pod) } : parsed;
  }

  /** Returns the pod's workload while its wishes are not known. */
  unseen(pod: Stored<Pod>): WorkloadRef | undefined {
    return this.#options.wishes?.of(pod).unseen;
  }

  /** Returns what the pod itself says, and no change of its workload or of defaults takes back. */
  fixed(pod: Stored<Pod>): RequestedPlacement {
    const { annotations = {} } = this.#options.wishes?.of(pod) ?? {};
    const outdated = outdatedWishes(annotations);
    const own = Object.entries(pod.metadata.annotations ?? {}).filter(([key]) => !outdated.has(key));
    const parsed = parsePlacement(Object.fromEntries(own));
    return withOwnTerms(parsed.ok ? parsed.placement : {}, pod);
  }

  /** Returns where the pod's workload now wants its pods, as far as the pod does not say it itself; undefined if anywhere. */
  demanded(pod: Stored<Pod>): RequestedPlacement | undefined {
    const workload = this.#options.wishes?.of(pod).annotations ?? {};
    const own = withWishes(pod.metadata.annotations ?? {}, workload);
    const demands = Object.entries(wishesAmong(workload)).filter(([key, value]) => own[key] === value);
    if (demands.length === 0) return undefined;
    const parsed = parsePlacement(Object.fromEntries(demands));
    if (!parsed.ok) return undefined;
    const { clusters, selector, affinity } = parsed.placement;
    return (clusters ?? selector ?? affinity) === undefined ? undefined : parsed.placement;
  }

  optedIn({ metadata }: Stored<Pod>): boolean {
    return this.#namespace(metadata) !== undefined;
  }

  namespaceLabels(name: string): Readonly<Record<string, string>> | undefined {
    const namespace = this.#namespace({ namespace: name });
    return namespace && (namespace.metadata.labels ?? {});
  }

  merged(pod: Stored<Pod>): Merged | undefined {
    const { classes } = this.#options;
    const namespace = (name: string): Namespace | undefined => this.#namespace({ namespace: name });
    return classes && mergedInto(pod, { ...classes, namespace });
  }

  /** Returns the pod as each member would have it, by its overrides and by what is known of the member's admission. */
  inMember(pod: Stored<Pod>, { overrides }: RequestedPlacement): InMember {
    const { mutations, clock } = this.#options;
    const learnt = mutations.of(pod, clock.now());
    const mutationIn = learnt && ((member: string) => learnt(member)?.mutation);
    return inMembers(pod, overrides, this.merged(pod), mutationIn);
  }

  update(proxy: Stored<Pod>, find?: FindPod): void {
    this.#options.groups.update(proxy, this.groupOf(proxy, find));
  }

  /** Returns the operators' rules and the authors' wishes for a proxy that needs a place. */
  of(
    proxy: Stored<Pod>,
    placement: RequestedPlacement,
  ): { readonly policy: readonly Rule[]; readonly wishes: readonly Rule[] } {
    const inMember = this.inMember(proxy, placement);
    const namespaceLabels = this.#namespace(proxy.metadata)?.metadata.labels ?? {};
    // Asking a thousand members takes longer than all other rules together.
    const candidates =
      placement.spread === undefined ? [] : this.#options.registry.members().map((member) => member.candidate());
    const spreadCounts = (spread: ClusterSpread): ReadonlyMap<string, number> => this.#spreadCounts(proxy, spread);
    const facts = { pod: proxy, inMember, placement, namespaceLabels, candidates, spreadCounts };
    return { policy: [...policyRules(facts), ...this.#group(proxy)], wishes: placementRules(facts) };
  }

  #annotations(pod: Stored<Pod>): Annotations {
    const { annotations = {} } = pod.metadata;
    const { wishes } = this.#options;
    return wishes === undefined ? annotations : withWishes(annotations, wishes.of(pod).annotations);
  }

  #namespace({ namespace = "" }: { readonly namespace?: string }): Stored<Namespace> | undefined {
    return this.#options.namespaces.get(objectKey({ name: namespace }));
  }

  /** Returns the pod's group by what confines it, its annotations, namespace or owners. `find` looks up owners that are no proxies. */
  groupOf(proxy: Stored<Pod>, find: FindPod = () => undefined): GroupName | undefined {
    const confined = this.#options.confinement?.(proxy);
    if (confined !== undefined) return confined;
    const { annotations = {} } = proxy.metadata;
    const defaults = this.#namespace(proxy.metadata)?.metadata.annotations ?? {};
    // Called at every event of every proxy, few of which have a group.
    if (!GROUP_KEYS.some((key) => key in annotations || key in defaults)) return undefined;
    const parsed = this.parse(proxy);
    if (!parsed.ok) return undefined;
    const { pods } = this.#options;
    const owner: FindPod = (uid) => pods.get(uid) ?? find(uid);
    return groupOf(proxy, parsed.placement, owner);
  }

  #group({ metadata: { uid } }: Stored<Pod>): Rule[] {
    const { groups, registry, memories } = this.#options;
    const place = groups.placeOf(uid);
    if (place === undefined) return [];
    // Only inherited pods, or those of a new connection, can have a delegate that is not known.
    const mayHide = (member: string): boolean => place.others.some((other) => mayHold(memories.of(other), member));
    const unread = registry.members().filter(({ name, read }) => !read && mayHide(name));
    return [groupRule({ ...place, unread: unread.map(({ name }) => name) })];
  }

  #spreadCounts(proxy: Stored<Pod>, { labelSelector }: ClusterSpread): ReadonlyMap<string, number> {
    const { namespace = "", uid } = proxy.metadata;
    if (labelSelector !== undefined) return this.#options.spread.of(namespace, labelSelector, uid);
    return controllerOf(proxy) === undefined ? new Map() : this.#placed(proxy);
  }

  #placed(proxy: Stored<Pod>): Map<string, number> {
    const { owned, pods, memories } = this.#options;
    const { uid } = proxy.metadata;
    const owner = controllerOf(proxy)?.uid ?? "";
    const counts = owned.counts(owner).without(uid);
    for (const pod of pods.joining) {
      const isCounted = pod.metadata.uid !== uid && controllerOf(pod)?.uid === owner && isLive(pod);
      const member = isCounted ? (memberOf(pod) ?? memories.of(pod.metadata.uid).lastReserved) : undefined;
      if (member !== undefined) counts.set(member, (counts.get(member) ?? 0) + 1);
    }
    return counts;
  }
}

function withOwnTerms(placement: RequestedPlacement, pod: Pod): RequestedPlacement {
  const virtualNode = virtualNodeWish(pod);
  const spread = virtualNodeSpread(pod);
  return {
    ...placement,
    ...defined({ virtualNode }),
    ...(spread.length === 0 ? {} : { spread: [...(placement.spread ?? []), ...spread] }),
  };
}
