import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { type LabelSelector, selectorOf } from "../../../api/label-expressions.ts";
import { type Selector, selectorMatches } from "../../../api/label-selector.ts";
import { isBound, isLive } from "../../../pods/phase.ts";
import { memberOf } from "../../../pods/proxy.ts";

/** What pods are counted from. */
export interface SpreadCountsOptions {
  /** All live and ended pods of the namespace, in overflow mode or not. */
  readonly podsIn: (namespace: string) => Iterable<Stored<Pod>>;
  readonly podOf: (uid: string) => Stored<Pod> | undefined;
}

/** Pods of one namespace that one selector matches. */
interface Counted {
  readonly selector: Selector;
  /** By uid. */
  readonly members: Map<string, string>;
  /** By member. */
  readonly counts: Map<string, number>;
}

// Each costs a look at every change of every pod of its namespace; those that are asked for again stay.
const MOST_SELECTORS = 64;

/**
 * How many pods of a namespace each member has, by the selectors that pods are spread by. Gone through once for each selector,
 * and kept by events and placements from then on: a look at one pod of many must not be a look at all.
 */
export class SpreadCounts {
  readonly #options: SpreadCountsOptions;
  /** By namespace and selector. */
  readonly #counted = new Map<string, Map<string, Counted>>();
  /** Members of pods that the host shows without a node, by uid. */
  readonly #places = new Map<string, string>();

  constructor(options: SpreadCountsOptions) {
    this.#options = options;
  }

  /** The pods that the selector matches by member, without the one of this uid. */
  of(namespace: string, labelSelector: LabelSelector, uid: string): Map<string, number> {
    const known = this.#counted.get(namespace) ?? new Map<string, Counted>();
    this.#counted.set(namespace, known);
    const text = JSON.stringify(labelSelector);
    const counted = known.get(text) ?? this.#count(namespace, selectorOf(labelSelector));
    // Last is what was asked for last.
    known.delete(text);
    known.set(text, counted);
    for (const oldest of known.keys()) {
      if (known.size <= MOST_SELECTORS) break;
      known.delete(oldest);
    }
    const counts = new Map(counted.counts);
    const own = counted.members.get(uid);
    if (own !== undefined) counts.set(own, (counts.get(own) ?? 0) - 1);
    return counts;
  }

  /** A pod is as the host shows it. */
  update(pod: Stored<Pod>): void {
    const { namespace = "", uid } = pod.metadata;
    if (isBound(pod)) this.#places.delete(uid);
    for (const counted of this.#counted.get(namespace)?.values() ?? [])
      move(counted, uid, this.#memberOf(counted, pod));
  }

  /** A pod without a node has its delegate, or is about to, in this member; undefined: nowhere any more. */
  place(uid: string, member: string | undefined): void {
    const pod = this.#options.podOf(uid);
    if (pod === undefined || isBound(pod)) return;
    if (member === undefined) this.#places.delete(uid);
    else this.#places.set(uid, member);
    this.update(pod);
  }

  /** The member that a pod without a node has, or is about to get. */
  placeOf(uid: string): string | undefined {
    return this.#places.get(uid);
  }

  /** A member shows the pod's delegate. Passed over when the pod has a member already. */
  held(uid: string, member: string): void {
    if (!this.#places.has(uid)) this.place(uid, member);
  }

  /** A pod is gone. */
  remove({ namespace = "", uid }: Stored<Pod>["metadata"]): void {
    this.#places.delete(uid);
    for (const counted of this.#counted.get(namespace)?.values() ?? []) move(counted, uid, undefined);
  }

  /** Nothing is left of the namespace. */
  forget(namespace: string): void {
    this.#counted.delete(namespace);
  }

  #count(namespace: string, selector: Selector): Counted {
    const counted: Counted = { selector, members: new Map(), counts: new Map() };
    for (const pod of this.#options.podsIn(namespace)) move(counted, pod.metadata.uid, this.#memberOf(counted, pod));
    return counted;
  }

  /** The member that the pod counts for. */
  #memberOf({ selector }: Counted, pod: Stored<Pod>): string | undefined {
    const { uid, labels = {} } = pod.metadata;
    if (!isLive(pod) || !selectorMatches(selector, labels)) return undefined;
    return isBound(pod) ? memberOf(pod) : this.#places.get(uid);
  }
}

function move({ members, counts }: Counted, uid: string, member: string | undefined): void {
  const before = members.get(uid);
  if (before === member) return;
  if (before !== undefined) {
    const left = (counts.get(before) ?? 0) - 1;
    if (left > 0) counts.set(before, left);
    else counts.delete(before);
  }
  if (member === undefined) {
    members.delete(uid);
    return;
  }
  members.set(uid, member);
  counts.set(member, (counts.get(member) ?? 0) + 1);
}
