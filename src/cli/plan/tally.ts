import type { Pod, Stored } from "../../api/kubernetes.ts";
import { memberOf } from "../../pods/proxy.ts";
import { isHostsOwn } from "./existing.ts";
import type { Place } from "./simulation.ts";

/** One pod of a workload, and where it goes. */
export type PlannedPod = {
  readonly name: string;
  /** It is there already. */
  readonly kept?: true;
  /** It is not delegated, since it was there before: it stays with the host's own scheduler. */
  readonly onHost?: true;
} & Omit<Place, "others">;

/** True for a pod that would have no place. */
export function isWaiting({ cluster, onHost }: PlannedPod): boolean {
  return cluster === undefined && onHost === undefined;
}

/** One member, as far as one workload is concerned. */
export interface PlannedMember {
  readonly cluster: string;
  /** How many of the pods run there. */
  readonly pods: number;
  /** How many wait there for room. */
  readonly waiting: number;
  /** Why others of the pods do not go there. */
  readonly whyNot: readonly { readonly reason: string; readonly message: string; readonly pods: number }[];
}

/** Sums up the places of one workload's pods by member. */
export class Tally {
  readonly pods: PlannedPod[] = [];
  readonly #clusters: readonly string[];
  readonly #whyNot = new Map<string, Map<string, { message: string; pods: number }>>();

  constructor(clusters: readonly string[]) {
    this.#clusters = clusters;
  }

  add(name: string, { others, ...place }: Place): void {
    this.pods.push({ name, ...place });
    this.#note(others);
  }

  #note(others: Place["others"]): void {
    for (const { cluster, reason, message } of others) {
      const reasons = this.#whyNot.get(cluster) ?? new Map<string, { message: string; pods: number }>();
      // What is left of a member changes with each pod: the last word is the one that stands.
      reasons.set(reason, { message, pods: (reasons.get(reason)?.pods ?? 0) + 1 });
      this.#whyNot.set(cluster, reasons);
    }
  }

  /** A pod that stays; `place` is where it goes when it has no node yet. */
  keep(pod: Stored<Pod>, { others = [], ...place }: Partial<Place> = {}): void {
    const cluster = memberOf(pod);
    const at = isHostsOwn(pod) ? { onHost: true as const } : cluster === undefined ? place : { cluster };
    this.pods.push({ name: pod.metadata.name, kept: true, ...at });
    this.#note(others);
  }

  /** Members in order, and names that are none. */
  members(): PlannedMember[] {
    const names = [...new Set([...this.#clusters, ...this.#whyNot.keys()])].sort();
    return names.map((cluster) => ({
      cluster,
      pods: this.pods.filter((pod) => pod.cluster === cluster).length,
      waiting: this.pods.filter(({ waitsIn }) => waitsIn === cluster).length,
      whyNot: [...(this.#whyNot.get(cluster) ?? [])].map(([reason, known]) => ({ reason, ...known })),
    }));
  }
}
