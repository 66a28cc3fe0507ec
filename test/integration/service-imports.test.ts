import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { ServiceExport, ServiceImport, Stored } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { endpointSlices, pods, services } from "../../src/kube/resources.ts";
import { afterFile, cleanUpFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { legation } from "../support/legation/cli.ts";
import { installMcsApi, removeMcsApi, serviceExportsIn, serviceImports } from "../support/services/mcs-api.ts";
import { makeScene, PATIENT, Scene } from "../support/services/scene.ts";

const serviceExports = serviceExportsIn("v1beta1");
const running = useLegation();
const clients = useClients();
const EVERYWHERE = ["host", "west", "east"] as const;
type Name = (typeof EVERYWHERE)[number];

const OF_MCS = "legation-controller-mcs";

async function join(network: string): Promise<void> {
  for (const name of ["west", "east"] as const) {
    const { kubeconfig } = memberCluster(name);
    const given = [`--kubeconfig=${hostCluster().kubeconfig}`, `--member-kubeconfig=${kubeconfig}`];
    await legation(["join", name, ...given, `--network=${network}`]);
  }
}

beforeAll(async () => {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  afterFile(async () => {
    const settings = JSON.stringify({ data: { network: "", mcs: "false" } });
    await kubectl(hostCluster(), ["-n", "legation-system", "patch", "configmap", "legation", `--patch=${settings}`]);
    await kubectl(hostCluster(), ["delete", `clusterrole/${OF_MCS}`, `clusterrolebinding/${OF_MCS}`]);
    await join("");
    await Promise.all(all.map(removeMcsApi));
  });
  await Promise.all(all.map(installMcsApi));
  await legation(["install", `--kubeconfig=${hostCluster().kubeconfig}`, "--mcs", "--network=corp"]);
  await join("corp");
  await running().controller.stop();
  await running().controller.start();
  return cleanUpFile;
});

/** Exports a Service from a cluster. */
function exportFrom({ namespace }: Scene, cluster: Name, name: string, spec: ServiceExport["spec"] = {}) {
  return clients()[cluster].create(serviceExports, {
    apiVersion: "multicluster.x-k8s.io/v1beta1",
    kind: "ServiceExport",
    metadata: { name, namespace },
    spec,
  });
}

/** Makes a Service of a cluster's own, and runs a pod of it there beside Legation. Resolves to the pod's address. */
async function ownService({ namespace }: Scene, cluster: Name, name: string, spec: object = {}): Promise<string> {
  const client = clients()[cluster];
  const labels = { app: name };
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  const metadata = { name, namespace };
  await client.create(services, {
    apiVersion: "v1",
    kind: "Service",
    metadata,
    spec: { selector: labels, ports, ...spec },
  });
  await client.create(pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadata, labels },
    spec: { automountServiceAccountToken: false, containers: [{ name: "main", image: "web:1" }] },
  });
  return (await podThat(client, namespace, name, inPhase("Running"), PATIENT)).status?.podIP ?? "";
}

function importIn(scene: Scene, cluster: Name, name: string): Promise<Stored<ServiceImport>> {
  return eventually(() => scene.find(clients()[cluster], serviceImports, name), {
    ...PATIENT,
    what: `an import of ${name} in ${cluster}`,
  });
}

/** Addresses to which a cluster's import leads, by the name of the exporting cluster. */
async function endpointsIn({ namespace }: Scene, cluster: Name, name: string): Promise<Record<string, string[]>> {
  const labelSelector = `multicluster.kubernetes.io/service-name=${name}`;
  const [service] = (await clients()[cluster].list(services, { namespace, labelSelector })).items;
  const found: Record<string, string[]> = {};
  for (const { metadata, endpoints } of (await clients()[cluster].list(endpointSlices, { namespace, labelSelector }))
    .items) {
    expect(metadata.labels?.["kubernetes.io/service-name"]).toBe(service?.metadata.name);
    const source = metadata.labels?.["multicluster.kubernetes.io/source-cluster"] ?? "";
    const addresses = (endpoints ?? []).flatMap((endpoint) => endpoint.addresses);
    found[source] = [...(found[source] ?? []), ...addresses].sort();
  }
  return found;
}

async function conditionsIn(scene: Scene, cluster: Name, name: string): Promise<string[]> {
  const found = await scene.find(clients()[cluster], serviceExports, name);
  return (found?.status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`).sort();
}

async function says(scene: Scene, cluster: Name, name: string, wanted: readonly string[]): Promise<void> {
  await eventuallyPasses(async () => expect(await conditionsIn(scene, cluster, name)).toEqual(wanted), PATIENT);
}

/** Waits until an export that is made now is younger than the import: times of creation are whole seconds. */
async function untilOlder(scene: Scene, name: string): Promise<void> {
  await eventuallyPasses(async () => {
    const { metadata } = await importIn(scene, "east", name);
    expect(Date.now() - Date.parse(metadata.creationTimestamp ?? "")).toBeGreaterThan(2_000);
  }, PATIENT);
}

const WELL = ["Conflict=False NoConflicts", "Ready=True Exported", "Valid=True Valid"];

test("an export of the host is imported everywhere in its network, with its pods on the host and in members", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const hostName = "host";
  const inHost = await ownService(scene, "host", "web", { sessionAffinity: "ClientIP" });
  const inEast = (await scene.run("web-1", { app: "web" }, "east")).status?.podIP ?? "";
  await exportFrom(scene, "host", "web", { exportedLabels: { team: "shop" } });
  for (const cluster of EVERYWHERE) {
    await eventuallyPasses(async () => {
      const { metadata, spec, status } = await importIn(scene, cluster, "web");
      const labelSelector = "multicluster.kubernetes.io/service-name=web";
      const { namespace } = scene;
      const [service] = (await clients()[cluster].list(services, { namespace, labelSelector })).items;
      expect(service?.spec?.clusterIP).toMatch(/^\d/);
      expect(metadata.labels).toMatchObject({ team: "shop" });
      expect(spec).toMatchObject({
        type: "ClusterSetIP",
        ports: [{ name: "http", port: 80, protocol: "TCP" }],
        ips: [service?.spec?.clusterIP],
        ipFamilies: ["IPv4"],
        sessionAffinity: "ClientIP",
      });
      expect(status?.clusters).toEqual([{ cluster: hostName }]);
      expect(await endpointsIn(scene, cluster, "web")).toEqual({ [hostName]: [inHost, inEast].sort() });
    }, PATIENT);
  }
  await says(scene, "host", "web", WELL);
  // The members' implementation is Legation itself.
  expect(await scene.find(clients().east, serviceExports, "web")).toBeUndefined();

  await scene.end("web-1");
  for (const cluster of EVERYWHERE) {
    await eventuallyPasses(async () => {
      expect(await endpointsIn(scene, cluster, "web")).toEqual({ [hostName]: [inHost] });
    }, PATIENT);
  }
  await clients().host.delete(serviceExports, { namespace: scene.namespace, name: "web" });
  for (const cluster of EVERYWHERE) {
    await scene.goes(clients()[cluster], serviceImports, "web");
    await eventuallyPasses(async () => expect(await endpointsIn(scene, cluster, "web")).toEqual({}), PATIENT);
  }
});

test("exports of two members are one import: the oldest decides, the others add ports, and both are told", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const inWest = await ownService(scene, "west", "web");
  const more = {
    ports: [
      { name: "http", port: 81, targetPort: 8080 },
      { name: "admin", port: 90 },
    ],
  };
  const inEast = await ownService(scene, "east", "web", more);
  await exportFrom(scene, "west", "web");
  await says(scene, "west", "web", WELL);
  await untilOlder(scene, "web");
  await exportFrom(scene, "east", "web");
  const conflicts = ["Conflict=True PortConflict", "Ready=True Exported", "Valid=True Valid"];
  for (const cluster of ["west", "east"] as const) await says(scene, cluster, "web", conflicts);
  for (const cluster of EVERYWHERE) {
    await eventuallyPasses(async () => {
      const { spec, status } = await importIn(scene, cluster, "web");
      const service = await scene.find(clients()[cluster], services, "clusterset-web");
      for (const { ports } of [spec, service?.spec].flatMap((one) => one ?? [])) {
        expect(ports?.map(({ name, port }) => `${name} ${port}`)).toEqual(["http 80", "admin 90"]);
      }
      expect(status?.clusters?.map((one) => one.cluster).sort()).toEqual(["east", "west"]);
      // East's port of another number leads nowhere.
      expect(await endpointsIn(scene, cluster, "web")).toEqual({ west: [inWest], east: [inEast] });
    }, PATIENT);
  }
  const [slice] = (
    await clients().host.list(endpointSlices, {
      namespace: scene.namespace,
      labelSelector: "multicluster.kubernetes.io/source-cluster=east",
    })
  ).items;
  expect(slice?.ports?.map(({ name }) => name)).toEqual(["admin"]);

  await clients().west.delete(serviceExports, { namespace: scene.namespace, name: "web" });
  await says(scene, "east", "web", WELL);
  await eventuallyPasses(async () => {
    const { spec } = await importIn(scene, "host", "web");
    expect(spec?.ports.map(({ name, port }) => `${name} ${port}`)).toEqual(["admin 90", "http 81"]);
    expect(await endpointsIn(scene, "host", "web")).toEqual({ east: [inEast] });
  }, PATIENT);
});

test("a headless Service has a headless import, without an address of its own", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const inWest = await ownService(scene, "west", "store", { clusterIP: "None" });
  await exportFrom(scene, "west", "store");
  for (const cluster of EVERYWHERE) {
    await eventuallyPasses(async () => {
      const { spec } = await importIn(scene, cluster, "store");
      expect(spec).toMatchObject({ type: "Headless", ipFamilies: ["IPv4"] });
      expect(spec?.ips).toBeUndefined();
      expect(await endpointsIn(scene, cluster, "store")).toEqual({ west: [inWest] });
    }, PATIENT);
  }
});

test("the import of a headless Service gets an address when an export decides that has one", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { namespace } = scene;
  await ownService(scene, "west", "store", { clusterIP: "None" });
  const inEast = await ownService(scene, "east", "store");
  await exportFrom(scene, "west", "store");
  const typeIs = (type: string) =>
    eventuallyPasses(async () => {
      for (const cluster of EVERYWHERE) expect((await importIn(scene, cluster, "store")).spec).toMatchObject({ type });
    }, PATIENT);
  await typeIs("Headless");
  await untilOlder(scene, "store");
  await exportFrom(scene, "east", "store");
  await says(scene, "east", "store", ["Conflict=True TypeConflict", "Ready=True Exported", "Valid=True Valid"]);
  await typeIs("Headless");
  await clients().west.delete(serviceExports, { namespace, name: "store" });
  await typeIs("ClusterSetIP");
  for (const cluster of EVERYWHERE) {
    await eventuallyPasses(async () => {
      expect((await importIn(scene, cluster, "store")).spec?.ips).toHaveLength(1);
      expect(await endpointsIn(scene, cluster, "store")).toEqual({ east: [inEast] });
    }, PATIENT);
  }
});

test("an export that leads nowhere says why, and is imported nowhere", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { west, host } = clients();
  const { namespace } = scene;
  const refused = (reason: string): string[] => ["Ready=False Failed", `Valid=False ${reason}`];
  await exportFrom(scene, "west", "none");
  await says(scene, "west", "none", refused("NoService"));
  const spec = { type: "ExternalName", externalName: "example.com" };
  await west.create(services, { apiVersion: "v1", kind: "Service", metadata: { name: "away", namespace }, spec });
  await exportFrom(scene, "west", "away");
  await says(scene, "west", "away", refused("InvalidServiceType"));
  await ownService(scene, "west", "web");
  await exportFrom(scene, "west", "web");
  await importIn(scene, "host", "web");
  await kubectl(hostCluster(), ["label", "namespace", namespace, "legation.dev/delegation-"]);
  await scene.goes(host, serviceImports, "web");
  await says(scene, "west", "web", [
    "Conflict=False NoConflicts",
    "Ready=False NamespaceNotDelegated",
    "Valid=True Valid",
  ]);
  for (const name of ["none", "away"]) expect(await scene.find(host, serviceImports, name)).toBeUndefined();
});

test("imports of a network that a member has left are gone, also while no controller ran", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { host, east } = clients();
  const setNetwork = (network: string | null) =>
    host.patch(clusters, { name: "east" }, { type: "merge", body: { spec: { network } } });
  onTestFinished(async () => {
    await setNetwork("corp");
  });
  const inWest = await ownService(scene, "west", "web");
  const inEast = await ownService(scene, "east", "web");
  await exportFrom(scene, "west", "web");
  await exportFrom(scene, "east", "web");
  const leadsTo = (wanted: Record<string, string[]>) =>
    eventuallyPasses(async () => expect(await endpointsIn(scene, "host", "web")).toEqual(wanted), PATIENT);
  await leadsTo({ west: [inWest], east: [inEast] });
  await importIn(scene, "east", "web");
  await running().controller.stop("SIGKILL");
  await setNetwork(null);
  await running().controller.start();
  await scene.goes(east, serviceImports, "web");
  await leadsTo({ west: [inWest] });
});

test("what is right is not written again by the next leader, and what a client changed or deleted is put right", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { namespace } = scene;
  const inWest = await ownService(scene, "west", "web");
  await exportFrom(scene, "west", "web");
  const versions = async (client: ClusterClient): Promise<(string | undefined)[]> => {
    const labelSelector = "multicluster.kubernetes.io/service-name=web";
    const all = [
      ...(await client.list(serviceImports, { namespace })).items,
      ...(await client.list(services, { namespace, labelSelector })).items,
      ...(await client.list(endpointSlices, { namespace, labelSelector })).items,
    ];
    return all.map(({ metadata }) => metadata.resourceVersion);
  };
  const stands = () =>
    eventuallyPasses(async () => {
      const { spec, status } = await importIn(scene, "host", "web");
      expect(spec?.ips).toHaveLength(1);
      expect(status?.clusters).toHaveLength(1);
      expect(await endpointsIn(scene, "host", "web")).toEqual({ west: [inWest] });
    }, PATIENT);
  await stands();
  const before = await versions(clients().host);
  await running().controller.stop();
  await running().controller.start();
  // A second export shows that the leader has read all.
  await ownService(scene, "east", "db");
  await exportFrom(scene, "east", "db");
  await importIn(scene, "west", "db");
  expect((await versions(clients().host)).filter((version) => before.includes(version))).toEqual(before);

  const { host } = clients();
  const body = { spec: { ports: [{ port: 99 }] } };
  await host.patch(serviceImports, { namespace, name: "web" }, { type: "merge", body });
  await eventuallyPasses(async () => {
    expect((await importIn(scene, "host", "web")).spec?.ports.map(({ port }) => port)).toEqual([80]);
  }, PATIENT);
  await host.delete(serviceImports, { namespace, name: "web" });
  await stands();
});

test("a cluster has no import in a namespace that it lacks, until it gets a pod of it", async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = [hostCluster(), memberCluster("west")];
  const namespace = await freshNamespace(all, { labels, deleted: true, onFinished: onTestFinished });
  const scene = new Scene(namespace, clients());
  const inWest = await ownService(scene, "west", "web");
  await exportFrom(scene, "west", "web");
  await importIn(scene, "host", "web");
  const refused = (): string[] =>
    running()
      .controller.log()
      .split("\n")
      .filter((line) => line.includes(namespace));
  expect(await scene.find(clients().east, serviceImports, "web")).toBeUndefined();
  await scene.run("client", {}, "east");
  await eventuallyPasses(
    async () => expect(await endpointsIn(scene, "east", "web")).toEqual({ west: [inWest] }),
    PATIENT,
  );
  expect(refused()).toEqual([]);
});

test("a Service of the name that an import's has is left alone, and the import is there once it is gone", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { host } = clients();
  const { namespace } = scene;
  const own = await scene.service("clusterset-web");
  await ownService(scene, "west", "web");
  await exportFrom(scene, "west", "web");
  await importIn(scene, "host", "web");
  await eventuallyPasses(() => expect(running().controller.log()).toContain("has the name of another one"), PATIENT);
  const found = await scene.find(host, services, "clusterset-web");
  expect(found?.metadata.resourceVersion).toBe(own.metadata.resourceVersion);
  expect((await importIn(scene, "host", "web")).spec?.ips).toBeUndefined();
  await host.delete(serviceImports, { namespace, name: "web" });
  await host.delete(services, { namespace, name: "clusterset-web" });
  await eventuallyPasses(async () => expect((await importIn(scene, "host", "web")).spec?.ips).toHaveLength(1), PATIENT);
});

test("without --mcs the next leader takes back what was made with it, and leaves other implementations' imports", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { namespace } = scene;
  const switchTo = async (mcs: string): Promise<void> => {
    await legation(["install", `--kubeconfig=${hostCluster().kubeconfig}`, mcs]);
    await running().controller.stop();
    await running().controller.start();
  };
  await ownService(scene, "west", "web");
  await exportFrom(scene, "west", "web");
  await ownService(scene, "host", "db");
  await exportFrom(scene, "host", "db");
  for (const cluster of EVERYWHERE) for (const name of ["web", "db"]) await importIn(scene, cluster, name);
  await says(scene, "west", "web", WELL);
  await clients().east.create(serviceImports, {
    apiVersion: "multicluster.x-k8s.io/v1beta1",
    kind: "ServiceImport",
    metadata: { name: "other", namespace },
    spec: { type: "ClusterSetIP", ports: [{ port: 80 }] },
  });
  onTestFinished(() => switchTo("--mcs"));
  await switchTo("--mcs=false");
  for (const cluster of EVERYWHERE) {
    for (const name of ["web", "db"]) {
      await scene.goes(clients()[cluster], serviceImports, name);
      await scene.goes(clients()[cluster], services, `clusterset-${name}`);
      await eventuallyPasses(async () => expect(await endpointsIn(scene, cluster, name)).toEqual({}), PATIENT);
    }
  }
  await says(scene, "west", "web", []);
  await says(scene, "host", "db", []);
  await importIn(scene, "east", "other");
});
