import { CLUSTER_ANNOTATION, DELEGATE_FINALIZER, PROXY_LABEL } from "../../../../src/api/keys.ts";
import type { ObjectMeta, Pod, PodStatus, Stored } from "../../../../src/api/kubernetes.ts";
import type { Action } from "../../../../src/controllers/delegation/decision/decision.ts";
import type { Attempt } from "../../../../src/scheduling/memory.ts";
import { type PodParts, pod } from "../../../support/builders/pod.ts";

/** The moment of a decision. */
export const now: number = Date.parse("2026-02-03T04:05:06Z");

/** The metadata of a pod whose deletion began six seconds ago. */
export const deleting: Pick<ObjectMeta, "deletionTimestamp"> = { deletionTimestamp: "2026-02-03T04:05:00Z" };

/** The status of a delegate that its member's scheduler finds no node for. */
export const unschedulable: PodStatus = {
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes fit" }],
};

/** The types of the actions, with the member of those that have one. */
export function names(actions: readonly Action[]): string[] {
  return actions.map((action) => ("member" in action ? `${action.type} ${action.member}` : action.type));
}

/** An attempt in `west` that was refused a minute ago, to be repeated in a minute. */
export function refused(reason: "Unschedulable" | "RefusedByMember", parts: Partial<Attempt> = {}): Attempt {
  const refusal = { cluster: "west", reason, message: "no" };
  return { since: now - 60_000, refusal, until: now + 60_000, nodesVersion: 1, refusalCount: 1, ...parts };
}

/** Returns a pod that has just overflowed to `west`. */
export function overflowed({ metadata, ...parts }: PodParts = {}): Stored<Pod> {
  return pod({
    ...parts,
    metadata: { labels: { [PROXY_LABEL]: "true" }, annotations: { [CLUSTER_ANNOTATION]: "west" }, ...metadata },
    spec: { nodeName: "legation-west", schedulerName: "default-scheduler" },
  });
}
/** A pod that overflowed to `west`, with its finalizer. */
export const held: Stored<Pod> = overflowed({ metadata: { finalizers: [DELEGATE_FINALIZER] } });
