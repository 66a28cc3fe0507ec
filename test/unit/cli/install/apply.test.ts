import { describe, expect, test } from "vitest";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { keepSizes } from "../../../../src/cli/install/apply.ts";
import type { Manifest } from "../../../../src/cli/shared/manifests.ts";

const metadata = { namespace: "legation-system", name: "legation-webhook" };
const head = { apiVersion: "apps/v1", kind: "Deployment", metadata };

function spec(replicas: number, memory: string): object {
  const containers = [{ name: "webhook", image: "new", resources: { limits: { memory } } }];
  return {
    replicas,
    template: {
      metadata: { labels: { app: "webhook" } },
      spec: { containers, serviceAccountName: "legation-webhook" },
    },
  };
}

const MANIFEST: Manifest = { ...head, spec: spec(2, "512Mi") };

function installed(managedFields: readonly object[]): KubeObject {
  return { ...head, metadata: { ...metadata, managedFields: [...managedFields] }, spec: spec(3, "2Gi") } as KubeObject;
}

const SCALED = { manager: "kubectl", subresource: "scale", fieldsV1: { "f:spec": { "f:replicas": {} } } };
const inContainer = { 'k:{"name":"webhook"}': { "f:resources": { "f:limits": { "f:memory": {} } } } };
const RAISED = {
  manager: "kubectl-edit",
  fieldsV1: { "f:spec": { "f:template": { "f:spec": { "f:containers": inContainer } } } },
};
const OURS = {
  manager: "legation-install",
  fieldsV1: { "f:spec": { ...SCALED.fieldsV1["f:spec"], ...RAISED.fieldsV1["f:spec"] } },
};

describe("sizes of an installed Deployment", () => {
  test.each([
    ["replicas that another field manager set stay", [OURS, SCALED], spec(3, "512Mi")],
    ["resources that another field manager set stay", [OURS, RAISED], spec(2, "2Gi")],
    ["what only the installer set follows the new manifest", [OURS], spec(2, "512Mi")],
    ["what an older version wrote, without a record, too", [], spec(2, "512Mi")],
  ])("%s", (_case, managedFields, expected) => {
    expect(keepSizes(MANIFEST, installed(managedFields), "legation-install")).toEqual({ ...MANIFEST, spec: expected });
  });

  test("are the manifest's at a first installation", () => {
    expect(keepSizes(MANIFEST, undefined, "legation-install")).toBe(MANIFEST);
  });

  test("are untouched in other kinds", () => {
    const quota: Manifest = { ...MANIFEST, kind: "ReplicaSet" };
    expect(keepSizes(quota, { ...installed([SCALED]), kind: "ReplicaSet" }, "legation-install")).toBe(quota);
  });
});
