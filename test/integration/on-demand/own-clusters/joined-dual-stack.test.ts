import { beforeAll, expect, onTestFinished, test } from "vitest";
import { clusters as clusterResource } from "../../../../src/api/resources.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { endpointSlices, pods, services } from "../../../../src/kube/resources.ts";
import { startClusters } from "../../../support/clusters/start.ts";
import type { Clusters } from "../../../support/clusters/types.ts";
import { delegatedPod } from "../../../support/delegated/pods.ts";
import { afterFile, cleanUpFile } from "../../../support/harness/after-file.ts";
import { clientOf } from "../../../support/harness/clients.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { inPhase, podThat } from "../../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../../support/harness/wait.ts";
import { legationOn } from "../../../support/legation/process.ts";
import { startLegation } from "../../../support/legation/start.ts";

const PATIENT = { timeoutMs: 60_000 };
const BOTH = { apiServerFlags: ["--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112"] };

let clusters: Clusters;
let host: ClusterClient;
let west: ClusterClient;
let east: ClusterClient;
let north: ClusterClient;

beforeAll(async () => {
  // Pods of north have IPv4 addresses alone, as has its Services' range.
  const names = ["host", "west", "east", "north"];
  clusters = await startClusters({ names, clusters: { host: { ...BOTH, nodes: [] }, west: BOTH, east: BOTH } });
  afterFile(() => clusters.stop());
  const members = Object.fromEntries(names.slice(1).map((name) => [name, clusters.get(name)]));
  const running = await startLegation({ host: clusters.get("host"), members, restart: true });
  afterFile(() => running.stop());
  [host, west, east, north] = names.map((name) => clientOf(clusters.get(name))) as [
    ClusterClient,
    ClusterClient,
    ClusterClient,
    ClusterClient,
  ];
  for (const client of [host, west, east, north]) afterFile(() => client.close());
  for (const name of names.slice(1)) {
    await host.patch(clusterResource, { name }, { type: "merge", body: { spec: { network: "corp" } } });
  }
  return cleanUpFile;
}, 600_000);

/** Runs a pod with these addresses, which kwok would not give it. */
async function run(namespace: string, member: string, client: ClusterClient, addresses: string[]): Promise<void> {
  const name = `web-${member}`;
  const spec = { automountServiceAccountToken: false };
  const annotations = { "legation.dev/clusters": member };
  await host.create(pods, delegatedPod(namespace, name, { labels: { app: "web" }, annotations, spec }));
  await podThat(client, namespace, name, inPhase("Running"), PATIENT);
  const [podIP] = addresses;
  const body = { status: { podIP, podIPs: addresses.map((ip) => ({ ip })) } };
  await client.patch(pods, { namespace, name }, { type: "merge", body }, { subresource: "status" });
}

async function addresses(client: ClusterClient, namespace: string): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  const { items } = await client.list(endpointSlices, { namespace, labelSelector: "kubernetes.io/service-name=web" });
  for (const { addressType, endpoints } of items) {
    const all = (endpoints ?? []).flatMap((endpoint) => endpoint.addresses);
    if (all.length > 0) found[addressType] = [...(found[addressType] ?? []), ...all].sort();
  }
  return found;
}

test("a dual-stack Service leads to both addresses of pods in other members, until one leaves", async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = ["host", "west", "east", "north"].map((name) => clusters.get(name));
  const namespace = await freshNamespace(all, { labels, onFinished: onTestFinished });
  await host.create(services, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace },
    spec: { selector: { app: "web" }, ports: [{ port: 80 }], ipFamilyPolicy: "RequireDualStack" },
  });
  await run(namespace, "west", west, ["10.1.0.7", "fd00:1::7"]);
  await run(namespace, "east", east, ["10.2.0.7", "fd00:2::7"]);
  await run(namespace, "north", north, ["10.3.0.7"]);
  const ofAll = { IPv4: ["10.1.0.7", "10.2.0.7", "10.3.0.7"], IPv6: ["fd00:1::7", "fd00:2::7"] };
  for (const client of [west, east, north]) {
    await eventuallyPasses(async () => expect(await addresses(client, namespace)).toEqual(ofAll), PATIENT);
  }
  const families = async (client: ClusterClient): Promise<unknown> =>
    (await client.get(services, { namespace, name: "web" })).spec?.ipFamilies;
  for (const client of [west, east]) expect(await families(client)).toEqual(["IPv4", "IPv6"]);
  expect(await families(north)).toEqual(["IPv4"]);

  await host.delete(pods, { namespace, name: "web-east" }, { gracePeriodSeconds: 0 });
  await eventuallyPasses(async () => {
    const { items } = await east.list(pods, { namespace });
    expect(items).toEqual([]);
  }, PATIENT);
  const { code, stderr } = await legationOn(
    clusters.get("host"),
    ...["unjoin", "east", `--member-kubeconfig=${clusters.get("east").kubeconfig}`],
  );
  expect(code, stderr).toBe(0);
  expect(await addresses(east, namespace)).toEqual({});
  const without = { IPv4: ["10.1.0.7", "10.3.0.7"], IPv6: ["fd00:1::7"] };
  for (const client of [west, north]) {
    await eventuallyPasses(async () => expect(await addresses(client, namespace)).toEqual(without), PATIENT);
  }
});
