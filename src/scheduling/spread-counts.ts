import type { Pod, Stored } from "../api/kubernetes.ts";
import { type LabelSelector, selectorOf } from "../api/label-expressions.ts";
import { type Selector, selectorMatches } from "../api/label-selector.ts";
import { setLatest } from "../api/latest-entries.ts";
import { isBound, isLive } from "../pods/pod-state.ts";
import { memberOf } from "../pods/proxy.ts";
import { MemberCounts } from "./member-counts.ts";

export interface SpreadCountsOptions {
  readonly podsIn: (namespace: string) => Iterable<Stored<Pod>>;
  readonly podOf: (uid: string) => Stored<Pod> | undefined;
}

interface Counted {
  readonly selector: Selector;
  readonly pods: MemberCounts;
}

// Each costs time at every change of a pod in its namespace.
const MOST_SELECTORS = 64;

/** Counts a namespace's pods per member, by the selectors of spread constraints: in full once, then by events. */
export class SpreadCounts {
  readonly #options: SpreadCountsOptions;
  readonly #counted = new Map<string, Map<string, Counted>>();
  readonly #places = new Map<string, string>();

  constructor(options: SpreadCountsOptions) {
    this.#options = options;
  }

  /** Returns the number of matching pods per member, without the one of this uid. */
  of(namespace: string, labelSelector: LabelSelector, uid: string): Map<string, number> {
    const known = this.#counted.get(namespace) ?? new Map<string, Counted>();
    this.#counted.set(namespace, known);
    const text = JSON.stringify(labelSelector);
    const counted = known.get(text) ?? this.#count(namespace, selectorOf(labelSelector));
    setLatest(known, text, counted, MOST_SELECTORS);
    return counted.pods.without(uid);
  }

  update(pod: Stored<Pod>): void {
    const { namespace = "", uid } = pod.metadata;
    if (isBound(pod)) this.#places.delete(uid);
    for (const counted of this.#counted.get(namespace)?.values() ?? [])
      counted.pods.move(uid, this.#memberOf(counted, pod));
  }

  /** Notes the member where an unbound pod has its delegate, or is about to; undefined: none any more. */
  place(uid: string, member: string | undefined): void {
    const pod = this.#options.podOf(uid);
    if (pod === undefined || isBound(pod)) return;
    if (member === undefined) this.#places.delete(uid);
    else this.#places.set(uid, member);
    this.update(pod);
  }

  placeOf(uid: string): string | undefined {
    return this.#places.get(uid);
  }

  /** Notes a member that shows the delegate, unless the pod has a member already. */
  noteDelegate(uid: string, member: string): void {
    if (!this.#places.has(uid)) this.place(uid, member);
  }

  remove({ namespace = "", uid }: Stored<Pod>["metadata"]): void {
    this.#places.delete(uid);
    for (const { pods } of this.#counted.get(namespace)?.values() ?? []) pods.move(uid, undefined);
  }

  forget(namespace: string): void {
    this.#counted.delete(namespace);
  }

  #count(namespace: string, selector: Selector): Counted {
    const counted: Counted = { selector, pods: new MemberCounts() };
    for (const pod of this.#options.podsIn(namespace))
      counted.pods.move(pod.metadata.uid, this.#memberOf(counted, pod));
    return counted;
  }

  #memberOf({ selector }: Counted, pod: Stored<Pod>): string | undefined {
    const { uid, labels = {} } = pod.metadata;
    if (!isLive(pod) || !selectorMatches(selector, labels)) return undefined;
    return isBound(pod) ? memberOf(pod) : this.#places.get(uid);
  }
}
