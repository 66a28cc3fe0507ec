import { afterEach, expect, onTestFinished, test } from "vitest";
import { clusters } from "../../src/api/resources.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { endpointSlices, nodes, pods, services } from "../../src/kube/resources.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { applyAll } from "../support/harness/kubectl.ts";
import { inPhase, podThat } from "../support/harness/pods-of.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { doctor, remedyOf } from "../support/legation/doctor.ts";
import { legationOn } from "../support/legation/process.ts";
import { makeScene, PATIENT, type Scene } from "../support/services/scene.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";

const gated = useGatedLegation();
const clients = useClients();

async function setNetwork(member: string, network: string | null): Promise<void> {
  await clients().host.patch(clusters, { name: member }, { type: "merge", body: { spec: { network } } });
}

afterEach(async () => {
  for (const member of ["west", "east"]) await setNetwork(member, null);
});

async function leadsTo(
  scene: Scene,
  client: ClusterClient,
  service: string,
  addresses: readonly string[],
): Promise<void> {
  const wanted = [...addresses].sort();
  await eventuallyPasses(async () => expect(await scene.endpoints(client, service)).toEqual(wanted), PATIENT);
}

async function copiedSlices({ namespace }: Scene, client: ClusterClient, service: string) {
  const labelSelector = `kubernetes.io/service-name=${service},endpointslice.kubernetes.io/managed-by=legation.dev`;
  return (await client.list(endpointSlices, { namespace, labelSelector })).items;
}

test("a Service leads to its pods in all members of a network, and to those of the same member without one", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { host, west, east } = clients();
  await scene.service("web");
  const [one, two] = [await scene.run("web-0", { app: "web" }), await scene.run("web-1", { app: "web" }, "east")];
  const [inWest = "", inEast = ""] = [one.status?.podIP, two.status?.podIP];
  await leadsTo(scene, host, "web", [inWest, inEast]);
  await leadsTo(scene, west, "web", [inWest]);
  await leadsTo(scene, east, "web", [inEast]);
  expect(await copiedSlices(scene, west, "web")).toEqual([]);

  await setNetwork("west", "corp");
  await setNetwork("east", "corp");
  for (const client of [west, east]) await leadsTo(scene, client, "web", [inWest, inEast]);

  // A pod that comes, and one that goes.
  const third = await scene.run("web-2", { app: "web" }, "east");
  await leadsTo(scene, west, "web", [inWest, inEast, third.status?.podIP ?? ""]);
  await scene.end("web-1");
  await leadsTo(scene, west, "web", [inWest, third.status?.podIP ?? ""]);

  await setNetwork("east", "lab");
  await leadsTo(scene, west, "web", [inWest]);
  await leadsTo(scene, east, "web", [third.status?.podIP ?? ""]);
  expect(await copiedSlices(scene, west, "web")).toEqual([]);
});

test("a member of a network has each Service of its pods' namespace, also one whose pods are all elsewhere", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { host, west } = clients();
  await setNetwork("west", "corp");
  await setNetwork("east", "corp");
  await scene.service("db");
  const db = await scene.run("db-0", { app: "db" }, "east");
  await scene.run("client");
  await leadsTo(scene, west, "db", [db.status?.podIP ?? ""]);
  await host.delete(services, { namespace: scene.namespace, name: "db" });
  await scene.goes(west, services, "db");
  await eventuallyPasses(async () => expect(await copiedSlices(scene, west, "db")).toEqual([]), PATIENT);
});

test("a Service of the host's own pods leads there from members of the host's network", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { host, west, east } = clients();
  const { legation } = gated();
  const setHostNetwork = async (network: string): Promise<void> => {
    const { code, stderr } = await legationOn(hostCluster(), "install", `--network=${network}`);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain("controllers read the network when they start: restart them");
    await legation.controller.stop();
    await legation.controller.start();
  };
  await setHostNetwork("corp");
  await setNetwork("west", "corp");
  await setNetwork("east", "lab");
  await scene.service("db");
  await host.create(pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "db-0", namespace: scene.namespace, labels: { app: "db" } },
    spec: { automountServiceAccountToken: false, containers: [{ name: "main", image: "db:1" }] },
  });
  const db = await podThat(host, scene.namespace, "db-0", inPhase("Running"), PATIENT);
  expect(db.spec?.nodeName).not.toMatch(/^legation-/);
  await Promise.all([scene.run("client"), scene.run("stranger", {}, "east")]);
  await leadsTo(scene, west, "db", [db.status?.podIP ?? ""]);
  await leadsTo(scene, east, "db", []);

  await setHostNetwork("");
  await leadsTo(scene, west, "db", []);
  expect(await copiedSlices(scene, west, "db")).toEqual([]);
});

test("ports by name, UDP and pods that are not ready are in the other members as on the host", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { host, west, east } = clients();
  const { namespace } = scene;
  await setNetwork("west", "corp");
  await setNetwork("east", "corp");
  const ports = [
    { name: "http", port: 80, targetPort: "http" },
    { name: "dns", port: 53, targetPort: 5353, protocol: "UDP" as const },
  ];
  await scene.service("web", { ports });
  await scene.service("peers", { ports, selector: { app: "web" }, publishNotReadyAddresses: true });
  for (const [member, containerPort] of [
    ["west", 8080],
    ["east", 9090],
  ] as const) {
    const containers = [{ name: "main", image: "web:1", ports: [{ name: "http", containerPort }] }];
    const annotations = { "legation.dev/clusters": member };
    const spec = { automountServiceAccountToken: false, containers };
    const name = `web-${member}`;
    await host.create(pods, delegatedPod(namespace, name, { labels: { app: "web" }, annotations, spec }));
    await podThat(host, namespace, name, inPhase("Running"), PATIENT);
  }
  const copied = async (service: string) => {
    const [slice] = await copiedSlices(scene, west, service);
    const numbers = slice?.ports?.map(({ name, port, protocol }) => `${name} ${port}/${protocol}`).sort();
    return { numbers, conditions: slice?.endpoints?.map(({ conditions }) => conditions) };
  };
  const numbers = ["dns 5353/UDP", "http 9090/TCP"];
  const well = [{ ready: true, serving: true, terminating: false }];
  for (const service of ["web", "peers"]) {
    await eventuallyPasses(async () => expect(await copied(service)).toEqual({ numbers, conditions: well }), PATIENT);
  }
  const conditions = [{ type: "Ready", status: "False" }];
  const ref = { namespace, name: "web-east" };
  await east.patch(pods, ref, { type: "strategic", body: { status: { conditions } } }, { subresource: "status" });
  const unready = { serving: false, terminating: false };
  for (const [service, ready] of [
    ["web", false],
    ["peers", true],
  ] as const) {
    const wanted = { numbers, conditions: [{ ready, ...unready }] };
    await eventuallyPasses(async () => expect(await copied(service)).toEqual(wanted), PATIENT);
  }
});

test("pods of a StatefulSet keep their names in the other members", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { west, east } = clients();
  await setNetwork("west", "corp");
  await setNetwork("east", "corp");
  const { namespace } = scene;
  const labels = { app: "store" };
  await scene.service("store", { selector: labels, clusterIP: "None" });
  const annotations = {
    "legation.dev/delegate": "true",
    "legation.dev/scheduling-preferences": '{"clusters": {"west": {"weight": 1}, "east": {"weight": 1}}}',
  };
  await applyAll(hostCluster(), [
    {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: "store", namespace },
      spec: {
        serviceName: "store",
        replicas: 4,
        podManagementPolicy: "Parallel",
        selector: { matchLabels: labels },
        template: {
          metadata: { labels, annotations },
          spec: { automountServiceAccountToken: false, containers: [{ name: "main", image: "store:1" }] },
        },
      },
    },
  ]);
  await eventuallyPasses(async () => {
    for (const client of [west, east]) {
      const { items } = await client.list(endpointSlices, {
        namespace,
        labelSelector: "kubernetes.io/service-name=store",
      });
      const names = items.flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ hostname }) => hostname ?? []));
      expect(names.sort()).toEqual(["store-0", "store-1", "store-2", "store-3"]);
      expect(await copiedSlices(scene, client, "store")).toHaveLength(1);
    }
  }, PATIENT);
});

test("a member whose pods have addresses of another's is left out of the network, by name, until they have not", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { host, west, east } = clients();
  await scene.service("web");
  const [one, two] = [await scene.run("web-0", { app: "web" }), await scene.run("web-1", { app: "web" }, "east")];
  const [inWest = "", inEast = ""] = [one.status?.podIP, two.status?.podIP];
  const addNode = async (client: ClusterClient, cidr: string): Promise<void> => {
    await client.create(nodes, { metadata: { name: "of-cidr" }, spec: { podCIDRs: [cidr], unschedulable: true } });
    onTestFinished(async () => {
      if ((await client.find(nodes, { name: "of-cidr" })) !== undefined)
        await client.delete(nodes, { name: "of-cidr" });
    });
  };
  await addNode(west, "10.21.0.0/16");
  await addNode(east, "10.21.7.0/24");
  await setNetwork("west", "corp");
  await setNetwork("east", "corp");
  const leftOut = async (): Promise<string | undefined> => {
    const all = (await host.list(clusters)).items.filter(({ status }) =>
      status?.conditions?.some(({ reason }) => reason === "PodNetworksOverlap"),
    );
    return all.map(({ metadata }) => metadata.name).join();
  };
  await eventuallyPasses(async () => expect(["west", "east"]).toContain(await leftOut()), PATIENT);
  const out = (await leftOut()) === "west" ? "west" : "east";
  const [cidr, other, otherCidr] =
    out === "west" ? ["10.21.0.0/16", "east", "10.21.7.0/24"] : ["10.21.7.0/24", "west", "10.21.0.0/16"];
  const what = `${out}: its pods have addresses of ${cidr}, and those of ${other} addresses of ${otherCidr}: it is left out of network corp`;
  const status = await legationOn(hostCluster(), "status", out);
  expect(status.stdout).toContain(what);
  expect(remedyOf(await doctor(`--members=${out}`), what)).toContain(`kubectl patch clusters.legation.dev ${out}`);
  await leadsTo(scene, west, "web", [inWest]);
  await leadsTo(scene, east, "web", [inEast]);

  await east.delete(nodes, { name: "of-cidr" });
  for (const client of [west, east]) await leadsTo(scene, client, "web", [inWest, inEast]);
  await eventuallyPasses(async () => expect(await leftOut()).toBe(""), PATIENT);
});

test("no endpoint outlives its network while no controller runs, once one runs again", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  const { west } = clients();
  const { legation } = gated();
  await setNetwork("west", "corp");
  await setNetwork("east", "corp");
  await scene.service("web");
  const [one, two] = [await scene.run("web-0", { app: "web" }), await scene.run("web-1", { app: "web" }, "east")];
  await leadsTo(scene, west, "web", [one.status?.podIP ?? "", two.status?.podIP ?? ""]);
  await legation.controller.stop("SIGKILL");
  await setNetwork("east", null);
  await setNetwork("west", null);
  await legation.controller.start();
  await leadsTo(scene, west, "web", [one.status?.podIP ?? ""]);
  expect(await copiedSlices(scene, west, "web")).toEqual([]);
});
