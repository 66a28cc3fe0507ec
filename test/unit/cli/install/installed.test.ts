import { expect, test } from "vitest";
import {
  type InstalledSettings,
  imageToKeep,
  refuseBesideHelm,
  standing,
} from "../../../../src/cli/install/installed.ts";
import type { Manifest } from "../../../../src/cli/shared/manifests.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();
const PUBLISHED = "ghcr.io/legation/legation:0.1.0";

function deployment(image: string, labels: Record<string, string> = {}): Manifest {
  const spec = { template: { spec: { containers: [{ name: "webhook", image }] } } };
  return { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "legation-webhook", labels }, spec };
}

function configuration(clientConfig: object): Manifest {
  const webhooks = [{ name: "pods.legation.dev", clientConfig }];
  const kind = "MutatingWebhookConfiguration";
  return { apiVersion: "admissionregistration.k8s.io/v1", kind, metadata: { name: "legation" }, webhooks };
}

const manifests = [deployment(PUBLISHED), configuration({ service: { name: "legation-webhook" } })];

function read(installed: Readonly<Record<string, object>>): Promise<InstalledSettings> {
  const client = fakeClient({ find: async ({ plural }: { plural: string }) => installed[plural] });
  return standing(client, manifests, signal);
}

test("finds no settings where nothing is installed", async () => {
  expect(await read({})).toEqual({
    clusterName: undefined,
    version: undefined,
    webhookUrl: undefined,
    relay: false,
    mcs: false,
    shards: 1,
    ownImage: undefined,
  });
});

test("reads an installation's settings from its objects, also of a version that recorded none", async () => {
  const inside = await read({
    configmaps: { data: { "cluster-name": "berlin" } },
    deployments: deployment("registry.example:5000/legation@sha256:abc", { "app.kubernetes.io/version": "0.1.0" }),
    mutatingwebhookconfigurations: configuration({ service: {} }),
  });
  const ownImage = "registry.example:5000/legation@sha256:abc";
  expect(inside).toEqual({
    clusterName: "berlin",
    version: "0.1.0",
    webhookUrl: undefined,
    access: undefined,
    relay: false,
    mcs: false,
    shards: 1,
    ownImage,
  });
  const outside = await read({
    mutatingwebhookconfigurations: configuration({ url: "https://192.0.2.7:9443/mutate/all" }),
  });
  expect((await read({ configmaps: { data: { mcs: "true" } } })).mcs).toBe(true);
  expect((await read({ serviceaccounts: { metadata: { name: "legation-relay" } } })).relay).toBe(true);
  expect(outside).toMatchObject({ webhookUrl: "https://192.0.2.7:9443", ownImage: undefined });
});

test("does not keep an image of the manifests' own repository", async () => {
  const { ownImage } = await read({ deployments: deployment("ghcr.io/legation/legation:0.0.9") });
  expect(ownImage).toBeUndefined();
});

test("keeps an operator's own image for its version, and requires --image for another", () => {
  const own = {
    clusterName: "berlin",
    version: "0.1.0",
    webhookUrl: undefined,
    access: undefined,
    relay: false,
    mcs: false,
    shards: 1,
    ownImage: "registry.example/l:1",
  };
  expect(imageToKeep(own, "0.1.0")).toBe("registry.example/l:1");
  expect(imageToKeep({ ...own, ownImage: undefined }, "0.2.0")).toBeUndefined();
  expect(() => imageToKeep(own, "0.2.0")).toThrow(
    "--image: is missing: the cluster runs registry.example/l:1, which is version 0.1.0, and this is 0.2.0",
  );
  expect(() => imageToKeep({ ...own, version: undefined }, "0.2.0")).toThrow("which is of another installation");
});

test("names the Helm release that owns the installation", async () => {
  const annotations = { "meta.helm.sh/release-name": "fleet", "meta.helm.sh/release-namespace": "infra" };
  const labels = { "app.kubernetes.io/managed-by": "Helm" };
  const owned = { ...configuration({ service: {} }), metadata: { name: "legation", labels, annotations } };
  const { helmRelease } = await read({ mutatingwebhookconfigurations: owned });
  expect(helmRelease).toEqual({ name: "fleet", namespace: "infra" });
  expect(() => refuseBesideHelm({ name: "fleet", namespace: "infra" })).toThrow(
    "Legation: is installed by the Helm release fleet in namespace infra",
  );
  expect(() => refuseBesideHelm({ name: "fleet", namespace: "infra" })).toThrow(
    expect.objectContaining({ remedy: expect.stringContaining("evicted after about five minutes") }),
  );
});

test("knows the chart that Argo CD renders, without annotations of Helm", async () => {
  const labels = { "app.kubernetes.io/managed-by": "Helm" };
  const rendered = { ...configuration({ service: {} }), metadata: { name: "legation", labels } };
  const { helmRelease } = await read({ mutatingwebhookconfigurations: rendered });
  expect(helmRelease).toEqual({ name: "legation", namespace: "legation-system" });
});

test("knows an installation of the command line from a release of Helm", async () => {
  const labels = { "app.kubernetes.io/managed-by": "legation" };
  const own = { ...configuration({ service: {} }), metadata: { name: "legation", labels } };
  expect((await read({ mutatingwebhookconfigurations: own })).helmRelease).toBeUndefined();
});
