import type { ObjectMeta, PodCondition } from "../../../../src/api/kubernetes.ts";

/** A time in the first minute of the pod. */
export const AT = (seconds: number): string => `2026-01-01T00:00:${String(seconds).padStart(2, "0")}Z`;

/** The metadata of a proxy that is bound to its member. */
export const bound: Partial<ObjectMeta> = {
  creationTimestamp: AT(0),
  annotations: {
    "legation.dev/cluster": "west",
    "legation.dev/delegate-uid": "d-1",
    "legation.dev/member-node": "west-node-1",
  },
  ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name: "train", uid: "j", controller: true }],
};

export const scheduled: PodCondition = { type: "PodScheduled", status: "True", lastTransitionTime: AT(2) };
