import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../src/api/delegated-type.ts";
import { objectOverrideProblems, overrideObject } from "../../../src/api/object-overrides.ts";

describe("overrides of an object", () => {
  const type: DelegatedType = {
    metadata: { name: "widgets.example.com" },
    spec: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets", retain: ["/spec/items/*/size"] },
  };

  function overridden(overrides: readonly object[]) {
    const annotations = { "legation.dev/overrides": JSON.stringify(overrides) };
    return { metadata: { name: "one", annotations }, spec: { color: "red", items: [] } };
  }

  const blue = { op: "replace", path: "/spec/color", value: "blue" };

  test.each<[string, object, string]>([
    [
      "that fits no object",
      { op: "replace", path: "/spec/gone", value: 1 },
      "[0].patch[0]: replace /spec/gone: the object has nothing there",
    ],
    [
      "of its labels",
      { op: "add", path: "/metadata/labels/a", value: "b" },
      "apiVersion, kind, metadata and status are Legation's to write",
    ],
    ["of its status", { op: "copy", from: "/status/ready", path: "/spec/ready" }, "status are Legation's to write"],
    ["without a field", { op: "add", path: "", value: {} }, "is no JSON pointer of a field"],
    ["of a prototype", { op: "add", path: "/spec/__proto__/a", value: {} }, "is no field of an object"],
    [
      "of a field that members keep",
      { op: "add", path: "/spec/items/0/size", value: 3 },
      "DelegatedType widgets.example.com leaves /spec/items/*/size out of copies; remove the operation",
    ],
  ])("are refused with a patch %s", (_, operation, message) => {
    const object = overridden([{ clusters: ["west"], patch: [operation] }]);
    expect(objectOverrideProblems(object, type)).toEqual([expect.stringContaining(message)]);
  });

  test("are refused of rights, and of a Secret's stringData", () => {
    const group = "rbac.authorization.k8s.io";
    const roles: DelegatedType = { metadata: {}, spec: { group, version: "v1", kind: "Role", plural: "roles" } };
    expect(objectOverrideProblems(overridden([{ patch: [blue] }]), roles)).toEqual([
      expect.stringContaining("the rights of a Role"),
    ]);
    const secrets: DelegatedType = {
      metadata: { name: "secrets" },
      spec: { version: "v1", kind: "Secret", plural: "secrets" },
    };
    const patch = [{ op: "add", path: "/stringData", value: { a: "b" } }];
    expect(objectOverrideProblems(overridden([{ patch }]), secrets)).toEqual([
      expect.stringContaining("in base64 inside /data/"),
    ]);
  });

  test("change the object in the members that they name, and say which one does not fit there", () => {
    const west = { name: "west", labels: {} };
    const misfit = { patch: [{ op: "remove", path: "/spec/shape" }] };
    const ofWest = { clusters: ["west"], patch: [blue] };
    expect(overrideObject(overridden([ofWest]), west)).toMatchObject({ object: { spec: { color: "blue" } } });
    expect(overrideObject(overridden([{ ...ofWest, clusters: ["east"] }]), west)).toMatchObject({
      object: { spec: { color: "red" } },
    });
    expect(overrideObject(overridden([ofWest, misfit]), west)).toEqual({
      problem: expect.stringContaining("legation.dev/overrides: [1].patch[0]: remove /spec/shape"),
    });
  });
});
