import type { ObjectKey, Pod } from "../api/kubernetes.ts";
import type { RegistryEvents } from "../clusters/registry.ts";
import type { Events } from "../runtime/event-bus.ts";
import type { ReflectorEvent } from "../runtime/reflector.ts";
import type { SchedulingEvents } from "../scheduling/events.ts";

/** The events by which controllers wake each other. Who emits and who hears each: docs/architecture.md#events. */
export interface ControllerEvents extends RegistryEvents, SchedulingEvents {
  readonly proxy: [event: ReflectorEvent<Pod>];
  /** As `proxy`, of every shard. Emitted where the first shard is. */
  readonly anyProxy: [event: ReflectorEvent<Pod>];
  /** A proxy was bound to the virtual node of a Cluster, or left it. */
  readonly bound: [cluster: string, key: ObjectKey];
  /** A member keeps one more delegate that the host does not know. */
  readonly kept: [member: string];
  readonly defaultsChanged: [];
  /** Wishes of a workload in the namespace are known, or have changed. */
  readonly wishes: [namespace: string];
  /** A virtual node was cordoned, uncordoned or tainted, came or went. */
  readonly nodeSpec: [];
  /** A virtual node became Ready or not, or its taints changed. */
  readonly nodeReadiness: [cluster: string];
  /** The kubelet API of a virtual node came or went, or has another address. */
  readonly nodeEndpoint: [cluster: string];
  /** Pods of some member reach the host's API server another way. */
  readonly homeApi: [];
  /** The agent of a cluster connected, left, or told of itself. */
  readonly agent: [cluster: string];
  /** The needs of a waiting proxy beside a node are met now, or cannot be. */
  readonly needs: [key: ObjectKey];
  /** Members joined a network, or left it. */
  readonly networks: [];
  /** A Service asks for a relay. */
  readonly relayed: [];
  /** The types whose objects follow pods have changed. */
  readonly followRules: [];
  readonly copiesRead: [];
  /** Kueue's ResourceFlavors have changed, or their watch. */
  readonly flavors: [];
  /** The refused writes that a proxy shows have changed. */
  readonly refusedWrite: [key: ObjectKey];
}

export type Emitter = Pick<Events<ControllerEvents>, "emit">;
