import type { KubeNode } from "../api/kubernetes.ts";
import { fitOf, type NodeFit, type NodeNeeds } from "../placement/node-fit.ts";

// Pods of one workload want the same: so many workloads' answers are kept before the oldest is forgotten.
const KEPT = 500;

/** What a member's nodes have for each kind of pod, reckoned once per kind and state of the nodes. */
export class NodeFits {
  readonly #nodes: () => readonly KubeNode[];
  readonly #fits = new Map<string, NodeFit>();

  constructor(nodes: () => readonly KubeNode[]) {
    this.#nodes = nodes;
  }

  fit(needs: NodeNeeds): NodeFit {
    const { kind } = needs;
    let fit = this.#fits.get(kind);
    if (fit === undefined) {
      fit = fitOf(needs, this.#nodes());
      this.#fits.set(kind, fit);
      for (const oldest of this.#fits.keys()) {
        if (this.#fits.size <= KEPT) break;
        this.#fits.delete(oldest);
      }
    }
    return fit;
  }

  /** A node came, went or changed. */
  forget(): void {
    this.#fits.clear();
  }
}
