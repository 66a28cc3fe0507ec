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
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Traces } from "../../telemetry/traces.ts";
import type { RestoredHost } from "../restored-host.ts";
import type { Needs } from "./model/needs.ts";

/** Copies what a pod needs of its namespace to members. */
export interface Dependencies {
  /** Returns what the pod needs, and which members have it; undefined when it needs nothing. */
  needs(proxy: Stored<Pod>): Needs | undefined;
  /** Has it copied to the member, and kept there until the proxy is bound or gone. Reports whether all of it is there. */
  prepare(key: ObjectKey, proxyUid: string, member: string): boolean;
  /**
   * Handles a member's answer that it lacks an object of this kind. Reports whether a copy is there, so that only the API server's
   * cache lags.
   */
  onMissing?(delegate: Pod, member: string, kind: DependencyKind): boolean;
  /** Handles an event of a proxy. */
  onProxy(event: ReflectorEvent<Pod>): void;
}

export interface DelegationOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly metrics?: Metrics;
  readonly identity: HostIdentity;
  readonly registry: Registry;
  /** Copies what pods need beside a node. */
  readonly dependencies: Dependencies;
  /** Creates namespaces in members. Shared by all controllers. */
  readonly memberNamespaces: MemberNamespaces;
  /** The host's virtual nodes, by name. */
  readonly virtualNodes: ReadStore<KubeNode>;
  /** The reason of `PodScheduled` while no member can have a pod. Default: `NotPlaced`. */
  readonly notPlacedReason?: NotPlacedReason | undefined;
  /** Records events for pods' authors. */
  readonly recorder: EventRecorder;
  readonly restoredHost: RestoredHost;
  /** Returns how pods in a member reach the host's API server. */
  readonly homeApi: (member: string) => HomeApi;
  /** Called when the number of bound proxies or held delegates of a Cluster changes, with the key of the proxy. */
  readonly onBound: (cluster: string, key?: ObjectKey) => void;
  /** Called after an event of a proxy, once the owners' index has it. */
  readonly onProxy: (proxy: Stored<Pod>) => void;
  /** Called when room or a place became free, or a group got another home. */
  readonly onRoom: () => void;
  /** Called when defaults of a namespace or of all may have changed. */
  readonly onDefaults: () => void;
  /** Absent: no traces are recorded. */
  readonly traces?: Traces | undefined;
}
