import { beforeAll, expect, onTestFinished, test } from "vitest";
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
import { installMcsApi, serviceExportsIn, serviceImports } from "../../../support/services/mcs-api.ts";
import { startWithMcs } from "../../../support/services/mcs-clusters.ts";

const PATIENT = { timeoutMs: 60_000 };
const BOTH = { apiServerFlags: ["--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112"] };
const IPV6 = { apiServerFlags: ["--service-cluster-ip-range=fd00:96::/112"] };

// Services of west and east may have both families, those of north IPv4 alone, and those of south IPv6.
const MEMBERS = ["west", "east", "north", "south"] as const;
type Name = "host" | (typeof MEMBERS)[number];
const ALL: readonly Name[] = ["host", ...MEMBERS];

let clusters: Clusters;
let clients: Readonly<Record<Name, ClusterClient>>;

beforeAll(async () => {
  const own = { host: { ...BOTH, nodes: [] }, west: BOTH, east: BOTH, south: IPV6 };
  clusters = await startClusters({ names: ALL, clusters: own });
  afterFile(() => clusters.stop());
  await Promise.all(ALL.map((name) => installMcsApi(clusters.get(name))));
  await startWithMcs(clusters, MEMBERS);
  const clientsByName = ALL.map((name) => [name, clientOf(clusters.get(name))] as const);
  clients = Object.fromEntries(clientsByName) as typeof clients;
  for (const [, client] of clientsByName) afterFile(() => client.close());
  return cleanUpFile;
}, 600_000);

function makeNamespace(): Promise<string> {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = ALL.map((name) => clusters.get(name));
  return freshNamespace(all, { labels, onFinished: onTestFinished });
}

/** Makes the Service `web` of pods with its label. */
async function makeService(namespace: string, families: object, cluster: Name = "host"): Promise<void> {
  await clients[cluster].create(services, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace },
    spec: { selector: { app: "web" }, ports: [{ port: 80 }], ...families },
  });
}

/** Runs a pod with these addresses, which kwok would not give it. */
async function run(namespace: string, member: (typeof MEMBERS)[number], addresses: string[]): Promise<void> {
  const name = `web-${member}`;
  const client = clients[member];
  const spec = { automountServiceAccountToken: false };
  const annotations = { "legation.dev/clusters": member };
  await clients.host.create(pods, delegatedPod(namespace, name, { labels: { app: "web" }, annotations, spec }));
  await podThat(client, namespace, name, inPhase("Running"), PATIENT);
  const [podIP] = addresses;
  const body = { status: { podIP, podIPs: addresses.map((ip) => ({ ip })) } };
  await client.patch(pods, { namespace, name }, { type: "merge", body }, { subresource: "status" });
}

async function addresses(cluster: Name, namespace: string, service = "web"): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  const labelSelector = `kubernetes.io/service-name=${service}`;
  const { items } = await clients[cluster].list(endpointSlices, { namespace, labelSelector });
  for (const { addressType, endpoints } of items) {
    const all = (endpoints ?? []).flatMap((endpoint) => endpoint.addresses);
    if (all.length > 0) found[addressType] = [...(found[addressType] ?? []), ...all].sort();
  }
  return found;
}

async function families(cluster: Name, namespace: string, name = "web"): Promise<unknown> {
  return (await clients[cluster].find(services, { namespace, name }))?.spec?.ipFamilies;
}

test("a Service of IPv6 alone has IPv6 addresses in members that have any, and leads to all pods there", async () => {
  const namespace = await makeNamespace();
  await makeService(namespace, { ipFamilies: ["IPv6"] });
  await run(namespace, "west", ["10.1.0.7", "fd00:1::7"]);
  await run(namespace, "east", ["10.2.0.7", "fd00:2::7"]);
  await run(namespace, "south", ["fd00:4::7"]);
  const all = ["fd00:1::7", "fd00:2::7", "fd00:4::7"];
  for (const name of ["west", "east", "south"] as const) {
    await eventuallyPasses(async () => expect(await addresses(name, namespace)).toEqual({ IPv6: all }), PATIENT);
    expect(await families(name, namespace), name).toEqual(["IPv6"]);
  }
  await run(namespace, "north", ["10.3.0.7"]);
  await eventuallyPasses(async () => expect(await families("north", namespace)).toEqual(["IPv4"]), PATIENT);
});

test.each<[string, object, Record<Name, readonly string[]>]>([
  [
    "of IPv6 alone",
    { ipFamilies: ["IPv6"] },
    { host: ["IPv6"], west: ["IPv6"], east: ["IPv6"], north: ["IPv4"], south: ["IPv6"] },
  ],
  [
    "of both families",
    { ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv6", "IPv4"] },
    { host: ["IPv6", "IPv4"], west: ["IPv6", "IPv4"], east: ["IPv6", "IPv4"], north: ["IPv4"], south: ["IPv6"] },
  ],
])(
  "an exported Service %s has imports and slices of these families, where a cluster has them",
  async (_, spec, wanted) => {
    const namespace = await makeNamespace();
    await makeService(namespace, spec);
    await clients.host.create(serviceExportsIn("v1beta1"), {
      apiVersion: "multicluster.x-k8s.io/v1beta1",
      kind: "ServiceExport",
      metadata: { name: "web", namespace },
    });
    await run(namespace, "west", ["10.1.0.7", "fd00:1::7"]);
    const ofWest = { ...(wanted.host.length > 1 ? { IPv4: ["10.1.0.7"] } : {}), IPv6: ["fd00:1::7"] };
    for (const name of ALL) {
      await eventuallyPasses(async () => {
        expect(await families(name, namespace, "clusterset-web"), name).toEqual(wanted[name]);
        const imported = await clients[name].get(serviceImports, { namespace, name: "web" });
        expect(imported.spec?.ipFamilies).toEqual(wanted[name]);
        expect(imported.spec?.ips).toHaveLength(wanted[name].length);
        expect(await addresses(name, namespace, "clusterset-web")).toEqual(ofWest);
      }, PATIENT);
    }
  },
);

test("a dual-stack Service leads to both addresses of pods in other members, until one leaves", async () => {
  const namespace = await makeNamespace();
  await makeService(namespace, { ipFamilyPolicy: "RequireDualStack" });
  await run(namespace, "west", ["10.1.0.7", "fd00:1::7"]);
  await run(namespace, "east", ["10.2.0.7", "fd00:2::7"]);
  await run(namespace, "north", ["10.3.0.7"]);
  const ofAll = { IPv4: ["10.1.0.7", "10.2.0.7", "10.3.0.7"], IPv6: ["fd00:1::7", "fd00:2::7"] };
  for (const name of ["west", "east", "north"] as const) {
    await eventuallyPasses(async () => expect(await addresses(name, namespace)).toEqual(ofAll), PATIENT);
  }
  for (const name of ["west", "east"] as const) expect(await families(name, namespace)).toEqual(["IPv4", "IPv6"]);
  expect(await families("north", namespace)).toEqual(["IPv4"]);

  await clients.host.delete(pods, { namespace, name: "web-east" }, { gracePeriodSeconds: 0 });
  await eventuallyPasses(async () => {
    const { items } = await clients.east.list(pods, { namespace });
    expect(items).toEqual([]);
  }, PATIENT);
  const { code, stderr } = await legationOn(
    clusters.get("host"),
    ...["unjoin", "east", `--member-kubeconfig=${clusters.get("east").kubeconfig}`],
  );
  expect(code, stderr).toBe(0);
  expect(await addresses("east", namespace)).toEqual({});
  const without = { IPv4: ["10.1.0.7", "10.3.0.7"], IPv6: ["fd00:1::7"] };
  for (const name of ["west", "north"] as const) {
    await eventuallyPasses(async () => expect(await addresses(name, namespace)).toEqual(without), PATIENT);
  }
});
