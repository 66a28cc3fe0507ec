import type { Pod, Stored } from "../api/kubernetes.ts";
import type { MemberConnection, Registry } from "../clusters/registry.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { NotPlacedReason } from "../pods/proxy-conditions.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ControllerOptions } from "../runtime/controller.ts";
import type { LeaderElector } from "../runtime/leader-election.ts";
import type { ReadStore } from "../runtime/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Traces } from "../telemetry/traces.ts";
import type { EventOutcome } from "./pod-events/writer.ts";
import type { Kubelets, NodePods } from "./virtual-node/model.ts";

export interface ControllersOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly metrics?: Metrics;
  /** Makes the client of a member from its kubeconfig. */
  readonly connect: (name: string, kubeconfig: string) => MemberConnection;
  /** How delegates' events are told on their proxies; absent: they are not. */
  readonly podEvents?: {
    /** The host again, as a client of its own: events must take no request's place. */
    readonly host: ClusterClient;
    /** Only events of type Warning. */
    readonly warningsOnly: boolean;
    readonly onOutcome?: (outcome: EventOutcome) => void;
  };
  /** Makes the kubelet API of the virtual nodes; without it they have none. */
  readonly kubelets?: (context: KubeletContext) => Kubelets;
  /** Pods that virtual nodes say can be allocated; default `none`. */
  readonly nodePods?: NodePods;
  /** What tells a host that was set back to a backup. */
  readonly election?: Pick<LeaderElector, "leaderless" | "confirm">;
  /** Address of the host's API server for pods of members whose Cluster names none. */
  readonly homeApiServer?: string;
  /** The reason of `PodScheduled` while no member can have a pod; absent: `NotPlaced`. */
  readonly notPlacedReason?: NotPlacedReason;
  /** Where pods' ways are told; absent: nowhere. */
  readonly traces?: Traces | undefined;
}

/** What the kubelet API of the virtual nodes is made of. */
export interface KubeletContext {
  readonly registry: Registry;
  /** The host's proxies. */
  readonly proxies: () => ReadStore<Pod>;
  readonly proxiesOn: (node: string) => readonly Stored<Pod>[];
  /** A node's endpoint came or went. */
  readonly onChange: (cluster: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}
