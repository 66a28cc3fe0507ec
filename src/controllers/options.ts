import type { Pod, Stored } from "../api/kubernetes.ts";
import type { Shard } from "../api/shards.ts";
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
import type { AgentConnection } from "./agents/controller.ts";
import type { HubServing } from "./agents/hub-keeper.ts";
import type { EventOutcome } from "./pod-events/writer.ts";
import type { Kubelets, NodePods } from "./virtual-node/model.ts";

export interface ControllersOptions extends ControllerOptions {
  readonly host: ClusterClient;
  /** The part of the host's namespaces to have in hand. Default: all. */
  readonly shard?: Shard;
  readonly metrics?: Metrics;
  /** `agent` is for members that are reached through one. */
  readonly connect: (name: string, kubeconfig: string, agent: AgentConnection | undefined) => MemberConnection;
  readonly hub?: HubServing | undefined;
  /** Writing delegates' events to their proxies. Absent: they are not written. */
  readonly podEvents?:
    | {
        /** A client for events alone: they must not delay other requests. */
        readonly host: ClusterClient;
        readonly warningsOnly: boolean;
        readonly onOutcome?: (outcome: EventOutcome) => void;
      }
    | undefined;
  readonly kubelets?: ((context: KubeletContext) => Kubelets) | undefined;
  /** Allocatable pods of virtual nodes. Default `none`. */
  readonly nodePods?: NodePods;
  /** The election, which detects a host that was restored from a backup. */
  readonly election?: Pick<LeaderElector, "leaderless" | "confirm">;
  readonly homeApiServer?: string | undefined;
  readonly notPlacedReason?: NotPlacedReason;
  readonly traces?: Traces | undefined;
}

export interface KubeletContext {
  readonly registry: Registry;
  readonly proxies: ReadStore<Pod>;
  readonly proxiesOn: (node: string) => readonly Stored<Pod>[];
  readonly shard: Shard;
  readonly onChange: (cluster: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}
