import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import {
  AGGREGATE_TO_HOST_LABEL,
  DELEGATION_LABEL,
  HOST_LABEL,
  MEMBERS_ANNOTATION,
  WHOLE_FINALIZER,
  WHOLE_KEY,
} from "../../src/api/keys.ts";
import type { ConfigMap, Stored } from "../../src/api/kubernetes.ts";
import { clusters, delegatedTypes } from "../../src/api/resources.ts";
import { type MemberRecord, membersOfObject } from "../../src/copies/object-members.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { configMaps, events, pods, type Resource, secrets } from "../../src/kube/resources.ts";
import { auditEvents, isWrite } from "../support/clusters/audit.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { legation, runCli } from "../support/legation/cli.ts";
import { installWidgets, removeWidgets, widgets } from "../support/legation/widgets.ts";

const running = useLegation();
const clients = useClients();
const WEST = { "legation.dev/clusters": "west" };
const READY = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')";
const TYPES = ["configmaps", "secrets"].flatMap((name) => ["-f", `manifests/delegated-types/${name}.yaml`]);
const ROLES = ["-f", "manifests/delegated-types/rbac.yaml"];

beforeAll(async () => {
  await kubectl(hostCluster(), ["apply", ...ROLES, ...TYPES]);
  await installWidgets(
    { cluster: hostCluster() },
    { west: memberCluster("west"), east: memberCluster("east") },
    { health: READY, status: [{ path: "/status/phase", value: "values.all(v, v == 'Up') ? 'Up' : 'Down'" }] },
  );
});

// Later files share the clusters.
afterAll(async () => {
  await removeWidgets(hostCluster(), [memberCluster("west"), memberCluster("east")]);
  await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...TYPES]);
  await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...ROLES]);
});

function newNamespace(): Promise<string> {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(all, { labels: { [DELEGATION_LABEL]: "annotated" }, onFinished: afterFile });
}

function configMap(namespace: string, data: Record<string, string>, annotations = {}): Promise<Stored<ConfigMap>> {
  return clients().host.create(configMaps, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings", namespace, annotations: { [WHOLE_KEY]: "true", ...annotations } },
    data,
  });
}

function find(client: ClusterClient, namespace: string): Promise<Stored<ConfigMap> | undefined> {
  return client.find(configMaps, { namespace, name: "settings" });
}

async function statesOf(namespace: string, name: string): Promise<readonly MemberRecord[]> {
  return membersOfObject({ ...(await clients().host.get(configMaps, { namespace, name })) }) ?? [];
}

/** Returns Legation's writes on an object of the host. */
async function writesOn(namespace: string, name: string): Promise<string[]> {
  const found = await auditEvents(
    hostCluster(),
    (event) =>
      event.user.username.startsWith("system:serviceaccount:legation-system:") &&
      isWrite(event) &&
      event.objectRef?.resource !== "events" &&
      event.objectRef?.namespace === namespace &&
      event.objectRef.name === name,
    [namespace],
  );
  return found.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`);
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
  // It is a copy for pods first, which goes when none has used it for a while.
  await eventuallyPasses(async () => expect(await west.find(secrets, ref)).toBeUndefined());
});

function widget(namespace: string, spec: object, annotations = {}): Promise<Stored<AnyObject>> {
  return clients().host.create(widgets, {
    apiVersion: "shop.example.com/v1",
    kind: "Widget",
    metadata: { name: "one", namespace, annotations: { [WHOLE_KEY]: "true", ...annotations } },
    spec,
  });
}

function findWidget(client: ClusterClient, namespace: string): Promise<Stored<AnyObject> | undefined> {
  return client.find(widgets, { namespace, name: "one" });
}

function copyIn(client: ClusterClient, namespace: string): Promise<Stored<AnyObject>> {
  return eventually(() => findWidget(client, namespace), { what: "the copy" });
}

/** Reports a status as an operator of the member does. */
async function report(client: ClusterClient, namespace: string, ready: "True" | "False", more = {}): Promise<void> {
  const { generation = 0 } = (await copyIn(client, namespace)).metadata;
  const condition = {
    type: "Ready",
    status: ready,
    reason: "Checked",
    message: "seen",
    lastTransitionTime: "2026-01-02T03:04:05Z",
  };
  const status = {
    observedGeneration: generation,
    conditions: [{ ...condition, observedGeneration: generation }],
    ...more,
  };
  await client.patch(
    widgets,
    { namespace, name: "one" },
    { type: "merge", body: { status } },
    { subresource: "status" },
  );
}

async function reasonsOf(namespace: string): Promise<string[]> {
  const { items } = await clients().host.list(events, { namespace });
  return items.filter(({ involvedObject: { name } }) => name === "one").map(({ reason = "" }) => reason);
}

/** Lets a policy refuse the deletion of widgets. Returns what removes it. */
async function denyDeletion(cluster: Cluster, namespace: string, message: string): Promise<() => Promise<void>> {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const metadata = { name: namespace };
  const rule = { apiGroups: ["shop.example.com"], apiVersions: ["v1"], resources: ["widgets"], operations: ["DELETE"] };
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  await applyAll(cluster, [
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicy",
      metadata,
      spec: {
        matchConstraints: { namespaceSelector, resourceRules: [rule] },
        validations: [{ expression: "false", message }],
      },
    },
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: namespace, validationActions: ["Deny"] },
    },
  ]);
  const dryRun = ["-n", namespace, "delete", "widget/one", "--dry-run=server"];
  // Not by `rejects`: a failed attempt would count for whichever of the concurrent tests is the current one.
  const isDenied = (): Promise<boolean> =>
    kubectl(cluster, dryRun).then(
      () => false,
      (error) => String(error).includes(message),
    );
  await eventually(isDenied, { what: "the policy in force" });
  return async () => {
    for (const kind of ["validatingadmissionpolicybinding", "validatingadmissionpolicy"]) {
      await kubectl(cluster, ["delete", kind, namespace]);
    }
  };
}

describe.concurrent("a custom resource with legation.dev/whole", () => {
  test("shows the status of its member, with the host's generations", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await widget(namespace, { size: 1 }, WEST);
    await report(west, namespace, "True", { url: "http://one" });
    await kubectl(hostCluster(), ["wait", "--for=condition=Ready", "widget/one", "-n", namespace, "--timeout=30s"]);
    expect((await findWidget(host, namespace))?.status).toMatchObject({ url: "http://one", observedGeneration: 1 });
    expect(await findWidget(east, namespace)).toBeUndefined();
    await host.patch(widgets, { namespace, name: "one" }, { type: "merge", body: { spec: { size: 2 } } });
    await eventuallyPasses(async () => expect((await findWidget(west, namespace))?.spec).toMatchObject({ size: 2 }));
    // The operator has not seen the change.
    await eventuallyPasses(async () => {
      const { status, metadata } = await host.get(widgets, { namespace, name: "one" });
      expect(metadata.generation).toBe(2);
      expect(status).toMatchObject({ observedGeneration: 1 });
    });
    await report(west, namespace, "True");
    await eventuallyPasses(async () => {
      expect((await findWidget(host, namespace))?.status).toMatchObject({ observedGeneration: 2 });
    });
  });

  test("is Ready when it is in all members, and sums what its type says", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await widget(namespace, {});
    await report(west, namespace, "True", { readyReplicas: 2 });
    await report(east, namespace, "False", { readyReplicas: 1 });
    await eventuallyPasses(async () => {
      expect((await findWidget(host, namespace))?.status).toMatchObject({
        readyReplicas: 3,
        conditions: [
          { type: "Ready", status: "False", message: "east: False, Checked, seen; west: True, Checked, seen" },
        ],
      });
    });
    await eventuallyPasses(async () =>
      expect(membersOfObject(await host.get(widgets, { namespace, name: "one" }))).toMatchObject([
        { member: "east", state: "InStep", generation: 1, health: "False" },
        { member: "west", state: "InStep", generation: 1, health: "True" },
      ]),
    );
    await report(east, namespace, "True", { readyReplicas: 4 });
    await kubectl(hostCluster(), ["wait", "--for=condition=Ready", "widget/one", "-n", namespace, "--timeout=30s"]);
    expect((await findWidget(host, namespace))?.status).toMatchObject({ readyReplicas: 6, observedGeneration: 1 });
  });

  test("has a field by the rule of its type, and its health by an expression", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await widget(namespace, {});
    await report(west, namespace, "True", { phase: "Up" });
    await report(east, namespace, "False", { phase: "Failed" });
    await eventuallyPasses(async () => {
      const object = await host.get(widgets, { namespace, name: "one" });
      expect(object.status).toMatchObject({ phase: "Down" });
      expect(membersOfObject(object)).toMatchObject([{ health: "False" }, { health: "True" }]);
    });
    await eventuallyPasses(async () => {
      const { status } = await host.get(delegatedTypes, { name: "widgets.shop.example.com" });
      expect(status?.unhealthy).toBeGreaterThan(0);
    });
    await report(east, namespace, "True", { phase: "Up" });
    await eventuallyPasses(async () => {
      expect((await findWidget(host, namespace))?.status).toMatchObject({ phase: "Up" });
    });
  });

  test("is divided by preferences, and anew when their number or its own changes", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    const divided = (clusters: object): object => ({
      "legation.dev/scheduling-preferences": JSON.stringify({ clusters }),
    });
    const partsIn = async (client: ClusterClient): Promise<unknown> => (await findWidget(client, namespace))?.spec;
    await widget(namespace, { parts: 8, size: 1 }, divided({ west: { weight: 3 }, east: { weight: 1 } }));
    await eventuallyPasses(async () => {
      expect([await partsIn(west), await partsIn(east)]).toEqual([
        { parts: 6, size: 1 },
        { parts: 2, size: 1 },
      ]);
    });
    const ref = { namespace, name: "one" };
    await host.patch(widgets, ref, { type: "merge", body: { spec: { parts: 4 } } });
    await eventuallyPasses(async () => {
      expect([await partsIn(west), await partsIn(east)]).toMatchObject([{ parts: 3 }, { parts: 1 }]);
    });
    const annotations = divided({ west: { weight: 1 } });
    await host.patch(widgets, ref, { type: "merge", body: { metadata: { annotations } } });
    await eventuallyPasses(async () => {
      expect([await partsIn(west), await partsIn(east)]).toEqual([{ parts: 4, size: 1 }, undefined]);
    });
    const without = host.patch(widgets, ref, {
      type: "merge",
      body: { metadata: { annotations: divided({ west: {} }) }, spec: { parts: null } },
    });
    await expect(without).rejects.toThrow("the object has no number at /spec/parts");
  });

  test("leaves fields that its type retains, and those of other managers, to the member", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await widget(namespace, { replicas: 1, size: 1, color: "red" }, WEST);
    const ref = { namespace, name: "one" };
    expect((await copyIn(west, namespace)).spec).toEqual({ size: 1, color: "red" });
    const spec = { replicas: 7, size: 5, shape: "round" };
    const body = { apiVersion: "shop.example.com/v1", kind: "Widget", metadata: { name: "one" }, spec };
    await west.patch(widgets, ref, { type: "apply", body, force: true }, { fieldManager: "autoscaler" });
    await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["FieldConflict"]));
    // The given-up field stays so; the others follow, and a removed one goes.
    await host.patch(widgets, ref, { type: "merge", body: { metadata: { labels: { tier: "front" } } } });
    await eventuallyPasses(async () =>
      expect((await findWidget(west, namespace))?.metadata.labels).toMatchObject({ tier: "front" }),
    );
    expect((await findWidget(west, namespace))?.spec).toEqual({ ...spec, color: "red" });
    await host.patch(widgets, ref, { type: "merge", body: { spec: { color: null } } });
    await eventuallyPasses(async () => expect((await findWidget(west, namespace))?.spec).toEqual(spec));
  });

  test("leaves an object of the member's own alone, and takes it over when it is asked to", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const own = {
      apiVersion: "shop.example.com/v1",
      kind: "Widget",
      metadata: { name: "one", namespace },
      spec: { own: true },
    };
    await eventually(() => west.create(widgets, own).catch(() => undefined), { what: "the member's own object" });
    await widget(namespace, { size: 1 }, WEST);
    await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["NotInMember"]));
    await eventuallyPasses(async () =>
      expect(membersOfObject(await host.get(widgets, { namespace, name: "one" }))).toMatchObject([
        { member: "west", state: "Refused" },
      ]),
    );
    const asked = ["status", "widget", "one", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`];
    const { code, stdout } = await runCli(asked);
    expect(code).toBe(0);
    expect(stdout).toContain("whole, in step in 0 of 1 members, generation 1");
    expect(stdout).toMatch(/^west +Refused .* is there already/m);
    expect(stdout).toMatch(/^east +Excluded /m);
    expect((await findWidget(west, namespace))?.spec).toEqual({ own: true });
    const body = {
      metadata: { annotations: { "legation.dev/on-conflict": "adopt", "legation.dev/on-delete": "orphan" } },
    };
    await host.patch(widgets, { namespace, name: "one" }, { type: "merge", body });
    await eventuallyPasses(async () =>
      expect((await findWidget(west, namespace))?.spec).toEqual({ own: true, size: 1 }),
    );
    await kubectl(hostCluster(), ["delete", "widget/one", "-n", namespace, "--timeout=30s"]);
    const left = await findWidget(west, namespace);
    expect(left?.spec).toEqual({ own: true, size: 1 });
    expect(left?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
  });

  test("stays in the member when it is deleted just after its author asked for that", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const ref = { namespace, name: "one" };
    await widget(namespace, { size: 1 }, WEST);
    const { metadata } = await copyIn(west, namespace);
    const annotate = (value: string | null) =>
      ({ type: "merge", body: { metadata: { annotations: { "legation.dev/on-delete": value } } } }) as const;
    await host.patch(widgets, ref, annotate("orphan"));
    await kubectl(hostCluster(), ["delete", "widget/one", "-n", namespace, "--timeout=30s"]);
    const left = await findWidget(west, namespace);
    expect(left?.metadata.uid).toBe(metadata.uid);
    expect(left?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
  });

  test("says that a member refuses to delete its copy, and goes when the member lets it", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const ref = { namespace, name: "one" };
    await widget(namespace, { size: 1 }, WEST);
    await copyIn(west, namespace);
    const allow = await denyDeletion(memberCluster("west"), namespace, "kept for the auditors");
    try {
      await host.delete(widgets, ref);
      await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["DeletionRefused"]));
      await eventuallyPasses(async () => {
        const record = membersOfObject(await host.get(widgets, ref));
        expect(record).toMatchObject([{ member: "west", state: "Leaving" }]);
        expect(record?.[0]?.message).toMatch(
          /^its API server refused the deletion of Widget one: .*kept for the auditors/,
        );
      });
      const asked = ["status", "widget", "one", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`];
      expect((await runCli(asked)).stdout).toMatch(/^west +Leaving .*kept for the auditors/m);
      expect(await findWidget(west, namespace)).toBeDefined();
    } finally {
      await allow();
    }
    await eventuallyPasses(async () => expect(await findWidget(host, namespace)).toBeUndefined());
    expect(await findWidget(west, namespace)).toBeUndefined();
  });

  test("comes back when it is deleted or changed in the member", async () => {
    const namespace = await newNamespace();
    const { west } = clients();
    await widget(namespace, { size: 1 }, WEST);
    const { metadata } = await copyIn(west, namespace);
    await west.patch(widgets, { namespace, name: "one" }, { type: "merge", body: { spec: null } });
    await eventuallyPasses(async () => expect((await findWidget(west, namespace))?.spec).toEqual({ size: 1 }));
    await west.delete(widgets, { namespace, name: "one" });
    await eventuallyPasses(async () => {
      const again = await findWidget(west, namespace);
      expect(again?.spec).toEqual({ size: 1 });
      expect(again?.metadata.uid).not.toBe(metadata.uid);
    });
  });
});

describe("a DelegatedType", () => {
  test("leaves nothing of its objects in a member that is unjoined, and gives them again when it joins", async () => {
    const namespace = await newNamespace();
    const { west } = clients();
    await widget(namespace, { size: 1 });
    await copyIn(west, namespace);
    await legation(["unjoin", "west", `--kubeconfig=${hostCluster().kubeconfig}`, "--drain"]);
    expect(await findWidget(west, namespace)).toBeUndefined();
    // The roles for types go with the access that owns them.
    await eventuallyPasses(async () => {
      const roles = await kubectl(memberCluster("west"), ["get", "clusterroles", "-l", HOST_LABEL, "-o", "name"]);
      expect(roles).toBe("");
    });
    // As later files expect it: by its fault proxy.
    await running().join("west", memberCluster("west"), "region=eu");
    await installWidgets({ cluster: hostCluster() }, { west: memberCluster("west") });
    await copyIn(west, namespace);
  });

  test("counts its objects, and is refused for types that a controller of the host owns", async () => {
    const { host } = clients();
    await eventuallyPasses(async () => {
      const type = await host.get(delegatedTypes, { name: "widgets.shop.example.com" });
      expect(type.status?.conditions).toMatchObject([
        { type: "Ready", status: "True" },
        { type: "ExpressionsValid", status: "True" },
      ]);
      expect(type.status).toMatchObject({ waiting: 0 });
    });
    const spec = { group: "apps", version: "v1", kind: "Deployment", plural: "deployments" };
    const object = {
      apiVersion: "legation.dev/v1alpha1",
      kind: "DelegatedType",
      metadata: { name: "deployments.apps" },
      spec,
    };
    await expect(host.create(delegatedTypes, object)).rejects.toThrow("delegate its pods instead");
    const misnamed = {
      ...object,
      metadata: { name: "widgets" },
      spec: { ...spec, group: "example.com", plural: "widgets" },
    };
    await expect(host.create(delegatedTypes, misnamed)).rejects.toThrow("metadata.name must be the plural");
    const both = { spec: { retain: ["/spec/parts"] } };
    const ref = { name: "widgets.shop.example.com" };
    await expect(host.patch(delegatedTypes, ref, { type: "merge", body: both })).rejects.toThrow(
      "would lack the number",
    );
  });

  test("says which expression does not compile, and for which object one fails", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const name = "widgets.shop.example.com";
    const before = (await host.get(delegatedTypes, { name })).spec;
    const write = (spec: object): Promise<unknown> =>
      host.patch(delegatedTypes, { name }, { type: "merge", body: { spec } });
    const expectState = (state: object): Promise<void> =>
      eventuallyPasses(async () => {
        const { status } = await host.get(delegatedTypes, { name });
        expect(status?.conditions?.[1]).toMatchObject(state);
      });
    const rule = (path: string): object => ({
      health: null,
      status: [{ path, value: "values.all(v, v != 'odd' || v + 1 == 2) ? 'Up' : 'Down'" }],
    });
    await expect(write(rule("/spec/size"))).rejects.toThrow("should match");
    await expect(write(rule("/status/observedGeneration"))).rejects.toThrow("observedGeneration is the host's");
    await write({ health: "object.status.phase = 'Up'" });
    const message = expect.stringContaining("spec.health: line 1, column 21: ");
    await expectState({ status: "False", reason: "NotCompiled", message });
    await write(rule("/status/phase"));
    await widget(namespace, {}, WEST);
    await report(west, namespace, "True", { phase: "odd", url: "http://one" });
    const failing = `${namespace}/one: spec.status[0] (/status/phase): line 1, column 29: no such overload: dyn<string> + int`;
    await expectState({ status: "False", reason: "EvaluationFailed", message: expect.stringContaining(failing) });
    const { status } = await host.get(widgets, { namespace, name: "one" });
    expect(status).toMatchObject({ url: "http://one" });
    expect(status).not.toHaveProperty("phase");
    await write({ health: before.health, status: before.status });
    await eventuallyPasses(async () => {
      expect((await findWidget(host, namespace))?.status).toMatchObject({ phase: "Down" });
    });
  });

  test("is wanted before an object of the type is taken", async () => {
    const namespace = await newNamespace();
    const lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "one", namespace, annotations: { [WHOLE_KEY]: "true" } },
    };
    const applied = kubectl(hostCluster(), ["create", "-f", "-"], { input: JSON.stringify(lease) });
    await expect(applied).rejects.toThrow("no DelegatedType names it");
  });

  test("releases its objects when it is deleted, and created anew takes them up again with their copies", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await widget(namespace, { size: 1 }, WEST);
    const { uid } = (await copyIn(west, namespace)).metadata;
    await kubectl(hostCluster(), ["delete", "delegatedtype/widgets.shop.example.com", "--timeout=30s"]);
    expect((await findWidget(host, namespace))?.metadata.finalizers).toBeUndefined();
    // Others may change it, and its copy stays as it was.
    const body = { spec: { size: 2 } };
    await host.patch(widgets, { namespace, name: "one" }, { type: "merge", body });
    expect((await findWidget(west, namespace))?.spec).toEqual({ size: 1 });
    await installWidgets({ cluster: hostCluster() }, {});
    await eventuallyPasses(async () => {
      const copy = await findWidget(west, namespace);
      expect(copy?.spec).toEqual({ size: 2 });
      expect(copy?.metadata.uid).toBe(uid);
    });
    expect((await findWidget(host, namespace))?.metadata.finalizers).toEqual([WHOLE_FINALIZER]);
  });

  test("leaves copies to the members when the host loses the definition", async () => {
    const namespace = await newNamespace();
    const { west } = clients();
    await widget(namespace, { size: 1 }, WEST);
    await copyIn(west, namespace);
    await kubectl(hostCluster(), ["delete", "customresourcedefinition/widgets.shop.example.com", "--timeout=60s"]);
    const left = await findWidget(west, namespace);
    expect(left?.spec).toEqual({ size: 1 });
    expect(left?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
  });
});

describe("an object of a type without a status subresource", () => {
  const NAME = "gadgets.shop.example.com";
  const gadgets: Resource<AnyObject> = { ...widgets, plural: "gadgets", kind: "Gadget" };

  async function installGadgets(): Promise<void> {
    const names = { kind: "Gadget", listKind: "GadgetList", plural: "gadgets", singular: "gadget" };
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    const definition = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: NAME },
      spec: {
        group: "shop.example.com",
        scope: "Namespaced",
        names,
        versions: [{ name: "v1", served: true, storage: true, schema }],
      },
    };
    const role = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "hosts-gadgets", labels: { [AGGREGATE_TO_HOST_LABEL]: "true" } },
      rules: [
        {
          apiGroups: ["shop.example.com"],
          resources: ["gadgets"],
          verbs: ["list", "watch", "create", "patch", "delete"],
        },
      ],
    };
    const apply = (cluster: Cluster, object: object): Promise<string> =>
      kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(object) });
    for (const cluster of [hostCluster(), memberCluster("west")]) {
      await apply(cluster, definition);
      await kubectl(cluster, ["wait", "--for=condition=Established", `customresourcedefinition/${NAME}`]);
    }
    await apply(memberCluster("west"), role);
    await legation(["install", `--kubeconfig=${hostCluster().kubeconfig}`, `--types=${NAME}`]);
  }

  async function removeGadgets(): Promise<void> {
    const roles = [`clusterrole/legation-controller-${NAME}`, `clusterrole/legation-authors-${NAME}`];
    await kubectl(hostCluster(), ["delete", "--ignore-not-found", `delegatedtype/${NAME}`]);
    await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...roles]);
    for (const cluster of [hostCluster(), memberCluster("west")]) {
      await kubectl(cluster, ["delete", "--ignore-not-found", `customresourcedefinition/${NAME}`]);
    }
    await kubectl(memberCluster("west"), ["delete", "--ignore-not-found", "clusterrole/hosts-gadgets"]);
  }

  test("has the status of its member, and no write follows from a write of it", async () => {
    onTestFinished(removeGadgets);
    await installGadgets();
    const namespace = await newNamespace();
    const { host, west } = clients();
    const live = async (name: string, phase: string): Promise<void> => {
      const ref = { namespace, name };
      const metadata = { ...ref, annotations: { [WHOLE_KEY]: "true", ...WEST } };
      const object = { apiVersion: "shop.example.com/v1", kind: "Gadget", metadata, spec: {} };
      // The webhook and the controller's rights follow the new type.
      await eventually(() => host.create(gadgets, object).catch(() => undefined), { what: "the object" });
      await eventually(() => west.find(gadgets, ref), { what: "the copy" });
      const conditions = [{ type: "Ready", status: "True", observedGeneration: 1 }];
      const body = { status: { phase, observedGeneration: 1, conditions } };
      await west.patch(gadgets, ref, { type: "merge", body });
      await eventuallyPasses(async () => expect((await host.find(gadgets, ref))?.status).toMatchObject({ phase }));
    };
    await live("one", "Up");
    const recorded = async (): Promise<AnyObject> => {
      const object = await host.get(gadgets, { namespace, name: "one" });
      const { generation = 0 } = object.metadata;
      expect(membersOfObject(object)).toMatchObject([{ state: "InStep", generation, health: "True" }]);
      return object;
    };
    await eventuallyPasses(async () => void (await recorded()));
    const { metadata, status } = await recorded();
    // The whole lives of two other objects: a surplus write may come late.
    await live("two", "Down");
    await live("three", "Up");
    expect((await recorded()).metadata).toEqual(metadata);
    // Generations would change with the write of the status that has them.
    expect(status).toEqual({ phase: "Up", conditions: [{ type: "Ready", status: "True" }] });
  });
});
