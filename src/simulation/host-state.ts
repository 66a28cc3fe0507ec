import type { Cluster } from "../api/cluster.ts";
import type { KubeNode, Namespace, Pod, Stored } from "../api/kubernetes.ts";
import type { PlacementDefaults } from "../api/placement-defaults.ts";
import type { FindWorkload } from "../scheduling/workload.ts";
import type { ClaimsByNamespace } from "./claims.ts";
import type { NamedObjects } from "./named-objects.ts";

/** The host's objects that placement depends on. */
export interface HostState extends NamedObjects {
  readonly clusters: readonly Stored<Cluster>[];
  readonly nodes: readonly Stored<KubeNode>[];
  readonly proxies: readonly Stored<Pod>[];
  readonly namespaces: readonly Stored<Namespace>[];
  readonly defaults: readonly Stored<PlacementDefaults>[];
  /** Finds workloads whose wishes their pods do not carry. Absent: there are none. */
  readonly findWorkload?: FindWorkload;
  /** Absent: claims are ignored. */
  readonly claims?: ClaimsByNamespace;
}
