import type { Pod, Stored } from "../../api/kubernetes.ts";
import { type CountedPod, countedPod } from "../explain/host.ts";
import type { PodRow } from "./model.ts";
import { podRow } from "./rows.ts";

/** A pod as the page keeps it: its row and what is counted of it, made once. */
export interface ShownPod extends Pod {
  readonly row?: PodRow;
  readonly counted?: CountedPod;
}

// Pods of one cluster share far fewer names, states and times.
const MOST_SHARED = 20_000;

/** Stores the rows of pods instead of the pods, and equal values of rows once. A row has a tenth of the memory of its pod. */
export class StoredPods {
  readonly #texts = new Shared<string>();
  readonly #counted = new Shared<CountedPod>();

  /** Returns the pod without what rows do not show and members' sums do not count. */
  stored(pod: Stored<Pod>): Stored<ShownPod> {
    const { name, namespace = "", resourceVersion } = pod.metadata;
    const { uid, status, state, ready, restarts, member, node, workload, created, why } = podRow(pod);
    const text = (value: string): string => this.#texts.of(value, value);
    const optional = (value: string | undefined): string | undefined => (value === undefined ? undefined : text(value));
    const counted = countedPod(pod);
    const row: PodRow = {
      uid,
      namespace: text(namespace),
      name,
      status: text(status),
      state,
      ready: text(ready),
      restarts,
      member: optional(member),
      node: optional(node),
      workload: optional(workload),
      created: text(created),
      why: optional(why),
    };
    return {
      metadata: { uid, namespace: row.namespace, name, resourceVersion },
      row,
      counted: this.#counted.of(JSON.stringify(counted), counted),
    };
  }
}

/** Values of which equal ones share memory. */
class Shared<T> {
  readonly #values = new Map<string, T>();

  /** Returns the value that was kept first under the key. */
  of(key: string, value: T): T {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    // Rows keep the values that they use.
    if (this.#values.size >= MOST_SHARED) this.#values.clear();
    this.#values.set(key, value);
    return value;
  }
}
