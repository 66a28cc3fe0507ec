import type { Cluster } from "../api/cluster.ts";
import type { KubeNode, Namespace, Pod, Stored } from "../api/kubernetes.ts";
import type { PlacementDefaults } from "../api/placement-defaults.ts";
import type { DependencyKey } from "../pods/dependencies.ts";
import type { FollowedObjects } from "../scheduling/followed-objects.ts";
import type { FindWorkload } from "../scheduling/workload.ts";
import type { ClaimsByNamespace } from "./claims.ts";

/** The host's objects that placement depends on. */
export interface HostState {
  readonly clusters: readonly Stored<Cluster>[];
  readonly nodes: readonly Stored<KubeNode>[];
  readonly proxies: readonly Stored<Pod>[];
  readonly namespaces: readonly Stored<Namespace>[];
  readonly defaults: readonly Stored<PlacementDefaults>[];
  /** Finds workloads whose wishes their pods do not carry. Absent: there are none. */
  readonly findWorkload?: FindWorkload;
  /** Absent: claims are ignored. */
  readonly claims?: ClaimsByNamespace;
  /** Types whose objects follow pods. Absent: none. */
  readonly followed?: readonly FollowedObjects[];
  /** Objects that pods name and that the host lacks. Absent: nothing is missing. */
  readonly missing?: ReadonlySet<DependencyKey>;
}
