import { describe, expect, test } from "vitest";
import { lastOtherManager, ownAsApplied } from "../../../../src/controllers/copying/field-owners.ts";
import { configMaps } from "../../../../src/kube/resources.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const OURS = "legation-host-id";
const applied = { manager: OURS, operation: "Apply", fieldsType: "FieldsV1" };
const created = { manager: "legation", operation: "Update", fieldsType: "FieldsV1" };
const scaler = { manager: "scaler", operation: "Update", fieldsV1: { "f:spec": { "f:replicas": {} } } };
const color = { "f:spec": { "f:color": {} } };
const size = { "f:spec": { "f:size": {} } };

/** Asks a member whose copy has these entries. Absent: it has none, or does not answer. */
function inMember(managedFields: object[] | undefined | Error) {
  const sent: object[] = [];
  const metadata = { name: "one", uid: "c", resourceVersion: "3", managedFields };
  const client = fakeClient({
    list: async () => {
      if (managedFields instanceof Error) throw managedFields;
      return { items: managedFields === undefined ? [] : [{ metadata }] };
    },
    patch: async (_resource, _ref, { body }) => {
      sent.push(body);
      return { metadata: { ...metadata, resourceVersion: "4" } };
    },
  });
  const ref = { namespace: "team", name: "one" };
  const target = {
    member: { client },
    resource: configMaps,
    ref,
    fieldManager: OURS,
    signal: new AbortController().signal,
  };
  return {
    sent,
    own: (newlyRetained: readonly string[] = []) => ownAsApplied({ ...target, newlyRetained }),
    last: () => lastOtherManager(target),
  };
}

describe("the ownership of a copy's fields before an apply", () => {
  test.each<[string, object[], readonly string[], object[]]>([
    ["takes over what the creation wrote", [{ ...created, fieldsV1: color }], [], [{ ...applied, fieldsV1: color }]],
    [
      "joins what an apply and other writes own, and leaves other managers' entries",
      [{ ...applied, fieldsV1: color }, scaler, { ...created, fieldsV1: size }],
      [],
      [{ ...applied, fieldsV1: { "f:spec": { "f:color": {}, "f:size": {} } } }, scaler],
    ],
    [
      "gives up a newly retained field",
      [{ ...applied, fieldsV1: { "f:spec": { "f:color": {}, "f:size": {} } } }],
      ["/spec/size"],
      [{ ...applied, fieldsV1: color }],
    ],
  ])("%s", async (_, managedFields, newlyRetained, expected) => {
    const { own, sent } = inMember(managedFields);
    expect(await own(newlyRetained)).toBe("4");
    expect(sent).toEqual([
      [
        { op: "test", path: "/metadata/uid", value: "c" },
        { op: "replace", path: "/metadata/resourceVersion", value: "3" },
        { op: "replace", path: "/metadata/managedFields", value: expected },
      ],
    ]);
  });

  test.each<[string, object[] | undefined, readonly string[], string | undefined]>([
    ["the copy is gone", undefined, [], undefined],
    ["others own all fields", [scaler], [], "3"],
    ["the fields are applied ones already", [{ ...applied, fieldsV1: color }, scaler], [], "3"],
    ["a newly retained field is not ours", [{ ...applied, fieldsV1: color }], ["/spec/size"], "3"],
    ["only the status is ours", [{ ...created, subresource: "status", fieldsV1: {} }], [], "3"],
  ])("is left alone if %s", async (_, managedFields, newlyRetained, expected) => {
    const { own, sent } = inMember(managedFields);
    expect(await own(newlyRetained)).toBe(expected);
    expect(sent).toEqual([]);
  });
});

describe("the manager that a contested copy is left to", () => {
  const at = (manager: string, time: string, more: object = {}) => ({ manager, time, operation: "Update", ...more });
  test.each<[string, object[] | undefined | Error, string | undefined]>([
    [
      "is the last one beside Legation",
      [at("a", "2026-01-01T00:00:01Z"), at("b", "2026-01-01T00:00:02Z"), at(OURS, "2026-01-01T00:00:03Z")],
      "b",
    ],
    [
      "is none that writes the status alone",
      [at("kubelet", "2026-01-01T00:00:01Z", { subresource: "status" })],
      undefined,
    ],
    ["is one without a time only if no other has one", [{ manager: "old" }, at("a", "2026-01-01T00:00:01Z")], "a"],
    ["is not known if the copy is gone", undefined, undefined],
    ["is not known if the member does not answer", kubeError("ServerError"), undefined],
  ])("%s", async (_, managedFields, expected) => {
    expect(await inMember(managedFields).last()).toBe(expected);
  });
});
