import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { Decision } from "../../runtime/requeue.ts";
import type { PlacementView } from "../../scheduling/placement-view.ts";

/** Times at which this controller saw the pod schedulable or not; epoch ms by its own clock. */
export interface Seen {
  /** Last seen as one that the host's scheduler may still place. Absent: never. */
  readonly otherwiseAt?: number;
  /** First seen unschedulable after that. */
  readonly unplacedAt: number;
}

export interface PendingGroup {
  readonly text: string;
  /** The group has pods on the host's own nodes. Absent: not known. */
  readonly onHost?: boolean;
}

export interface Observed {
  readonly pod: Stored<Pod>;
  /** The host's API server can make a pod a proxy in its Binding. */
  readonly supported: boolean;
  readonly optedIn: boolean;
  readonly seen: Seen;
  readonly afterMs: number;
  /** The pod's author was told why it is not delegated. */
  readonly reported: boolean;
  /** Returns the view for placement. Called only when the pod is due. */
  readonly view: () => PlacementView;
  /** Returns its group, unless that is in a member already. Called after `view`. */
  readonly group?: () => PendingGroup | undefined;
}

export type Action =
  /** Nothing is bound when the pod has changed since `resourceVersion`. */
  | {
      readonly type: "overflow";
      readonly uid: string;
      readonly resourceVersion: string;
      readonly member: string;
    }
  /** Makes a pod a proxy that is bound to the member's virtual node, where its Binding has not. */
  | { readonly type: "mark"; readonly uid: string; readonly member: string }
  /** Reads which groups of the namespace have pods on the host's own nodes. */
  | { readonly type: "readHostGroups"; readonly uid: string }
  | { readonly type: "tell"; readonly uid: string; readonly message: string };

export type OverflowDecision = Decision<Action>;
