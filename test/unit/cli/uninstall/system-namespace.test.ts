import { describe, expect, test } from "vitest";
import type { KubeObject, Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { Discovery } from "../../../../src/cli/shared/discovery.ts";
import { removeSystemNamespace } from "../../../../src/cli/uninstall/objects.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();
const installed = { "app.kubernetes.io/managed-by": "legation", "app.kubernetes.io/part-of": "legation" };

/** Returns deletions and reports where the namespace has these Secrets, and that many other hosts have access there. */
async function removal(stored: readonly Secret[], otherHosts: number) {
  const deleted: string[] = [];
  const told: string[] = [];
  const accounts = Array.from({ length: otherHosts }, (_, index) => ({ metadata: { name: `legation-host-${index}` } }));
  let namespace: Stored<KubeObject> | undefined = {
    metadata: { name: "legation-system", uid: "n", resourceVersion: "1" },
  };
  const leases = ["", "-1", "-replica-0a"].map((suffix) => ({ metadata: { name: `legation-controller${suffix}` } }));
  const host = fakeClient({
    find: async () => namespace,
    list: async (resource: Resource<KubeObject>) => ({
      items: { serviceaccounts: accounts, secrets: stored, leases }[resource.plural] ?? [],
      resourceVersion: "1",
      size: 0,
    }),
    delete: async (resource: Resource<KubeObject>, { name }: { name: string }, { uid }: { uid?: string }) => {
      deleted.push(`${resource.plural}/${name}${uid === undefined ? "" : ` ${uid}`}`);
      if (resource.plural === "namespaces") namespace = undefined;
    },
  });
  await removeSystemNamespace({
    host,
    discovery: new Discovery(host, signal),
    signal,
    report: () => {},
    remains: (what) => told.push(what),
  });
  return { deleted, told };
}

function secret(name: string, metadata: object = {}, more: object = {}): Stored<Secret> {
  return { metadata: { name, uid: `uid of ${name}`, resourceVersion: "1", ...metadata }, ...more };
}

const TOKEN = "kubernetes.io/service-account-token";
const tls = { type: "kubernetes.io/tls" };
const certificate = "legation-webhook-certificate";

describe("Legation's namespace in a member of other hosts", () => {
  test.each<[string, Stored<Secret>, boolean]>([
    ["the webhook's own certificate goes", secret(certificate, { labels: installed }, tls), true],
    ["a pull secret stays", secret("registry", {}, { type: "kubernetes.io/dockerconfigjson" }), false],
    ["a certificate that the webhook was given stays", secret("legation-webhook-tls", {}, tls), false],
    [
      "a certificate of that name with another manager's label stays",
      secret(certificate, { labels: { "app.kubernetes.io/managed-by": "cert-manager" } }, tls),
      false,
    ],
    ["credentials that an operator wrote stay", secret("member-west"), false],
    ["the token of an operator's account stays", secret("reader", { labels: installed }, { type: TOKEN }), false],
  ])("%s", async (_, found, goes) => {
    const stays = !goes && found.type !== TOKEN;
    const { deleted, told } = await removal([found], 1);
    const { name, uid } = found.metadata;
    const leases = ["", "-1", "-replica-0a"].map((suffix) => `leases/legation-controller${suffix}`);
    expect(deleted).toEqual([...leases, ...(goes ? [`secrets/${name} ${uid}`] : [])]);
    expect(told).toEqual([
      "Namespace legation-system: this cluster is a member of other hosts: legation-host-0",
      ...(stays ? [`Secrets in legation-system that Legation did not make: ${name}`] : []),
    ]);
  });
});

test("removes the namespace where no other host needs it", async () => {
  const { deleted, told } = await removal([secret("registry")], 0);
  expect(deleted).toEqual(["namespaces/legation-system n"]);
  expect(told).toEqual([]);
});
