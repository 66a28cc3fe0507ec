import type { KubeNode } from "../api/kubernetes.ts";
import { setLatest } from "../api/latest-entries.ts";
import { fitOf, type NodeFit, type NodeRequirements } from "../placement/node-fit.ts";

// Pods of one workload have the same needs, so this is about the number of workloads.
const KEPT = 500;

/** A cache of node fits by kind of pod, valid until the nodes change. */
export class NodeFits {
  readonly #nodes: () => readonly KubeNode[];
  readonly #fits = new Map<string, NodeFit>();

  constructor(nodes: () => readonly KubeNode[]) {
    this.#nodes = nodes;
  }

  fit(needs: NodeRequirements): NodeFit {
    const { kind } = needs;
    let fit = this.#fits.get(kind);
    if (fit === undefined) {
      fit = fitOf(needs, this.#nodes());
      setLatest(this.#fits, kind, fit, KEPT);
    }
    return fit;
  }

  forget(): void {
    this.#fits.clear();
  }
}
