import type { KubeNode, ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { DependencyKind } from "../../pods/dependencies.ts";
import type { HomeApi } from "../../pods/home-api.ts";
import type { NotPlacedReason } from "../../pods/proxy-conditions.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { Reflector } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Traces } from "../../telemetry/traces.ts";
import type { ControllerEvents } from "../events.ts";
import type { KeptDelegates, RestoredHost } from "../restored-host.ts";
import type { RefusedWrites } from "./actions/refused-writes.ts";
import type { Needs } from "./decision/needs.ts";
import type { PlacementState } from "./placement/placement-state.ts";
import type { QuotaQueues } from "./placement/quota-queues.ts";
import type { WaitingProxies } from "./placement/waiting-proxies.ts";

/** Copies what a pod needs of its namespace to members. */
export interface Preparer {
  /** Returns undefined when the pod needs nothing. */
  needs(proxy: Stored<Pod>): Needs | undefined;
  /** Has it copied to the member, and kept there until the proxy is bound or gone. Reports whether all of it is there. */
  prepare(key: ObjectKey, proxyUid: string, member: string): boolean;
  /**
   * Handles a member's answer that it lacks an object. Reports whether a copy is there: the API server's cache lags.
   */
  onMissing?(delegate: Pod, member: string, kind: DependencyKind): boolean;
}

export interface DelegationOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly metrics?: Metrics;
  readonly identity: HostIdentity;
  readonly registry: Registry;
  /** The host's proxies, of `reflectProxies`. Started once what their placement depends on has been read. */
  readonly proxies: Reflector<Pod>;
  readonly events: Events<ControllerEvents>;
  readonly preparer: Preparer;
  readonly memberNamespaces: MemberNamespaces;
  readonly virtualNodes: ReadStore<KubeNode>;
  /** The reason of `PodScheduled` while no member can have a pod. Default: `NotPlaced`. */
  readonly notPlacedReason?: NotPlacedReason | undefined;
  readonly recorder: EventRecorder;
  readonly restoredHost: RestoredHost;
  readonly kept: KeptDelegates;
  readonly refusedWrites: RefusedWrites;
  /** Returns how pods in a member reach the host's API server. */
  readonly homeApi: (member: string) => HomeApi;
  readonly traces?: Traces | undefined;
}

/** The state that the parts of the controller share. */
export interface DelegationState {
  readonly placementState: PlacementState;
  readonly proxies: ReadStore<Pod>;
  readonly waiting: WaitingProxies;
  readonly quotas: QuotaQueues;
}
