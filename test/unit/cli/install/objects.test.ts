import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { planInstall } from "../../../../src/cli/install/objects.ts";
import { loadManifests, type Manifest } from "../../../../src/cli/shared/manifests.ts";
import { packageRoot } from "../../../../src/cli/shared/package-root.ts";

const manifest = (kind: string, more: Record<string, unknown> = {}): Manifest => ({
  apiVersion: "v1",
  kind,
  metadata: { name: kind.toLowerCase() },
  ...more,
});

const webhook = manifest("MutatingWebhookConfiguration", {
  webhooks: [
    {
      name: "pods.legation.dev",
      failurePolicy: "Fail",
      clientConfig: {
        caBundle: "old",
        service: { namespace: "legation-system", name: "w", path: "/mutate", port: 443 },
      },
    },
  ],
});

const deployment = manifest("Deployment", {
  spec: { replicas: 2, template: { spec: { containers: [{ name: "c", image: "legation", args: ["webhook"] }] } } },
});

const all = [
  webhook,
  manifest("ValidatingAdmissionPolicyBinding"),
  deployment,
  manifest("Service"),
  manifest("ClusterRoleBinding"),
  manifest("Unheard"),
  manifest("ClusterRole"),
  manifest("ServiceAccount"),
  manifest("Namespace"),
  manifest("CustomResourceDefinition"),
];

describe("the plan of an installation", () => {
  test("applies dependencies first, and admission last", () => {
    const { apply, leaveOut } = planInstall(all, { clusterName: "host", mcs: false, shards: 1, version: "1.2.3" });
    expect(apply.map(({ kind }) => kind)).toEqual([
      "CustomResourceDefinition",
      "Namespace",
      "ServiceAccount",
      "ClusterRole",
      "ClusterRoleBinding",
      "ConfigMap",
      "Service",
      "Deployment",
      "Unheard",
      "ValidatingAdmissionPolicyBinding",
      "MutatingWebhookConfiguration",
    ]);
    expect(leaveOut).toEqual([]);
  });

  test("deploys nothing when the webhook runs outside", () => {
    const { apply, leaveOut } = planInstall(all, {
      clusterName: "host",
      mcs: false,
      shards: 1,
      version: "1.2.3",
      webhookUrl: "https://127.0.0.1:8443",
    });
    expect(leaveOut.map(({ kind }) => kind)).toEqual(["Deployment", "Service"]);
    expect(apply.map(({ kind }) => kind)).not.toContain("Deployment");
  });

  test.each([
    [undefined, { service: { namespace: "legation-system", name: "w", path: "/mutate", port: 443 } }],
    ["https://127.0.0.1:8443", { url: "https://127.0.0.1:8443/mutate" }],
  ])("changes only the webhook's target for %s, and leaves out the caBundle", (webhookUrl, clientConfig) => {
    const { apply } = planInstall([webhook], {
      clusterName: "host",
      mcs: false,
      shards: 1,
      version: "1.2.3",
      webhookUrl,
    });
    expect(apply.at(-1)?.webhooks).toEqual([{ name: "pods.legation.dev", failurePolicy: "Fail", clientConfig }]);
  });

  test("sets the image in every container and the version of the pods, and nothing else of their template", () => {
    const { apply } = planInstall([deployment], {
      clusterName: "host",
      mcs: false,
      shards: 1,
      version: "1.2.3",
      image: "registry.example/legation:2",
    });
    expect(apply.find(({ kind }) => kind === "Deployment")?.spec).toEqual({
      replicas: 2,
      template: {
        metadata: { labels: { "app.kubernetes.io/version": "1.2.3" } },
        spec: { containers: [{ name: "c", image: "registry.example/legation:2", args: ["webhook"] }] },
      },
    });
  });

  test("labels every object so that uninstall finds it", () => {
    const { apply } = planInstall(all, { clusterName: "host", mcs: false, shards: 1, version: "1.2.3" });
    for (const { metadata } of apply) {
      expect(metadata.labels).toMatchObject({
        "app.kubernetes.io/managed-by": "legation",
        "app.kubernetes.io/part-of": "legation",
      });
    }
  });

  test("writes the host's name where the controller reads it", () => {
    const { apply } = planInstall([], { clusterName: "berlin", mcs: false, shards: 1, version: "1.2.3" });
    expect(apply).toMatchObject([
      {
        kind: "ConfigMap",
        metadata: { namespace: "legation-system", name: "legation" },
        data: { "cluster-name": "berlin" },
      },
    ]);
  });
});

describe("access to members", () => {
  const own = { clusterName: "host", mcs: false, shards: 1, version: "1.2.3" };
  const folder = join(packageRoot(), "manifests", "access");
  const kindsOf = (manifests: readonly Manifest[]): string[] => manifests.map(({ kind }) => kind);
  const find = (manifests: readonly Manifest[], kind: string): Manifest | undefined =>
    manifests.find((each) => each.kind === kind);

  test("is deployed with its Service, in a cluster whose webhook runs outside, too", async () => {
    const manifests = await loadManifests(folder);
    const { apply, leaveOut } = planInstall(manifests, { ...own, webhookUrl: "https://192.0.2.1" });
    expect(kindsOf(apply)).toEqual(
      expect.arrayContaining(["Deployment", "PodDisruptionBudget", "Service", "APIService"]),
    );
    expect(leaveOut).toEqual([]);
    expect(find(apply, "Service")).toMatchObject({ spec: { selector: {}, ports: [{ port: 443 }] } });
    expect(kindsOf(apply).indexOf("APIService")).toBeGreaterThan(kindsOf(apply).indexOf("Deployment"));
  });

  test("is called at an address outside the cluster by an ExternalName Service, and the APIService's port", async () => {
    const manifests = await loadManifests(folder);
    const { apply, leaveOut } = planInstall(manifests, { ...own, accessAddress: "access.example.org:9444" });
    expect(kindsOf(leaveOut)).toEqual(["ResourceQuota", "Deployment", "PodDisruptionBudget"]);
    expect(find(apply, "Service")?.spec).toEqual({
      type: "ExternalName",
      externalName: "access.example.org",
      ports: [{ name: "https", port: 9444 }],
    });
    expect(find(apply, "APIService")).toMatchObject({
      spec: { service: { namespace: "legation-access", name: "legation-access", port: 9444 } },
    });
  });
});
