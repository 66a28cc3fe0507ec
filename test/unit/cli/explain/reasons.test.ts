import { expect, test } from "vitest";
import { parsePlacement, placementExcludes, type RequestedPlacement } from "../../../../src/api/annotations.ts";
import { reasonLine, reasonsOf, shortestReason } from "../../../../src/cli/explain/reasons.ts";

test.each([
  ["", []],
  ["this cluster has no members", [{ message: "this cluster has no members" }]],
  [
    "east: full; west-2: refused: no such class",
    [
      { member: "east", message: "full" },
      { member: "west-2", message: "refused: no such class" },
    ],
  ],
  [
    "east: no virtual node; if this lasts, its Cluster says why; west: full",
    [
      { member: "east", message: "no virtual node; if this lasts, its Cluster says why" },
      { member: "west", message: "full" },
    ],
  ],
  ["No Member: takes it", [{ message: "No Member: takes it" }]],
])("a condition's message %j is a reason for each member, and comes back as it was", (message, reasons) => {
  expect(reasonsOf(message)).toEqual(reasons);
  expect(reasonsOf(message).map(reasonLine).join("; ")).toBe(message);
});

test.each([
  ["of one member with its name", "east: full", "east: full"],
  ["of no member as it is", "this cluster has no members", "this cluster has no members"],
  [
    "that is shortest, and how many there are",
    "east: cpu: 4 requested, 2 left; west: full; north: a b c d",
    "west: full, and 2 more",
  ],
  [
    "of a member that the author did not leave out",
    "east: not named by legation.dev/clusters; wset: no Cluster of that name has joined",
    "wset: no Cluster of that name has joined, and 1 more",
  ],
  [
    "of the member that has the pod's claim",
    "east: 0/3 nodes are available; west: PersistentVolumeClaim data-0, which the pod needs, is in east",
    "east: 0/3 nodes are available, and 1 more",
  ],
  ["of all members once", "east: full; west: full", "full (all 2)"],
])("returns the reason %s", (_, message, shortest) => {
  expect(shortestReason(message)).toBe(shortest);
});

/** Returns the placement that an annotation wishes. */
function wished(annotation: string, text: string): RequestedPlacement {
  const parsed = parsePlacement({ [`legation.dev/${annotation}`]: text });
  return parsed.ok ? parsed.placement : {};
}

const terms = [{ matchExpressions: [{ key: "gpu", operator: "Exists" }] }];

test.each<[string, RequestedPlacement]>([
  ["clusters", wished("clusters", "west")],
  ["cluster-selector", wished("cluster-selector", "gpu")],
  [
    "cluster-affinity",
    wished(
      "cluster-affinity",
      JSON.stringify({ requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } }),
    ),
  ],
  ["a node selector", { virtualNode: { selected: "west" } }],
  [
    "node affinity",
    { virtualNode: { required: [[{ key: "legation.dev/cluster", operator: "In", values: ["west"] }]] } },
  ],
])("knows the words of %s that leave a member out", (_, placement) => {
  const excluded = placementExcludes(placement, { name: "east", labels: {} });
  expect(excluded).toBeDefined();
  const full = "Full: ".padEnd(400, "x");
  expect(shortestReason(`east: ${excluded}; west: ${full}`)).toBe(`west: ${full}, and 1 more`);
});
