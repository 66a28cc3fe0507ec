import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { delegatedTypeObjects, lackingFields, typeFields } from "../../../../src/cli/install/types.ts";
import { loadManifests } from "../../../../src/cli/shared/manifests.ts";
import { packageRoot } from "../../../../src/cli/shared/package-root.ts";

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

  test("let the controller read the definition by its name if it follows into members", () => {
    const [type, controller] = delegatedTypeObjects(resource("example.com", "things"), { definition: "Follow" });
    expect(type?.spec).toMatchObject({ definition: "Follow" });
    expect(controller?.rules).toContainEqual({
      apiGroups: ["apiextensions.k8s.io"],
      resources: ["customresourcedefinitions"],
      resourceNames: ["things.example.com"],
      verbs: ["list", "watch"],
    });
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

describe("the fields of known types", async () => {
  const manifests = await loadManifests(join(packageRoot(), "manifests", "delegated-types"));
  const fieldsOf = (name: string, version: string, installed?: object): object => {
    const [plural = "", ...group] = name.split(".");
    const type = { ...resource(group.join("."), plural), version };
    return typeFields(type, { manifests, installed: installed && { version, kind: "Thing", plural, ...installed } });
  };

  test.each([
    [
      "jobsets.jobset.x-k8s.io",
      "v1alpha2",
      {
        exclusive: true,
        managedBy: "/spec/managedBy",
        queue: expect.objectContaining({ suspend: "/spec/suspend" }),
      },
    ],
    ["jobsets.jobset.x-k8s.io", "v1", { exclusive: true }],
    ["appwrappers.workload.codeflare.dev", "v1beta2", { exclusive: true, managedBy: "/spec/managedBy" }],
    ["mpijobs.kubeflow.org", "v2beta1", { exclusive: true, managedBy: "/spec/runPolicy/managedBy" }],
    ["mpijobs.kubeflow.org", "v1", { exclusive: true }],
    ["rayjobs.ray.io", "v1", { exclusive: true }],
    ["rayclusters.ray.io", "v1", { exclusive: true, drift: "Report" }],
    ["trainjobs.trainer.kubeflow.org", "v1alpha1", { exclusive: true }],
    ["configmaps", "v1", {}],
    ["certificates.cert-manager.io", "v1", {}],
  ])("of %s in version %s are those of its manifest, with a manager only in its version", (name, version, fields) => {
    expect(fieldsOf(name, version)).toEqual(fields);
  });

  test.each([
    ["resource.k8s.io", "resourceclaims"],
    ["resource.k8s.io", "resourceclaimtemplates"],
    ["scheduling.volcano.sh", "podgroups"],
  ])("come with the rights that rbac.yaml beside them gives for %s: %s", (group, plural) => {
    const type = resource(group, plural);
    const [, role] = delegatedTypeObjects(type, typeFields(type, { manifests, installed: undefined }));
    const shipped = manifests.find(({ metadata }) => metadata.name === `legation-controller-${plural}.${group}`);
    expect(shipped?.rules).toEqual(role?.rules);
  });

  test("leave a definition that follows as it was", () => {
    const installed = { exclusive: true, definition: "Follow" };
    expect(fieldsOf("rayjobs.ray.io", "v1", installed)).toEqual(installed);
    expect(fieldsOf("things.example.com", "v1", { definition: "Follow" })).toEqual({ definition: "Follow" });
  });

  test("keep the installed rule on what follows pods", () => {
    const follows = { names: [{ label: "license" }], restricted: true };
    expect(fieldsOf("licenses.example.com", "v1", { follows })).toEqual({ follows });
  });

  test("are the operator's where the installed DelegatedType has them", () => {
    const installed = { exclusive: false, retain: ["/spec/suspend"] };
    expect(fieldsOf("rayjobs.ray.io", "v1", installed)).toEqual({ exclusive: false });
  });

  test("are not added to an installed DelegatedType, and the operator hears which it lacks", () => {
    const name = "jobsets.jobset.x-k8s.io";
    expect(fieldsOf(name, "v1alpha2", {})).toEqual({});
    expect(fieldsOf(name, "v1alpha2", { exclusive: true })).toEqual({ exclusive: true });
    const type = { ...resource("jobset.x-k8s.io", "jobsets"), version: "v1alpha2" };
    const installed = { version: "v1alpha2", kind: "JobSet", plural: "jobsets" };
    expect(lackingFields(type, { manifests, installed })).toContain(
      `${name} lacks exclusive: true, managedBy: /spec/managedBy, which`,
    );
    const whole = { ...installed, exclusive: true, managedBy: "/spec/managedBy" };
    expect(lackingFields(type, { manifests, installed: whole })).toBeUndefined();
  });
});

test.each([
  ["of those that confine pods, the status is written", true, ["podgroups: list watch", "podgroups/status: patch"]],
  ["others are read", false, ["podgroups: list watch"]],
])("of objects that follow pods the controller writes no field: %s", (_, confines, expected) => {
  const type = { group: "example.com", version: "v1", plural: "podgroups", kind: "PodGroup", namespaced: true };
  const follows = { names: [{ label: "group" }], confines };
  const objects = delegatedTypeObjects(type, { follows });
  const rules = objects.flatMap((object) => (Array.isArray(object.rules) ? object.rules : []));
  expect(rules.map(({ resources, verbs }) => `${resources}: ${verbs.join(" ")}`)).toEqual(expected);
});

test("authors give objects that follow pods to members without a role, and restricted ones by a role that nobody is bound to", () => {
  const type = { group: "example.com", version: "v1", plural: "licenses", kind: "License", namespaced: true };
  const rolesWith = (restricted: boolean) =>
    delegatedTypeObjects(type, { follows: { names: [{ label: "license" }], restricted } }).filter(({ metadata }) =>
      metadata.name.startsWith("legation-authors-"),
    );
  expect(rolesWith(false)).toEqual([]);
  const [role, ...others] = rolesWith(true);
  expect(others).toEqual([]);
  expect(role?.rules).toEqual([{ apiGroups: ["example.com"], resources: ["licenses"], verbs: ["delegate"] }]);
  expect(Object.keys(role?.metadata.labels ?? {}).join()).not.toContain("aggregate-to");
});
