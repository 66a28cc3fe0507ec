import { expect, test } from "vitest";
import { ownedKeys } from "../../../src/copies/owned-keys.ts";

const written = (manager: string, labels: object, rest: object = {}) => ({
  manager,
  fieldsV1: { "f:metadata": { "f:labels": { ".": {}, ...labels } } },
  ...rest,
});

test("the labels of a copy that Legation wrote are those of its own managers, not of others or of subresources", () => {
  const managedFields = [
    written("legation-host-1", { "f:app": {} }),
    written("legation", { "f:tier": {} }),
    written("legation-host-2", { "f:theirs": {} }),
    written("legation-host-1", { "f:of-status": {} }, { subresource: "status" }),
  ];
  expect(ownedKeys({ metadata: { managedFields } }, "legation-host-1")).toEqual({
    labels: ["app", "tier"],
    annotations: [],
  });
});

test.each([
  ["is gone", undefined],
  ["has no record of managers", {}],
  [
    "has a record in another form",
    { metadata: { managedFields: [{ manager: "legation", fieldsV1: { "f:metadata": "x" } }] } },
  ],
])("no label is Legation's on an object that %s", (_case, there) => {
  expect(ownedKeys(there, "legation-host-1")).toEqual({ labels: [], annotations: [] });
});
