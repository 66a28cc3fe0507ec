import { describe, expect, test } from "vitest";
import { delegatedTypeObjects } from "../../../../src/cli/install/types.ts";

const resource = (group: string, plural: string, namespaced = true) => ({
  group,
  version: "v1",
  plural,
  kind: "Thing",
  namespaced,
});

describe("the objects that allow a type on the host", () => {
  test("name the type, and give the controller and authors no more than they need", () => {
    const [type, controller, authors] = delegatedTypeObjects(resource("cert-manager.io", "certificates"));
    expect(type).toMatchObject({
      metadata: { name: "certificates.cert-manager.io" },
      spec: { group: "cert-manager.io", version: "v1", kind: "Thing", plural: "certificates" },
    });
    expect(controller?.rules).toEqual([
      { apiGroups: ["cert-manager.io"], resources: ["certificates"], verbs: ["list", "watch", "patch"] },
      { apiGroups: ["cert-manager.io"], resources: ["certificates/status"], verbs: ["patch"] },
    ]);
    expect(authors?.rules).toEqual([
      { apiGroups: ["cert-manager.io"], resources: ["certificates"], verbs: ["delegate"] },
    ]);
  });

  test.each([
    ["editors of namespaces", resource("cert-manager.io", "certificates"), true],
    ["nobody for types that give rights", resource("rbac.authorization.k8s.io", "rolebindings"), false],
    ["nobody for types without a namespace", resource("example.com", "things", false), false],
  ])("give the verb delegate to %s", (_who, type, isForEditors) => {
    const labels = delegatedTypeObjects(type).flatMap(({ metadata }) => Object.keys(metadata.labels ?? {}));
    expect(labels.includes("rbac.authorization.k8s.io/aggregate-to-edit")).toBe(isForEditors);
  });
});
