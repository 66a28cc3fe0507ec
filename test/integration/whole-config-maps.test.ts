import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MEMBERS_ANNOTATION, WHOLE_FINALIZER, WHOLE_KEY } from "../../src/api/keys.ts";
import type { ConfigMap, Stored } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { type MemberRecord, membersOfObject } from "../../src/copies/object-members.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { configMaps, namespaces, pods, secrets } from "../../src/kube/resources.ts";
import { type AuditEvent, auditEvents, isWrite } from "../support/clusters/audit.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { runCli } from "../support/legation/cli.ts";
import { newNamespace } from "../support/legation/whole-namespace.ts";

useLegation();
const clients = useClients();
const WEST = { "legation.dev/clusters": "west" };
const TYPES = ["configmaps", "secrets"].flatMap((name) => ["-f", `manifests/delegated-types/${name}.yaml`]);
// Enough for records to wait while copies are written.
const BURST = 60;
const ROLES = ["-f", "manifests/delegated-types/rbac.yaml"];

beforeAll(async () => {
  await kubectl(hostCluster(), ["apply", ...ROLES, ...TYPES]);
});

// Later files share the clusters.
afterAll(async () => {
  await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...TYPES]);
  await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...ROLES]);
});

function wholeConfigMap(namespace: string, name: string, data: Record<string, string>, annotations = {}): ConfigMap {
  const metadata = { name, namespace, annotations: { [WHOLE_KEY]: "true", ...annotations } };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, data };
}

function configMap(namespace: string, data: Record<string, string>, annotations = {}): Promise<Stored<ConfigMap>> {
  return clients().host.create(configMaps, wholeConfigMap(namespace, "settings", data, annotations));
}

function find(client: ClusterClient, namespace: string): Promise<Stored<ConfigMap> | undefined> {
  return client.find(configMaps, { namespace, name: "settings" });
}

async function statesOf(namespace: string, name: string): Promise<readonly MemberRecord[]> {
  return membersOfObject({ ...(await clients().host.get(configMaps, { namespace, name })) }) ?? [];
}

/** Returns Legation's writes on objects of a namespace. */
function legationEvents(cluster: Cluster, namespace: string): Promise<AuditEvent[]> {
  const isOurs = (event: AuditEvent): boolean =>
    event.user.username.startsWith("system:serviceaccount:legation-system:") &&
    isWrite(event) &&
    event.objectRef?.resource !== "events" &&
    event.objectRef?.namespace === namespace;
  return auditEvents(cluster, isOurs, [namespace]);
}

/** Returns Legation's writes on an object of the host. */
async function writesOn(namespace: string, name: string): Promise<string[]> {
  const found = await legationEvents(hostCluster(), namespace);
  return found
    .filter(({ objectRef }) => objectRef?.name === name)
    .map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`);
}

/** Returns Legation's writes on all ConfigMaps of a namespace, with their responses. */
function writesIn(namespace: string): (cluster: Cluster) => Promise<string[]> {
  return async (cluster) => {
    const found = await legationEvents(cluster, namespace);
    return found
      .filter(({ objectRef }) => objectRef?.resource === "configmaps")
      .map(({ verb, responseStatus }) => `${verb} configmaps ${responseStatus?.code}`);
  };
}

describe.concurrent("a ConfigMap with legation.dev/whole", () => {
  test("is given to all members, follows changes and removed keys, and leaves them when it is deleted", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    const made = await configMap(namespace, { a: "1", "b.properties": "2" });
    expect(made.metadata.finalizers).toContain(WHOLE_FINALIZER);
    for (const member of [west, east]) {
      const copy = await eventually(() => find(member, namespace), { what: "the copy" });
      expect(copy.data).toEqual({ a: "1", "b.properties": "2" });
    }
    const body = { data: { a: "3", "b.properties": null } };
    await host.patch(configMaps, { namespace, name: "settings" }, { type: "merge", body });
    await eventuallyPasses(async () => {
      for (const member of [west, east]) expect((await find(member, namespace))?.data).toEqual({ a: "3" });
    });
    // A client's change in a member is put back; its additions stay its own.
    const patch = JSON.stringify({ data: { a: "9", extra: "1" } });
    await kubectl(memberCluster("west"), ["patch", "configmap/settings", "-n", namespace, "--patch", patch]);
    await eventuallyPasses(async () => expect((await find(west, namespace))?.data).toEqual({ a: "3", extra: "1" }), {
      timeoutMs: 10_000,
    });
    await kubectl(hostCluster(), ["delete", "configmap/settings", "-n", namespace, "--timeout=30s"]);
    // The copier for pods deletes it after the last pod that uses it.
    await eventuallyPasses(async () => {
      for (const member of [west, east]) expect(await find(member, namespace)).toBeUndefined();
    });
  });

  test("goes to a member whose Cluster gets the label that it selects, and leaves one that loses it", async () => {
    const namespace = await newNamespace();
    const { host, east } = clients();
    await configMap(namespace, { a: "1" }, { "legation.dev/cluster-selector": "shop=open" });
    expect(await find(east, namespace)).toBeUndefined();
    const label = (value: string | null) =>
      ({ type: "merge", body: { metadata: { labels: { shop: value } } } }) as const;
    await host.patch(clusters, { name: "east" }, label("open"));
    await eventually(() => find(east, namespace), { what: "the copy" });
    await host.patch(clusters, { name: "east" }, label(null));
    await eventuallyPasses(async () => expect(await find(east, namespace)).toBeUndefined());
  });

  test("is used by delegated pods as it is, and stays for them when it is taken back", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await configMap(namespace, { a: "1" }, WEST);
    const { metadata } = await eventually(() => find(west, namespace), { what: "the copy" });
    const from = { configMapKeyRef: { name: "settings", key: "a" } };
    const container = { name: "main", image: "localhost/busybox:1", env: [{ name: "A", valueFrom: from }] };
    const pod = { name: "user", namespace, annotations: { "legation.dev/clusters": "west" } };
    await host.create(pods, { apiVersion: "v1", kind: "Pod", metadata: pod, spec: { containers: [container] } });
    await kubectl(hostCluster(), ["wait", "--for=condition=Ready", "pod/user", "-n", namespace, "--timeout=50s"]);
    const body = { metadata: { annotations: { [WHOLE_KEY]: null } } };
    await host.patch(configMaps, { namespace, name: "settings" }, { type: "merge", body });
    await eventuallyPasses(async () => {
      expect((await host.get(configMaps, { namespace, name: "settings" })).metadata.finalizers).toBeUndefined();
    });
    const kept = await find(west, namespace);
    expect(kept?.metadata.uid).toBe(metadata.uid);
    expect(kept?.metadata.labels).not.toHaveProperty([WHOLE_KEY]);
    await host.patch(configMaps, { namespace, name: "settings" }, { type: "merge", body: { data: { a: "2" } } });
    await eventuallyPasses(async () => expect((await find(west, namespace))?.data).toEqual({ a: "2" }));
  });

  test("has the state of each member, and costs no write while nothing changes", async () => {
    const namespace = await newNamespace();
    const { host } = clients();
    await configMap(namespace, { a: "1" });
    const inStep = [
      { member: "east", state: "InStep" },
      { member: "west", state: "InStep" },
    ];
    await eventuallyPasses(async () => expect(await statesOf(namespace, "settings")).toMatchObject(inStep));
    const before = await writesOn(namespace, "settings");
    // A slow member may cost a second write.
    expect(before.length).toBeLessThanOrEqual(2);
    // The whole life of another object: a surplus write may come late.
    const manifest = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "settings", annotations: { [WHOLE_KEY]: "true", ...WEST } },
    };
    const args = ["plan", "-f", "-", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`];
    const planned = await runCli(args, { input: JSON.stringify(manifest) });
    expect(planned.stdout).toMatch(/: whole, in west\n {2}CLUSTER +WHY NOT\n {2}east /);
    expect(planned.code).toBe(0);
    const lease = { ...manifest, apiVersion: "coordination.k8s.io/v1", kind: "Lease" };
    const refused = await runCli(args, { input: JSON.stringify(lease) });
    expect(refused.stdout).toContain("no DelegatedType names it");
    expect(refused.code).toBe(5);
    const metadata = { name: "later", namespace, annotations: { [WHOLE_KEY]: "true" } };
    await host.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata });
    await eventuallyPasses(async () => expect(await statesOf(namespace, "later")).toMatchObject(inStep));
    await kubectl(hostCluster(), ["delete", "configmap/later", "-n", namespace, "--timeout=30s"]);
    expect(await writesOn(namespace, "settings")).toEqual(before);
    await kubectl(hostCluster(), ["delete", "configmap/settings", "-n", namespace, "--timeout=30s"]);
    expect(await writesOn(namespace, "settings")).toHaveLength(before.length + 1);
  });

  test("costs each member one write and the host one, or two on a slow machine, in a burst of others", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    const names = Array.from({ length: BURST }, (_, index) => `burst-${index}`);
    await Promise.all(names.map((name) => host.create(configMaps, wholeConfigMap(namespace, name, { a: "1" }))));
    await eventuallyPasses(
      async () => {
        const { items } = await host.list(configMaps, { namespace, labelSelector: WHOLE_KEY });
        const states = items.map((item) =>
          membersOfObject(item)
            ?.map(({ state }) => state)
            .join(),
        );
        expect(states).toEqual(names.map(() => "InStep,InStep"));
      },
      { timeoutMs: 60_000 },
    );
    const all = await Promise.all(
      [hostCluster(), memberCluster("west"), memberCluster("east")].map(writesIn(namespace)),
    );
    const [onHost = [], ...inMembers] = all;
    for (const writes of inMembers) {
      // The member refuses what comes before the namespace.
      const made = writes.filter((write) => write === "create configmaps 201");
      expect(made).toHaveLength(BURST);
    }
    expect(new Set(onHost)).toEqual(new Set(["patch configmaps 200"]));
    expect(onHost.length).toBeLessThanOrEqual(2 * BURST);
    for (const member of [west, east]) {
      const { items } = await member.list(configMaps, { namespace, labelSelector: WHOLE_KEY });
      expect(items).toHaveLength(BURST);
    }
  });

  test("moves with its placement, and is taken back when the annotation goes", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await configMap(namespace, { a: "1" }, WEST);
    await eventually(() => find(west, namespace), { what: "the copy" });
    expect(await find(east, namespace)).toBeUndefined();
    const ref = { namespace, name: "settings" };
    const to = (clusters: string) => ({ metadata: { annotations: { "legation.dev/clusters": clusters } } });
    await host.patch(configMaps, ref, { type: "merge", body: to("east") });
    await eventually(() => find(east, namespace), { what: "the copy in east" });
    await eventuallyPasses(async () => expect(await find(west, namespace)).toBeUndefined());
    await host.patch(configMaps, ref, { type: "merge", body: { metadata: { annotations: { [WHOLE_KEY]: null } } } });
    await eventuallyPasses(async () => expect(await find(east, namespace)).toBeUndefined());
    await eventuallyPasses(async () => {
      const { finalizers = [], labels = {} } = (await host.get(configMaps, ref)).metadata;
      expect({ finalizers, labels }).toEqual({ finalizers: [], labels: {} });
      expect((await host.get(configMaps, ref)).metadata.annotations?.[MEMBERS_ANNOTATION]).toBeUndefined();
    });
  });
});

describe("a ConfigMap with legation.dev/whole and overrides", () => {
  test("has another value in one member, follows both, and is refused a change that an override does not fit", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    const ref = { namespace, name: "settings" };
    const change = (body: object) => host.patch(configMaps, ref, { type: "merge", body });
    const region = (op: object) => ({
      "legation.dev/overrides": JSON.stringify([{ clusters: ["west"], patch: [{ path: "/data/region", ...op }] }]),
    });
    await configMap(namespace, { region: "none" }, region({ op: "replace", value: "eu" }));
    const values = async () => {
      const copies = await Promise.all([west, east].map((member) => find(member, namespace)));
      return copies.map((copy) => copy?.data);
    };
    await eventuallyPasses(async () => expect(await values()).toEqual([{ region: "eu" }, { region: "none" }]));
    await change({ data: { more: "1" } });
    await eventuallyPasses(async () =>
      expect(await values()).toEqual([
        { region: "eu", more: "1" },
        { region: "none", more: "1" },
      ]),
    );
    await expect(change({ data: { region: null } })).rejects.toThrow("the object has nothing there");
    await change({ metadata: { annotations: region({ op: "remove" }) } });
    await eventuallyPasses(async () => expect((await values())[0]).toEqual({ more: "1" }));
  });
});

test("a Secret with legation.dev/whole is given to a member and taken back", async () => {
  const namespace = await newNamespace();
  const { host, west } = clients();
  const ref = { namespace, name: "one" };
  const annotations = { [WHOLE_KEY]: "true", ...WEST };
  await host.create(secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...ref, annotations },
    data: { key: "eA==" },
  });
  await eventually(() => west.find(secrets, ref), { what: "the copy" });
  await kubectl(hostCluster(), ["delete", "secret/one", "-n", namespace, "--timeout=30s"]);
  // The object is a copy for pods first, which goes when none has used it for a while.
  await eventuallyPasses(async () => expect(await west.find(secrets, ref)).toBeUndefined());
});

test("lets its namespace go while a member does not answer, and leaves no copy there afterwards", async () => {
  const namespace = await newNamespace();
  const { host, west, east } = clients();
  await configMap(namespace, { a: "1" });
  for (const member of [west, east]) await eventually(() => find(member, namespace), { what: "the copy" });
  const { proxy } = memberCluster("east");
  await proxy.cut();
  try {
    await kubectl(hostCluster(), ["delete", `namespace/${namespace}`, "--timeout=90s"]);
    await eventuallyPasses(async () => expect(await find(west, namespace)).toBeUndefined());
    expect(await find(east, namespace)).toBeDefined();
  } finally {
    await proxy.heal();
  }
  await eventuallyPasses(async () => expect(await find(east, namespace)).toBeUndefined(), { timeoutMs: 60_000 });
  expect(await host.find(namespaces, { name: namespace })).toBeUndefined();
});
