import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { DELEGATION_LABEL, RELAY_ANNOTATION } from "../../src/api/keys.ts";
import type { EndpointSlice } from "../../src/api/kubernetes.ts";
import {
  MEMBER_RELAY_NAMESPACE,
  MEMBER_RELAY_SERVICE,
  RELAY_PORTS,
  RELAY_SLICE_MANAGER,
  relaysInMembers,
} from "../../src/api/relay.ts";
import { endpointSlices, pods, services } from "../../src/kube/resources.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { legationOn } from "../support/legation/process.ts";
import { installRelay } from "../support/legation/relay.ts";
import { makeScene, PATIENT, type Scene } from "../support/services/scene.ts";

useLegation();
const clients = useClients();
const ADDRESSES = ["192.0.2.1", "192.0.2.2"];
const RELAYED = { annotations: { [RELAY_ANNOTATION]: "web" } };
const AUTHOR = "relay-author";
const RELAY = "system:serviceaccount:legation-relay:legation-relay";

/** Returns the ports of a relayed Service's slices, by the Service's own. */
async function portsOf({ namespace }: Scene, name: string): Promise<Map<string, number>> {
  const labelSelector = `kubernetes.io/service-name=${name},endpointslice.kubernetes.io/managed-by=${RELAY_SLICE_MANAGER}`;
  const { items } = await clients().host.list(endpointSlices, { namespace, labelSelector });
  return new Map(items.flatMap(({ ports }) => (ports ?? []).map(({ name: port = "", port: at = 0 }) => [port, at])));
}

/** Returns what `legation status` says of a Service. */
async function statusOf({ namespace }: Scene, name: string): Promise<unknown> {
  const { stdout } = await legationOn(hostCluster(), "status", `service/${name}`, "-n", namespace, "-o", "json");
  return JSON.parse(stdout);
}

const relayedPorts = (scene: Scene, name: string, count: number): Promise<Map<string, number>> =>
  eventually(async () => {
    const ports = await portsOf(scene, name);
    return ports.size === count && ports;
  }, PATIENT);

test("tells the author of a relayed Service that no relay is installed", async () => {
  const scene = await makeScene(clients());
  await scene.service("web");
  await scene.run("web", { app: "web" });
  await scene.service("far-web", { selector: {} }, RELAYED);
  const event = await scene.saysOn("Service", "far-web", "no relay is installed on the host: legation install --relay");
  expect(event.reason).toBe("NotRelayed");
  // The Service's endpoints come with the relay.
  await installRelay(hostCluster(), ADDRESSES);
  await eventuallyPasses(async () => {
    expect(await statusOf(scene, "far-web")).toMatchObject({ clusters: [{ reaches: [{ how: "relay" }] }, {}] });
  }, PATIENT);
});

describe("a relayed Service", () => {
  beforeAll(() => installRelay(hostCluster(), ADDRESSES));

  test("leads to the replicas, by ports that are recorded and its own", async () => {
    const scene = await makeScene(clients());
    const { host } = clients();
    const ref = { namespace: scene.namespace, name: "far-web-relay-ipv4" };
    await scene.service("web");
    const ports = [
      { name: "a", port: 80 },
      { name: "b", port: 81, targetPort: 80 },
    ];
    for (const name of ["far-web", "other-web"]) await scene.service(name, { selector: {}, ports }, RELAYED);
    const [first, other] = [await relayedPorts(scene, "far-web", 2), await relayedPorts(scene, "other-web", 2)];
    const all = [...first.values(), ...other.values()];
    expect(new Set(all).size).toBe(4);
    for (const port of all) expect(port).toBeGreaterThanOrEqual(RELAY_PORTS.first);
    const slice = await host.get(endpointSlices, ref);
    expect(slice.endpoints?.flatMap(({ addresses }) => addresses)).toEqual(ADDRESSES);
    // A slice that somebody deletes is made again as it was.
    await host.delete(endpointSlices, ref);
    await eventuallyPasses(async () => {
      expect((await host.get(endpointSlices, ref)).metadata.uid).not.toBe(slice.metadata.uid);
      expect(await portsOf(scene, "far-web")).toEqual(first);
    }, PATIENT);
    await host.patch(
      services,
      { namespace: scene.namespace, name: "far-web" },
      { type: "merge", body: { metadata: { annotations: { [RELAY_ANNOTATION]: null } } } },
    );
    await relayedPorts(scene, "far-web", 0);
    expect(await portsOf(scene, "other-web")).toEqual(other);
  });

  test("follows the replicas", async () => {
    const scene = await makeScene(clients());
    const { host } = clients();
    await scene.service("far-web", { selector: {} }, RELAYED);
    await relayedPorts(scene, "far-web", 1);
    const replicas = { namespace: "legation-relay", name: "legation-relay" };
    const serving = async (): Promise<unknown> => {
      const ref = { namespace: scene.namespace, name: "far-web-relay-ipv4" };
      const { endpoints } = await host.get(endpointSlices, ref);
      return endpoints?.filter(({ conditions }) => conditions?.ready).flatMap(({ addresses }) => addresses);
    };
    const { endpoints } = await host.get(endpointSlices, replicas);
    const draining = endpoints?.map((endpoint, index) =>
      index === 0 ? { ...endpoint, conditions: { ready: false, serving: false, terminating: true } } : endpoint,
    );
    for (const [wanted, expected] of [
      [draining, ADDRESSES.slice(1)],
      [endpoints, ADDRESSES],
    ] as const) {
      await host.patch(endpointSlices, replicas, { type: "merge", body: { endpoints: wanted } });
      await eventuallyPasses(async () => expect(await serving()).toEqual(expected), PATIENT);
    }
  });

  test("tells its author what is wrong with the Service that it names", async () => {
    const scene = await makeScene(clients());
    const spec = { selector: {}, ports: [{ port: 8080, targetPort: "http" }] };
    await scene.service("far-web", spec, RELAYED);
    const missing = `annotation ${RELAY_ANNOTATION}: web: there is no Service web in namespace ${scene.namespace}; create it`;
    const event = await scene.saysOn("Service", "far-web", missing);
    expect(event.reason).toBe("NotRelayed");
  });

  test("leads to the member's own relays in members with pods of its namespace", async () => {
    const scene = await makeScene(clients());
    await scene.service("web");
    await scene.service("far-web", { selector: {} }, RELAYED);
    const [port] = (await relayedPorts(scene, "far-web", 1)).values();
    await scene.run("web", { app: "web" });
    await eventually(async () => scene.find(clients().west, services, "far-web"), PATIENT);
    // Without a relay there it has no endpoints: those of the host are out of reach.
    expect(await inWest(scene)).toEqual([]);
    await runRelay("west");
    await eventuallyPasses(async () => {
      const [slice] = await inWest(scene);
      expect(slice?.ports).toMatchObject([{ port }]);
      expect(slice?.endpoints).toMatchObject([{ addresses: ["10.1.0.7"], conditions: { ready: true } }]);
    }, PATIENT);
    expect(await members(scene)).toEqual(["west"]);
    const reaches = [{ cluster: "west", how: "relay" }];
    expect(await statusOf(scene, "far-web")).toMatchObject({
      relay: { to: "web", replicas: ADDRESSES.length },
      clusters: [{ reaches }, { cluster: "west", ready: 1, reaches }],
    });
    const { host } = clients();
    await host.delete(pods, { namespace: scene.namespace, name: "web" });
    await eventuallyPasses(async () => expect(await members(scene)).toEqual([]), PATIENT);
  });

  async function inWest({ namespace }: Scene): Promise<readonly EndpointSlice[]> {
    const labelSelector = "kubernetes.io/service-name=far-web";
    return (await clients().west.list(endpointSlices, { namespace, labelSelector })).items;
  }

  /** The members whose pods may use `far-web`, as the host's relay reads them. */
  async function members({ namespace }: Scene): Promise<string[]> {
    return Object.keys(
      relaysInMembers(await clients().host.get(endpointSlices, { namespace, name: "far-web-relay-ipv4" })),
    );
  }

  /** Notes a relay in a member, as the host's endpoint controller would. */
  async function runRelay(member: string): Promise<void> {
    const metadata = {
      namespace: MEMBER_RELAY_NAMESPACE,
      name: "relays-x",
      labels: { "kubernetes.io/service-name": MEMBER_RELAY_SERVICE },
    };
    const endpoint = {
      addresses: ["10.1.0.7"],
      conditions: { ready: true, serving: true },
      nodeName: `legation-${member}`,
    };
    onTestFinished(() => clients().host.delete(endpointSlices, { namespace: metadata.namespace, name: metadata.name }));
    await applyAll(hostCluster(), [
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata,
        addressType: "IPv4",
        endpoints: [endpoint],
        ports: [],
      },
    ]);
  }
});

describe("the policy on relayed Services", () => {
  let namespace: string;
  beforeAll(async () => {
    await installRelay(hostCluster(), ADDRESSES);
    namespace = (await makeScene(clients(), afterFile)).namespace;
    await allow(namespace, [
      { apiGroups: [""], resources: ["services"], verbs: ["create", "get", "patch"] },
      { apiGroups: [""], resources: ["services"], resourceNames: ["web"], verbs: ["relay"] },
    ]);
  });

  async function allow(where: string, rules: readonly object[]): Promise<void> {
    const metadata = { name: "authors", namespace: where };
    const apiGroup = "rbac.authorization.k8s.io";
    await applyAll(hostCluster(), [
      { apiVersion: `${apiGroup}/v1`, kind: "Role", metadata, rules },
      {
        apiVersion: `${apiGroup}/v1`,
        kind: "RoleBinding",
        metadata,
        roleRef: { apiGroup, kind: "Role", name: "authors" },
        subjects: [{ apiGroup, kind: "User", name: AUTHOR }],
      },
    ]);
  }

  async function create(where: string, relay: string, spec: object): Promise<string> {
    const metadata = { name: "far-web", annotations: { [RELAY_ANNOTATION]: relay } };
    const input = JSON.stringify({ apiVersion: "v1", kind: "Service", metadata, spec });
    const args = ["create", "--dry-run=server", `--as=${AUTHOR}`, "-n", where, "-f", "-"];
    return kubectl(hostCluster(), args, { input });
  }

  const ports = [{ port: 80 }];

  test("lets an author who has the verb relay", async () => {
    await expect(create(namespace, "web", { ports })).resolves.toContain("service/far-web created");
  });

  test.each<[string, string, object, RegExp]>([
    [
      "an author without the verb on that Service",
      "db",
      { ports },
      /relay-author may not relay the Service db; an operator allows it by the verb relay on services in a Role/,
    ],
    [
      "no name of a Service",
      "team/web",
      { ports },
      /relay: team\/web is not the name of another Service; write the name/,
    ],
    ["the Service itself", "far-web", { ports }, /relay: far-web is not the name of another Service/],
    [
      "a selector",
      "web",
      { ports, selector: { app: "web" } },
      /spec.selector: the endpoints of a Service .* remove it/,
    ],
    ["a headless Service", "web", { ports, clusterIP: "None" }, /write type: ClusterIP, and no clusterIP: None/],
    [
      "another protocol",
      "web",
      { ports: [{ port: 53, protocol: "UDP" }] },
      /spec.ports: connections are relayed by TCP/,
    ],
  ])("refuses %s", async (_, relay, spec, message) => {
    await expect(create(namespace, relay, spec)).rejects.toThrow(message);
  });

  test("refuses namespaces that are not opted in", async () => {
    const other = await freshNamespace(hostCluster());
    await allow(other, [{ apiGroups: [""], resources: ["services"], verbs: ["create", "relay"] }]);
    await expect(create(other, "web", { ports })).rejects.toThrow(
      /namespace .* is not opted in, so no Service of it is relayed; label it legation.dev\/delegation: annotated/,
    );
  });

  test("confines the relay to pods of opted-in namespaces", async () => {
    const all = [hostCluster(), memberCluster("west")];
    const optedIn = await freshNamespace(all, { labels: { [DELEGATION_LABEL]: "annotated" } });
    const other = await freshNamespace(hostCluster());
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web" },
      spec: { containers: [{ name: "a", image: "a" }] },
    };
    const connect = async (where: string): Promise<string> => {
      await kubectl(hostCluster(), ["create", "-n", where, "-f", "-"], { input: JSON.stringify(pod) });
      const path = `/api/v1/namespaces/${where}/pods/web/portforward`;
      const input = "{}";
      return kubectl(hostCluster(), ["create", `--as=${RELAY}`, "--raw", path, "-f", "-"], { input });
    };
    await expect(connect(other)).rejects.toThrow(/is not opted in, so no connection is relayed to its pods/);
    await expect(connect(optedIn)).rejects.not.toThrow(/opted in|cannot create/);
  });
});
