import { describe, expect, test } from "vitest";
import type { KubeObject } from "../../../../../src/api/kubernetes.ts";
import {
  type DryRunResult,
  installedObjectFindings,
  objectFindings,
  partFinding,
} from "../../../../../src/cli/explain/installation/installed-objects.ts";
import type { InstalledSettings } from "../../../../../src/cli/install/installed.ts";
import type { Manifest } from "../../../../../src/cli/shared/manifests.ts";
import { discovering } from "../../../../support/builders/discovery.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { signal, stored } from "./given.ts";

function deployment(manager: string, image: string): Manifest {
  const labels = { "app.kubernetes.io/managed-by": manager };
  const metadata = { name: "legation-webhook", namespace: "legation-system", labels };
  const spec = { template: { spec: { containers: [{ name: "webhook", image }] } } };
  return { apiVersion: "apps/v1", kind: "Deployment", metadata, spec };
}

const WANTED = deployment("legation", "ghcr.io/legation/legation:2");
const before: InstalledSettings = {
  clusterName: "host",
  version: "2",
  webhookUrl: undefined,
  access: undefined,
  relay: false,
  mcs: false,
  shards: 1,
  ownImage: undefined,
};
const helmRelease = { name: "fleet", namespace: "infra" };

/** A host with one installed object, of which a dry run changes what the manifest names. */
function hostWith(installed: Manifest) {
  const asStored = { ...installed, metadata: { ...installed.metadata, ...stored } } as KubeObject;
  return fakeClient({
    raw: discovering({ group: "apps", plural: "deployments", kind: "Deployment" }),
    find: async () => asStored,
    patch: async (_resource, _ref, { body }) => {
      const manifest = body as Manifest;
      return { ...manifest, metadata: { ...manifest.metadata, ...stored } };
    },
  });
}

const find = (installed: Manifest, version: string, of: Partial<InstalledSettings> = {}) =>
  installedObjectFindings(hostWith(installed), version, { before: { ...before, ...of }, wanted: [WANTED] }, signal);

test("the installer's label and the image of a Helm release are no differences", async () => {
  const released = deployment("Helm", "registry.example/legation@sha256:abc");
  expect(await find(released, "2", { helmRelease })).toMatchObject([{ state: "OK" }]);
  expect(await find(released, "2")).toMatchObject([{ state: "WARN", remedy: "legation install" }]);
});

test("another difference of a Helm release is mended by its upgrade", async () => {
  const changed = deployment("Helm", "ghcr.io/legation/legation:2");
  const lacking = { ...changed, spec: { ...(changed.spec as object), paused: true } };
  expect(await find(lacking, "2", { helmRelease })).toMatchObject([
    { state: "WARN", remedy: "helm upgrade fleet CHART --namespace infra --reset-then-reuse-values" },
  ]);
});

test("objects of another version are not compared", async () => {
  expect(await find(deployment("legation", "other"), "1")).toEqual([
    {
      state: "SKIP",
      what: "objects are not compared: version 2 is installed, and this command is 1",
      remedy: "use version 2 of the command line, or upgrade what is installed",
    },
  ]);
});

describe("installed objects", () => {
  test("that lack or differ fail, and are named", () => {
    const compared: readonly DryRunResult[] = [
      { kind: "ClusterRole", object: "ClusterRole legation-controller", is: "different" },
      { kind: "CustomResourceDefinition", object: "CustomResourceDefinition clusters", is: "same" },
      { kind: "ValidatingAdmissionPolicyBinding", object: "ValidatingAdmissionPolicyBinding p", is: "missing" },
      { kind: "ConfigMap", object: "ConfigMap c", is: "different" },
      { kind: "Service", object: "Service s", is: "forbidden" },
      { kind: "MutatingWebhookConfiguration", object: "MutatingWebhookConfiguration m", is: "unknown", problem: "no" },
    ];
    const found = objectFindings(compared, "helm upgrade");
    expect(found.map(({ state, what }) => `${state} ${what}`)).toEqual([
      "OK CustomResourceDefinitions: 1 as this version installs them",
      "FAIL admission policies and their bindings: missing: ValidatingAdmissionPolicyBinding p",
      "FAIL rights of webhook and controller: not as this version installs them: ClusterRole legation-controller",
      "FAIL MutatingWebhookConfiguration m: no",
      "WARN other objects: not as this version installs them: ConfigMap c",
      "SKIP other objects: 1 object not compared: you may not dry-run their change",
    ]);
    expect(found.find(({ state }) => state === "FAIL")?.remedy).toBe("helm upgrade");
  });

  test.each([
    [0, "FAIL"],
    [1, "WARN"],
    [2, "OK"],
  ])("with %d of 2 replicas are %s", (ready, state) => {
    const pods = [0, 1].map((index) => ({ name: `webhook-${index}`, ready: index < ready }));
    const part = { component: "webhook", namespace: "legation-system", version: "1", replicas: 2, pods };
    expect(partFinding(part)).toMatchObject({ state, what: `legation-webhook: ${ready} of 2 replicas ready` });
  });
});
