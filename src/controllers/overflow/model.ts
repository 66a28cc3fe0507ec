import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { Decision } from "../../runtime/controller.ts";
import type { View as PlacementObserved } from "../delegation/model/view.ts";

/** When this controller has seen the pod how; epoch ms by its own clock. */
export interface Seen {
  /** Last seen as one that the host's scheduler may still place; absent: never. */
  readonly otherwiseAt?: number;
  /** First seen, since then, as one without a place. */
  readonly unplacedAt: number;
}

/** The group of a pod that no member has a pod of yet. */
export interface UnsettledGroup {
  /** For people. */
  readonly text: string;
  /** It has pods on the host's own nodes; absent: that is not known. */
  readonly onHost?: boolean;
}

/** Everything that one decision depends on. */
export interface Observed {
  readonly pod: Stored<Pod>;
  /** The host's API server can make a pod a proxy in its Binding. */
  readonly supported: boolean;
  /** The namespace still has a mode of delegation. */
  readonly optedIn: boolean;
  readonly seen: Seen;
  readonly afterMs: number;
  /** Its author has heard why it is not delegated. */
  readonly told: boolean;
  /** What placement depends on: asked only when the pod is due. */
  readonly view: () => PlacementObserved;
  /** Its group, unless that is in a member already; asked after `view`. Absent: it has none. */
  readonly group?: () => UnsettledGroup | undefined;
}

export type Action =
  /**
   * Binds the pod to the member's virtual node, if its API server would take the delegate. Nothing is bound when the pod has
   * changed since `resourceVersion`.
   */
  | {
      readonly type: "overflow";
      readonly uid: string;
      readonly resourceVersion: string;
      readonly member: string;
    }
  /** Makes a pod a proxy that is bound to the member's virtual node, where its Binding has not. */
  | { readonly type: "mark"; readonly uid: string; readonly member: string }
  /** Finds out whether groups of the namespace have pods on the host's own nodes. */
  | { readonly type: "seek"; readonly uid: string }
  /** Tells the author in an event why the pod stays. */
  | { readonly type: "tell"; readonly uid: string; readonly message: string };

/** What to do for one pod now; the outcome is one word for logs and metrics. */
export type OverflowDecision = Decision<Action>;
