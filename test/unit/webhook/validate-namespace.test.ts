import { expect, test } from "vitest";
import { validateNamespace } from "../../../webhook/validate-namespace.ts";
import { request } from "./reviews.ts";

test.each([
  [{}, { kind: "allowed", warnings: [] }],
  [{ "legation.dev/clusters": "west" }, { kind: "allowed", warnings: [] }],
  [{ "legation.dev/cluster-selector": "" }, { kind: "allowed", warnings: [expect.stringContaining("every cluster")] }],
  // Annotations that a host writes on namespaces in a member.
  [{ "legation.dev/owner": "{}" }, { kind: "allowed", warnings: [] }],
  [{ "legation.dev/clusters": "-" }, { kind: "denied", message: expect.stringContaining("is not a DNS label") }],
  [{ "legation.dev/failover": "never" }, { kind: "denied", message: expect.stringContaining("on pods or workloads") }],
  [{ "legation.dev/delegate": "true" }, { kind: "denied", message: expect.stringContaining("by its label") }],
])("judges a namespace with %j", (annotations, verdict) => {
  const object = { metadata: { name: "team", annotations } };
  expect(validateNamespace(request({ kind: "Namespace", object }))).toEqual(verdict);
});
