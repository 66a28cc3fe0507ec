import type { KubeNode, ObjectKey, Pod } from "../../api/kubernetes.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { HomeApi } from "../../pods/home-api.ts";
import type { NotPlacedReason } from "../../pods/proxy-conditions.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ActionContext, ControllerOptions, Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { Reflector } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { GroupName } from "../../scheduling/groups.ts";
import type { PlacementState } from "../../scheduling/placement-state.ts";
import type { QuotaQueues } from "../../scheduling/retries/quota-queues.ts";
import type { WaitingProxies } from "../../scheduling/retries/waiting-proxies.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { Traces } from "../../telemetry/traces.ts";
import type { ControllerEvents } from "../events.ts";
import type { Preparer } from "../preparer.ts";
import type { RefusedWrites } from "../refused-writes.ts";
import type { KeptDelegates, RestoredHost } from "../restored-host.ts";
import type { View } from "./decision/view.ts";

export interface DelegationOptions extends ControllerOptions {
  readonly host: ClusterClient;
  /** Shows the host's workloads of all shards, in the first of several, which answers for their pods' room. Undefined: `host` does. */
  readonly everywhere: ClusterClient | undefined;
  readonly metrics?: Metrics;
  readonly identity: HostIdentity;
  readonly registry: Pick<
    Registry,
    "candidates" | "cluster" | "member" | "members" | "unconnected" | "holders" | "joinedAs" | "problem" | "forget"
  >;
  /** The host's proxies, of `reflectProxies`. Started once what their placement depends on has been read. */
  readonly proxies: Reflector<Pod>;
  readonly events: Events<ControllerEvents>;
  readonly preparer: Preparer;
  /** Returns the group of pods that an object confines to one member. Absent: none does. */
  readonly confinement?: ((pod: Pod) => GroupName | undefined) | undefined;
  readonly memberNamespaces: Pick<MemberNamespaces, "createIn" | "controllersOf">;
  readonly virtualNodes: Pick<ReadStore<KubeNode>, "get">;
  /** The reason of `PodScheduled` while no member can have a pod. Default: `NotPlaced`. */
  readonly notPlacedReason?: NotPlacedReason | undefined;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly restoredHost: Pick<RestoredHost, "confirm">;
  readonly kept: Pick<KeptDelegates, "keeps">;
  readonly refusedWrites: RefusedWrites;
  /** Returns how pods in a member reach the host's API server. */
  readonly homeApi: (member: string) => HomeApi;
  readonly traces?: Traces | undefined;
}

export type Context = ActionContext<ObjectKey>;

/** The promise of an action: what the stores show once its effect is seen. */
export type Result = Promise<Expectation<View> | undefined>;

/** The part of the options with which actions are carried out. */
export interface ActionOptions
  extends Pick<
    DelegationOptions,
    | "host"
    | "metrics"
    | "identity"
    | "events"
    | "preparer"
    | "memberNamespaces"
    | "notPlacedReason"
    | "recorder"
    | "restoredHost"
    | "kept"
    | "refusedWrites"
  > {
  readonly registry: Pick<Registry, "member">;
  readonly clock: Pick<Clock, "now" | "wall">;
}

/** The part of the controller's state that actions change. */
export interface ActionState {
  readonly placementState: PlacementState;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly waiting: Pick<WaitingProxies, "since"> & { readonly quotas: Pick<QuotaQueues, "refused" | "accepted"> };
}

/** The state that the parts of the controller share. */
export interface DelegationState {
  readonly placementState: PlacementState;
  readonly proxies: ReadStore<Pod>;
  readonly waiting: WaitingProxies;
}
