import { expect, test } from "vitest";
import type { PodSpec } from "../../../../../src/api/kubernetes.ts";
import { unschedulableFor } from "../../../../../src/controllers/delegation/phases/await-scheduling.ts";
import type { SharedBy } from "../../../../../src/scheduling/placement-view.ts";
import { pod } from "../../../../support/builders/pod.ts";

test.each<[string, string | undefined, Partial<PodSpec>, SharedBy | undefined]>([
  ["room", "0/3 nodes are available: 3 Insufficient cpu.", {}, "spec"],
  ["anti-affinity of others", "3 node(s) didn't satisfy existing pods anti-affinity rules.", {}, "labels"],
  ["its own affinity", "3 node(s) didn't match pod affinity rules.", {}, "labels"],
  ["spreading", "3 node(s) didn't match pod topology spread constraints.", {}, "labels"],
  ["the silence of its scheduler", undefined, { schedulerName: "volcano" }, "spec"],
  ["the words of another scheduler", "queue is full", { schedulerName: "volcano" }, undefined],
  ["a gate of the member", undefined, { schedulingGates: [{ name: "kueue.x-k8s.io/admission" }] }, undefined],
])("shares a refusal with pods of equal spec or labels: %s", (_, message, spec, shared) => {
  const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: message ?? "" };
  const conditions = message === undefined ? [] : [condition];
  expect(unschedulableFor(pod({ spec, status: { conditions } }))).toBe(shared);
});
