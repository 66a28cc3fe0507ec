import type { ClusterClient } from "../../src/kube/client.ts";
import type { FaultProxy } from "../support/clusters/fault-proxy.ts";
import type { Cluster } from "../support/clusters/types.ts";
import type { KueueManager } from "../support/engines/kueue-manager.ts";
import type { Legation, LegationProcess } from "../support/legation/start.ts";
import type { WriteGate } from "../support/write-gate/write-gate.ts";
import type { AgentScene } from "./agents.ts";
import type { Kind } from "./objects/kinds.ts";
import type { Ledger } from "./objects/ledger.ts";

/** The clusters and namespace of a chaos run. */
export interface Scene {
  readonly host: Cluster;
  readonly members: { readonly west: Cluster; readonly east: Cluster };
  readonly clients: { readonly host: ClusterClient; readonly west: ClusterClient; readonly east: ClusterClient };
  readonly legation: Legation;
  readonly namespace: string;
  /** Namespaces of the host that come and go meanwhile. */
  readonly passing: string[];
  /** Namespaces and names of pods that were deleted by force. */
  readonly forced: Set<string>;
  /** Kinds of which members get whole objects. */
  readonly kinds: readonly Kind[];
  readonly ledger: Ledger;
  /** Pods may be gangs and have devices. */
  readonly hasFollowed?: true;
  /** Kueue, where workloads queue. */
  readonly kueue?: KueueManager;
  /** Sets the clock of the controllers' machine on by this much, or back; 0: as it is. */
  readonly setClock?: (ms: number) => void;
  /** Other controllers, which lead when the first does not, or other shards. */
  readonly others?: readonly LegationProcess[];
  /** The number of shards that controllers share out. Default: 1. */
  readonly shards?: number;
  /** The way to the host of one of the other controllers alone. */
  readonly link?: FaultProxy;
  /** Agents of members that have one. */
  readonly agents?: Readonly<Partial<Record<"west" | "east", AgentScene>>>;
  /** Between the controllers and the host. */
  readonly gate?: WriteGate;
  /** Between the controllers and members without an agent. */
  readonly memberGates?: Readonly<Partial<Record<"west" | "east", WriteGate>>>;
}
