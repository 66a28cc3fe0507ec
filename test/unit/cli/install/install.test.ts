import { expect, test } from "vitest";
import type { KubeNode } from "../../../../src/api/kubernetes.ts";
import { install } from "../../../../src/cli/install/install.ts";
import { Discovery } from "../../../../src/cli/shared/discovery.ts";
import { discovering } from "../../../support/builders/discovery.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

/** An installation on a host with this node, which ends with its first write. */
function installBeside(node: KubeNode): Promise<unknown> {
  const client = fakeClient({
    raw: discovering({ plural: "configmaps", kind: "ConfigMap" }),
    find: async () => undefined,
    list: async () => ({ items: [node], resourceVersion: "1", size: 0 }),
    create: () => Promise.reject(new Error("written")),
    patch: () => Promise.reject(new Error("written")),
  });
  const { signal } = new AbortController();
  return install(
    [],
    { clusterName: "host", mcs: false, shards: 1, version: "1.2.3" },
    { client, discovery: new Discovery(client, signal), signal, onApplied: () => {}, onAdvice: () => {} },
  );
}

const metadata = { name: "legation-west" };

test.each<[string, KubeNode]>([
  ["its label", { metadata: { ...metadata, labels: { "legation.dev/cluster": "west" } } }],
  ["its provider id alone", { metadata, spec: { providerID: "legation://west" } }],
])("installs beside a virtual node known by %s", async (_, node) => {
  await expect(installBeside(node)).rejects.toThrow("written");
});

test.each<[string, KubeNode]>([
  ["without a provider id", { metadata }],
  ["with the provider id of another name", { metadata, spec: { providerID: "legation://east" } }],
])("refuses to install beside a node of that prefix %s", async (_, node) => {
  await expect(installBeside(node)).rejects.toThrow('has nodes whose names begin with "legation-"');
});
