import type { Cluster } from "../../api/cluster.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { Simulation } from "../../simulation/simulation.ts";

/** The host with its members at their best: they answer, stay, take pods, and run none. */
export class MembersAtBest {
  readonly #host: HostState;
  readonly #now: number;
  #simulation: Simulation | undefined;

  constructor(host: HostState, now: number) {
    this.#host = host;
    this.#now = now;
  }

  /** Returns why no member could ever run the pod. Undefined if one may, or is not known well enough. */
  whyNever(pod: Stored<Pod>): string | undefined {
    const { clusters } = this.#host;
    if (clusters.length === 0 || !clusters.every(isKnown)) return undefined;
    this.#simulation ??= new Simulation(
      { ...this.#host, clusters: clusters.map(atBest), nodes: [], proxies: [], claims: new Map() },
      this.#now,
    );
    const { cluster, message } = this.#simulation.place(pod);
    this.#simulation.withdraw([pod]);
    return cluster === undefined ? message : undefined;
  }
}

/** Nodes that take no pods now are not told, nor are those that an autoscaler would add to none. */
function isKnown({ status = {} }: Stored<Cluster>): boolean {
  const { nodes = 0, allocatable, nodeKinds } = status;
  const told = nodeKinds?.reduce((sum, { count }) => sum + count, 0) ?? nodes;
  return nodes > 0 && allocatable !== undefined && told === nodes;
}

function atBest(cluster: Stored<Cluster>): Stored<Cluster> {
  const { status = {} } = cluster;
  const others = status.conditions?.filter(({ type }) => type !== "Ready") ?? [];
  const ready = {
    type: "Ready",
    status: "True",
    reason: "ProbeSucceeded",
    message: "",
    lastTransitionTime: "",
  } as const;
  // A member that leaves may join again.
  const { deletionTimestamp: _, ...metadata } = cluster.metadata;
  return { ...cluster, metadata, status: { ...status, requestedByOthers: {}, conditions: [ready, ...others] } };
}
