import type { KubeNode } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { HomeApi } from "../../pods/home-api.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** What the delegation controller works on. */
export interface DelegationOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Registry;
  /** The host's virtual nodes, by name. */
  readonly virtualNodes: ReadStore<KubeNode>;
  /** How pods in a member reach the host's API server. */
  readonly homeApi: (member: string) => HomeApi;
  /** The number of proxies bound to this Cluster's virtual node has changed. */
  readonly onBound: (cluster: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onReconcile?: (outcome: string, seconds: number) => void;
}
