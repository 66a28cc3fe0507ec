import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AGGREGATE_TO_HOST_LABEL, HOST_LABEL, OVERRIDES_ANNOTATION, WHOLE_KEY } from "../../src/api/keys.ts";
import type { Service, Stored } from "../../src/api/kubernetes.ts";
import { delegatedTypes } from "../../src/api/resources.ts";
import { membersOfObject } from "../../src/copies/object-members.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { endpointSlices, services } from "../../src/kube/resources.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { legation } from "../support/legation/cli.ts";
import { makeScene, PATIENT, type Scene } from "../support/services/scene.ts";

useLegation();
const clients = useClients();
const WHOLE = { annotations: { [WHOLE_KEY]: "true" } };
const IN_WEST = { annotations: { [WHOLE_KEY]: "true", "legation.dev/clusters": "west" } };
const ROLES = ["controller", "authors"].map((role) => `clusterrole/legation-${role}-services`);

beforeAll(async () => {
  const host = `--kubeconfig=${hostCluster().kubeconfig}`;
  const member = `--member-kubeconfig=${memberCluster("west").kubeconfig}`;
  await legation(["join", "west", host, member, "--types=services"]);
  await legation(["install", host, "--types=services"]);
  // The command and the manifest write one type.
  await kubectl(hostCluster(), ["apply", "-f", "manifests/delegated-types/services.yaml"]);
  await eventually(
    async () => {
      const gathered = await kubectl(hostCluster(), ["get", "clusterrole/legation-controller-types", "-o", "json"]);
      return gathered.includes('"services/status"');
    },
    { what: "the controller's rights on Services" },
  );
});

// Later files share the clusters.
afterAll(async () => {
  await kubectl(hostCluster(), ["delete", "--ignore-not-found", "delegatedtype/services"]);
  await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...ROLES]);
  const west = memberCluster("west");
  const granted = await kubectl(west, ["get", "clusterroles", "-l", AGGREGATE_TO_HOST_LABEL, "-o", "name"]);
  const ofType = granted.split("\n").filter((role) => role.endsWith("-services"));
  await kubectl(west, ["delete", ...ofType]);
});

function ref({ namespace }: Scene, name = "web"): { readonly namespace: string; readonly name: string } {
  return { namespace, name };
}

function change(client: ClusterClient, scene: Scene, body: object, subresource?: "status"): Promise<Stored<Service>> {
  const options = subresource === undefined ? {} : { subresource };
  return client.patch(services, ref(scene), { type: "merge", body }, options);
}

/** Waits for a copy in a member that `holds`. */
function copyIn(
  client: ClusterClient,
  scene: Scene,
  holds: (copy: Stored<Service>) => boolean = () => true,
): Promise<Stored<Service>> {
  return eventually(
    async () => {
      const found = await scene.find(client, services, "web");
      if (found !== undefined && holds(found)) return found;
      throw new Error(`the member has ${JSON.stringify(found ?? null)}`);
    },
    { ...PATIENT, what: "the copy as wanted" },
  );
}

async function isInStep(scene: Scene, members: readonly string[]): Promise<void> {
  await eventuallyPasses(async () => {
    const record = membersOfObject({ ...(await clients().host.get(services, ref(scene))) });
    expect(record).toMatchObject(members.map((member) => ({ member, state: "InStep" })));
  });
}

function nodePortsOf({ spec }: Stored<Service>): (number | undefined)[] {
  return (spec?.ports ?? []).map(({ nodePort }) => nodePort);
}

describe.concurrent("a Service with legation.dev/whole", () => {
  test("has each member's addresses and node ports, and endpoints in every cluster, which nobody contests", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west, east } = clients();
    const ports = [
      { name: "a", port: 80, targetPort: 8080 },
      { name: "b", port: 81, targetPort: 8081 },
    ];
    const made = await scene.service("web", { type: "NodePort", ports }, WHOLE);
    for (const member of [west, east]) {
      const copy = await copyIn(member, scene);
      expect(copy.spec).toMatchObject({ type: "NodePort", selector: { app: "web" }, ports });
      expect(copy.spec?.clusterIP).toMatch(/\d/);
    }
    await isInStep(scene, ["east", "west"]);
    // Endpoints carry the Service's labels, and are their controllers' own in all clusters.
    for (const client of [host, west]) {
      await eventuallyPasses(async () => {
        const labelSelector = `kubernetes.io/service-name=web,${WHOLE_KEY}=true`;
        expect((await client.list(endpointSlices, { namespace: scene.namespace, labelSelector })).items).toHaveLength(
          1,
        );
      });
    }
    // The order of ports has no meaning to the member's API server.
    const reversed = [...(made.spec?.ports ?? [])].reverse();
    await change(host, scene, { spec: { ports: reversed, publishNotReadyAddresses: true } });
    const changed = await copyIn(west, scene, ({ spec }) => spec?.publishNotReadyAddresses === true);
    expect(nodePortsOf(changed)).not.toContain(undefined);
    // A drift of the author's fields is put back, with the member's own addresses.
    await change(west, scene, { spec: { selector: null } });
    const back = await copyIn(west, scene, ({ spec }) => spec?.selector?.app === "web");
    expect(back.spec?.clusterIP).toBe(changed.spec?.clusterIP);
    expect(nodePortsOf(back).toSorted()).toEqual(nodePortsOf(changed).toSorted());
    await isInStep(scene, ["east", "west"]);
    const { others } = await legationWrites(memberCluster("east"), scene.namespace);
    expect(others.filter((write) => !write.endsWith("namespaces"))).toEqual([
      "create services",
      "patch services",
      "patch services",
    ]);
  });

  test("stays headless, and changes its type in place where it keeps its address", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west } = clients();
    await scene.service("headless", { clusterIP: "None", selector: { app: "web" } }, IN_WEST);
    const ports = [
      { name: "a", port: 80, targetPort: 80 },
      { name: "b", port: 81, targetPort: 81 },
    ];
    const hostPorts = (await scene.service("web", { type: "NodePort", ports }, IN_WEST)).spec?.ports ?? [];
    const first = await copyIn(west, scene);
    const headless = await eventually(() => scene.find(west, services, "headless"), PATIENT);
    expect(headless.spec).toMatchObject({ clusterIP: "None", type: "ClusterIP" });
    // The host's API server wants its node ports given up, too.
    const [one] = hostPorts.map(({ nodePort: _, ...port }) => port);
    await change(host, scene, { spec: { type: "ClusterIP", ports: [one] } });
    const internal = await copyIn(west, scene, ({ spec }) => spec?.type === "ClusterIP");
    expect(internal.metadata.uid).toBe(first.metadata.uid);
    expect(internal.spec?.clusterIP).toBe(first.spec?.clusterIP);
    expect(nodePortsOf(internal)).toEqual([undefined]);
    await change(host, scene, { spec: { type: "NodePort" } });
    const again = await copyIn(west, scene, ({ spec }) => spec?.type === "NodePort");
    expect(again.metadata.uid).toBe(first.metadata.uid);
    expect(nodePortsOf(again)).toEqual([expect.any(Number)]);
    // A name has no address.
    const named = { type: "ExternalName", externalName: "db.example.com", clusterIP: null, clusterIPs: null };
    await change(host, scene, { spec: { ...named, ports: null, selector: null } });
    const outside = await copyIn(west, scene, ({ spec }) => spec?.type === "ExternalName");
    expect(outside.spec).toMatchObject({ externalName: "db.example.com" });
    await isInStep(scene, ["west"]);
  });

  test("shows the addresses that load balancers of members give, and none of this cluster's serves it", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west, east } = clients();
    const ingressOf = async (): Promise<unknown> =>
      (await host.get(services, ref(scene))).status?.loadBalancer?.ingress;
    const give = (client: ClusterClient, ...ingress: object[]): Promise<unknown> =>
      change(client, scene, { status: { loadBalancer: { ingress } } }, "status");
    const overrides = JSON.stringify([
      { clusters: ["west"], patch: [{ op: "add", path: "/spec/loadBalancerClass", value: "example.com/nlb" }] },
    ]);
    const annotations = { ...WHOLE.annotations, [OVERRIDES_ANNOTATION]: overrides };
    const made = await scene.service("web", { type: "LoadBalancer" }, { annotations });
    expect(made.spec?.loadBalancerClass).toBe("legation.dev/whole");
    expect((await copyIn(west, scene)).spec).toMatchObject({
      type: "LoadBalancer",
      loadBalancerClass: "example.com/nlb",
    });
    expect((await copyIn(east, scene)).spec?.loadBalancerClass).toBeUndefined();
    await give(west, { ip: "192.0.2.1", ipMode: "VIP" }, { hostname: "west.example.com" });
    await eventuallyPasses(async () =>
      expect(await ingressOf()).toEqual([{ ip: "192.0.2.1", ipMode: "VIP" }, { hostname: "west.example.com" }]),
    );
    await give(east, { ip: "198.51.100.1", ipMode: "VIP" });
    await eventuallyPasses(async () =>
      expect(await ingressOf()).toEqual([
        { ip: "198.51.100.1", ipMode: "VIP" },
        { ip: "192.0.2.1", ipMode: "VIP" },
        { hostname: "west.example.com" },
      ]),
    );
    const taken = { metadata: { annotations: { [WHOLE_KEY]: null } } };
    await expect(change(host, scene, taken)).rejects.toThrow("set spec.type to ClusterIP first");
    await change(host, scene, { spec: { type: "ClusterIP" } });
    await eventuallyPasses(async () => expect(await ingressOf()).toBeUndefined(), PATIENT);
    await copyIn(west, scene, ({ spec }) => spec?.type === "ClusterIP" && spec.loadBalancerClass === undefined);
    await change(host, scene, { spec: { type: "LoadBalancer" } });
    expect((await host.get(services, ref(scene))).spec?.loadBalancerClass).toBe("legation.dev/whole");
  });

  test("is refused where a load balancer of this cluster may serve it", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host } = clients();
    const classed = scene.service("other", { type: "LoadBalancer", loadBalancerClass: "example.com/nlb" }, WHOLE);
    await expect(classed).rejects.toThrow("write it for members: annotation legation.dev/overrides");
    await scene.service("web", { type: "LoadBalancer" });
    await expect(change(host, scene, { metadata: WHOLE })).rejects.toThrow("delete the Service and create it anew");
    await change(host, scene, { spec: { type: "ClusterIP" } });
    await change(host, scene, { metadata: WHOLE, spec: { type: "LoadBalancer" } });
    expect((await host.get(services, ref(scene))).spec?.loadBalancerClass).toBe("legation.dev/whole");
  });

  test("is one copy with its pods', which is handed over both ways", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west } = clients();
    await scene.service("web", { type: "NodePort" });
    const pod = await scene.run("web-0", { app: "web" });
    const first = await scene.inWest("web", ({ spec }) => spec?.type === "ClusterIP");
    await change(host, scene, { metadata: IN_WEST });
    const whole = await scene.inWest("web", ({ spec }) => spec?.type === "NodePort");
    expect(whole.metadata.uid).toBe(first.metadata.uid);
    expect(whole.spec?.clusterIP).toBe(first.spec?.clusterIP);
    await isInStep(scene, ["west"]);
    for (const client of [host, west]) {
      await eventuallyPasses(async () => expect(await scene.endpoints(client, "web")).toEqual([pod.status?.podIP]));
    }
    const taken = { metadata: { annotations: { [WHOLE_KEY]: null, "legation.dev/clusters": null } } };
    await change(host, scene, taken);
    const kept = await scene.inWest("web", ({ spec }) => spec?.type === "ClusterIP");
    expect(kept.metadata.uid).toBe(first.metadata.uid);
    expect(kept.metadata.labels).not.toHaveProperty([WHOLE_KEY]);
    expect(nodePortsOf(kept)).toEqual([undefined]);
    await scene.end("web-0");
    await scene.goes(west, services, "web");
  });

  test("takes its EndpointSlices along if it has no selector, and leaves both to the member as an orphan", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west } = clients();
    const { namespace } = scene;
    const orphan = { annotations: { ...IN_WEST.annotations, "legation.dev/on-delete": "orphan" } };
    const metadata = { ...orphan, name: "web", namespace };
    await host.create(services, { metadata, spec: { ports: [{ port: 5432 }] } });
    await host.create(endpointSlices, {
      metadata: { name: "web-1", namespace, labels: { "kubernetes.io/service-name": "web" } },
      addressType: "IPv4",
      endpoints: [{ addresses: ["192.0.2.1"] }],
      ports: [{ port: 5432, name: "" }],
    });
    await copyIn(west, scene);
    await eventuallyPasses(async () => expect(await scene.endpoints(west, "web")).toEqual(["192.0.2.1"]), PATIENT);
    const body = { endpoints: [{ addresses: ["192.0.2.2"] }] };
    await host.patch(endpointSlices, { namespace, name: "web-1" }, { type: "merge", body });
    await eventuallyPasses(async () => expect(await scene.endpoints(west, "web")).toEqual(["192.0.2.2"]), PATIENT);
    await kubectl(hostCluster(), ["delete", "service/web", "-n", namespace, "--timeout=30s"]);
    const left = await scene.find(west, services, "web");
    expect(left?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
    const slice = await west.get(endpointSlices, { namespace, name: "web-1" });
    expect(slice.metadata.labels?.[HOST_LABEL]).toBeUndefined();
    expect(await scene.endpoints(west, "web")).toEqual(["192.0.2.2"]);
  });

  test("stays on the host until the member's load balancer is gone", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west } = clients();
    await scene.service("web", { type: "LoadBalancer" }, IN_WEST);
    await copyIn(west, scene);
    await change(west, scene, { metadata: { finalizers: ["service.kubernetes.io/load-balancer-cleanup"] } });
    await copyIn(west, scene, ({ metadata }) => metadata.finalizers?.length === 1);
    await host.delete(services, ref(scene));
    await copyIn(west, scene, ({ metadata }) => metadata.deletionTimestamp !== undefined);
    expect(await scene.find(host, services, "web")).toBeDefined();
    await change(west, scene, { metadata: { finalizers: null } });
    await scene.goes(host, services, "web");
    expect(await scene.find(west, services, "web")).toBeUndefined();
  });
});

test("EndpointSlices are no type of their own", async () => {
  const spec = { group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", plural: "endpointslices" };
  const type = { apiVersion: "legation.dev/v1alpha1", kind: "DelegatedType", spec };
  const made = clients().host.create(delegatedTypes, {
    ...type,
    metadata: { name: "endpointslices.discovery.k8s.io" },
  });
  await expect(made).rejects.toThrow("name services");
});
