import type { KubeNode, ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { DependencyKind } from "../../pods/dependencies.ts";
import type { HomeApi } from "../../pods/home-api.ts";
import type { NotPlacedReason } from "../../pods/proxy-conditions.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { Interval } from "../../runtime/leaderless-intervals.ts";
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Traces } from "../../telemetry/traces.ts";
import type { Needs } from "./model/needs.ts";

/** Sees to it that a pod finds in a member what it needs of its namespace. */
export interface Dependencies {
  /** What the pod needs, and where it is; undefined when it needs nothing. */
  needs(proxy: Stored<Pod>): Needs | undefined;
  /** Has it made in the member, and kept there until the proxy is bound or gone; true when all of it is there. */
  prepare(key: ObjectKey, proxyUid: string, member: string): boolean;
  /**
   * The member says that it lacks something of this kind that the delegate names, whatever was found there before. Returns true if a
   * copy is there, so that the API server's cache only lags behind.
   */
  onMissing?(delegate: Pod, member: string, kind: DependencyKind): boolean;
  /** A proxy came, changed or went. */
  onProxy(event: ReflectorEvent<Pod>): void;
}

/** What the delegation controller works on. */
export interface DelegationOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly metrics?: Metrics;
  readonly identity: HostIdentity;
  readonly registry: Registry;
  /** What pods need beside a node, made in members before them. */
  readonly dependencies: Dependencies;
  /** Shared by all that creates something in members. */
  readonly memberNamespaces: MemberNamespaces;
  /** The host's virtual nodes, by name. */
  readonly virtualNodes: ReadStore<KubeNode>;
  /** The reason of `PodScheduled` while no member can have a pod; absent: `NotPlaced`. */
  readonly notPlacedReason?: NotPlacedReason | undefined;
  /** What pods' authors are told. */
  readonly recorder: EventRecorder;
  /** Times in which nobody led. */
  readonly leaderless: readonly Interval[];
  /** False when the host was set back to a backup under this leader, or another leads by now. */
  readonly confirmLease: (signal: AbortSignal) => Promise<boolean>;
  /** How pods in a member reach the host's API server. */
  readonly homeApi: (member: string) => HomeApi;
  /** The number of proxies bound to this Cluster's virtual node, or of delegates held in it, has changed; by the proxy of this key. */
  readonly onBound: (cluster: string, key?: ObjectKey) => void;
  /** A proxy came, changed or went; the proxies by owner know of it. */
  readonly onProxy: (proxy: Stored<Pod>) => void;
  /** Room, or a place, that a proxy had or was to get is free, or a group has another home: pods that are no proxies yet may be placed. */
  readonly onRoom: () => void;
  /** What pods get by default may have changed. */
  readonly onDefaults: () => void;
  /** Absent: nobody is told of pods' ways. */
  readonly traces?: Traces | undefined;
}
