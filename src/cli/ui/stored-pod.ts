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
  readonly #texts = new Map<string, string>();
  readonly #counted = new Map<string, CountedPod>();

  /** Returns the pod without what rows do not show and members' sums do not count. */
  stored(pod: Stored<Pod>): Stored<ShownPod> {
    const { uid, name, resourceVersion } = pod.metadata;
    const row = podRow(pod, (text) => share(this.#texts, text, text));
    const counted = countedPod(pod);
    return {
      metadata: { uid, namespace: row.namespace, name, resourceVersion },
      row,
      counted: share(this.#counted, JSON.stringify(counted), counted),
    };
  }
}

/** Returns the value that was kept first under the key, so that equal ones share memory. */
function share<T>(values: Map<string, T>, key: string, value: T): T {
  const known = values.get(key);
  if (known !== undefined) return known;
  // Rows keep the values that they use.
  if (values.size >= MOST_SHARED) values.clear();
  values.set(key, value);
  return value;
}
