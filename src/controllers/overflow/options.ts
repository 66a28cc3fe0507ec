import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { OverflowPlacement } from "./placement.ts";

/** What the overflow controller works on. */
export interface OverflowOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Registry;
  readonly placement: OverflowPlacement;
  /** What pods' authors are told. */
  readonly recorder: EventRecorder;
  /** Why a member cannot have the rules that a pod is under here, as far as is known. */
  readonly policyRefusal: (pod: Stored<Pod>, member: string) => string | undefined;
  /** Reports whether the member is given the classes that the delegate names, so that it need not have them yet. */
  readonly providesClasses: (delegate: Pod, member: string) => boolean;
}
