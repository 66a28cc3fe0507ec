import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION, DELEGATION_LABEL, GROUP, WHOLE_KEY } from "../../src/api/keys.ts";
import type { Job, ObjectMeta, Pod, Stored } from "../../src/api/kubernetes.ts";
import { configMaps, jobs, namespaces, persistentVolumeClaims, pods } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { barePod, ends, stays, template } from "../support/builders/workload.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podThat } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";
import { installWidgets, removeWidgets, widgets } from "../support/legation/widgets.ts";

// Objects that standard tools make of others: `kubectl debug --copy-to`, an export that is created again, a backup that is
// restored. They carry Legation's marks, and each is to end as on a cluster without Legation.

useLegation();
const clients = useClients();
const MODES = ["annotated", "all", "overflow"] as const;
const all = () => [hostCluster(), memberCluster("west"), memberCluster("east")];
const running = inPhase("Running");

const places: Record<(typeof MODES)[number] | "plain", string> = { annotated: "", all: "", overflow: "", plain: "" };

beforeAll(async () => {
  const make = async (mode: keyof typeof places): Promise<void> => {
    const labels: Record<string, string> = mode === "plain" ? {} : { [DELEGATION_LABEL]: mode };
    places[mode] = await freshNamespace(all(), { labels, onFinished: afterFile });
  };
  const type = { exclusive: true, replicas: null, managedBy: "/spec/managedBy" };
  const members = { west: memberCluster("west"), east: memberCluster("east") };
  const made = Promise.all([...MODES, "plain" as const].map(make));
  await Promise.all([made, installWidgets({ cluster: hostCluster() }, members, type)]);
});

// Later files share the clusters.
afterAll(() => removeWidgets(hostCluster(), [memberCluster("west"), memberCluster("east")]));

function onHost(namespace: string, args: readonly string[], input?: object): Promise<string> {
  return kubectl(
    hostCluster(),
    ["-n", namespace, ...args],
    input === undefined ? {} : { input: JSON.stringify(input) },
  );
}

/** An object as an export or a backup has it: without what the API server writes. */
interface Exported {
  readonly metadata: Pick<ObjectMeta, "labels" | "annotations" | "finalizers"> & { readonly name: string };
  readonly spec?: object;
  readonly status?: unknown;
}

/** Exports an object, under another name if one is given. */
async function exported(namespace: string, what: string, newName?: string): Promise<Exported> {
  const found: Exported = JSON.parse(await onHost(namespace, ["get", what, "-o", "json"]));
  const { status: _, ...object } = found;
  const { name, labels = {}, annotations = {}, finalizers = [] } = object.metadata;
  return { ...object, metadata: { name: newName ?? name, labels, annotations, finalizers } };
}

/** Returns the Job of a namespace as Velero restores it: the API server selects its pods anew. */
async function exportedJob(namespace: string): Promise<object> {
  const text = JSON.stringify(await exported(namespace, "job/sum"), (key, value) =>
    key === "selector" || /(^|\/)(controller-uid|job-name)$/.test(key) ? undefined : value,
  );
  return JSON.parse(text);
}

function marksOf({ metadata, spec }: Pod): unknown[] {
  const keys = [...Object.keys(metadata?.labels ?? {}), ...Object.keys(metadata?.annotations ?? {})];
  const own = [...keys, ...(metadata?.finalizers ?? [])].filter((key) => key.startsWith(`${GROUP}/`));
  return [...own, ...(spec?.schedulerName === "default-scheduler" ? [] : [spec?.schedulerName])];
}

/** Creates a pod that runs in west. */
async function runsInWest(mode: (typeof MODES)[number], name: string): Promise<Stored<Pod>> {
  const namespace = places[mode];
  // No node of the host has it, so that the pod overflows.
  const nodeSelector = mode === "overflow" ? { nodeSelector: { of: "members" } } : {};
  const overflows = { "legation.dev/overflow-after": "0s", "legation.dev/overrides": WITHOUT_SELECTOR };
  const annotations = { "legation.dev/clusters": "west", ...(mode === "overflow" ? overflows : {}) };
  const { metadata, ...pod } = barePod(nodeSelector, { ...stays("running"), ...annotations });
  await clients().host.create(pods, { ...pod, metadata: { ...metadata, namespace, name } });
  return await podThat(
    clients().host,
    namespace,
    name,
    (one) => running(one) && one.spec?.nodeName === "legation-west",
  );
}

const WITHOUT_SELECTOR = JSON.stringify([{ patch: [{ op: "remove", path: "/spec/nodeSelector" }] }]);

/** Expects that the pod runs by a delegate of its own, and the first pod by the one that it had. */
async function bothRun(first: Stored<Pod>, second: Stored<Pod>): Promise<void> {
  const { west } = clients();
  const uids = [first, second].map(({ metadata }) => metadata.annotations?.[DELEGATE_UID_ANNOTATION]);
  expect(new Set(uids).size).toBe(2);
  for (const [index, { metadata }] of [first, second].entries()) {
    const delegate = await west.get(pods, { namespace: metadata.namespace ?? "", name: metadata.name });
    expect(delegate.metadata.uid).toBe(uids[index]);
  }
}

describe.concurrent.each(MODES)("in a namespace with %s, a pod that was made of a running one", (mode) => {
  test("by kubectl debug, with another image for all containers, runs in a member", async () => {
    const first = await runsInWest(mode, "px");
    const debug = ["debug", "px", "--copy-to=dbg", "--set-image=*=busybox:1.36", "--attach=false"];
    await onHost(places[mode], debug);
    const copy = await podThat(
      clients().host,
      places[mode],
      "dbg",
      (one) => running(one) && one.metadata.annotations?.[DELEGATE_UID_ANNOTATION] !== undefined,
    );
    expect(copy.spec?.containers.map(({ image }) => image)).toEqual(["busybox:1.36"]);
    await bothRun(first, copy);
  });

  test("by an export and import, under another name and in a namespace that is not opted in, runs there", async () => {
    const { host } = clients();
    const first = await runsInWest(mode, "exported");
    const imported = await exported(places[mode], "pod/exported", "imported");
    await onHost(places[mode], ["create", "-f", "-"], imported);
    const name = `from-${mode}`;
    // Where it is not delegated, its selector counts.
    const { nodeSelector: _, ...spec } = first.spec ?? { containers: [] };
    const here = { ...(await exported(places[mode], "pod/exported", name)), spec };
    await onHost(places.plain, ["create", "-f", "-"], here);
    const isPlaced = ({ metadata }: Pod): boolean => metadata?.annotations?.[DELEGATE_UID_ANNOTATION] !== undefined;
    const copy = await podThat(host, places[mode], "imported", (one) => running(one) && isPlaced(one));
    await bothRun(first, copy);
    const ordinary = await podThat(host, places.plain, name, running);
    expect(ordinary.spec?.nodeName).not.toMatch(/^legation-/);
    expect(marksOf(ordinary).filter((key) => !/clusters|overflow-after|overrides/.test(String(key)))).toEqual([]);
  });
});

test("a copy of a delegated pod that does not ask, as kubectl debug makes one with a new container, runs on the host", async () => {
  await runsInWest("annotated", "asks");
  await onHost(places.annotated, ["debug", "asks", "--copy-to=does-not-ask", "--image=busybox:1.36", "--attach=false"]);
  const copy = await podThat(clients().host, places.annotated, "does-not-ask", running);
  expect(marksOf(copy)).toEqual([]);
});

test("a claim that was exported has no data in a member, and is its author's", async () => {
  const metadata = { name: "data", annotations: { [CLUSTER_ANNOTATION]: "west", "legation.dev/claim-status": "{}" } };
  const spec = {
    accessModes: ["ReadWriteOnce"],
    storageClassName: "none",
    resources: { requests: { storage: "1Gi" } },
  };
  for (const namespace of [places.plain, places.annotated]) {
    const claim = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec };
    await onHost(namespace, ["create", "-f", "-"], claim);
    const made = await clients().host.get(persistentVolumeClaims, { namespace, name: "data" });
    expect(made.metadata.annotations ?? {}).toEqual({});
  }
});

test("a ConfigMap that was exported from a member is the host's own, and its copies are marked as such", async () => {
  const { host, west } = clients();
  const namespace = places.all;
  const reads = (name: string, configMap: string): Promise<unknown> => {
    const volumes = [{ name: "config", configMap: { name: configMap } }];
    const { metadata, ...pod } = barePod({ volumes }, { ...stays("running"), "legation.dev/clusters": "west" });
    return host.create(pods, { ...pod, metadata: { ...metadata, namespace, name } });
  };
  await host.create(configMaps, { metadata: { namespace, name: "first" }, data: { key: "value" } });
  await reads("reads-first", "first");
  const copy = await eventually(() => west.find(configMaps, { namespace, name: "first" }), { what: "the copy" });
  const { labels = {}, annotations = {} } = copy.metadata;
  const imported = await host.create(configMaps, {
    metadata: { namespace, name: "second", labels, annotations },
    data: {},
  });
  await reads("reads-second", "second");
  await podThat(host, namespace, "reads-second", running);
  const second = await west.get(configMaps, { namespace, name: "second" });
  expect(ownerOf(second)).toMatchObject({ name: "second", uid: imported.metadata.uid });
  await host.delete(configMaps, { namespace, name: "second" });
  expect((await west.get(configMaps, { namespace, name: "first" })).metadata.uid).toBe(copy.metadata.uid);
});

/** Deletes a namespace of the host with all that is in it, and makes it again. */
async function recreate(namespace: string): Promise<void> {
  const { host } = clients();
  await kubectl(hostCluster(), ["delete", "namespace", namespace, "--timeout=120s"], { timeoutMs: 130_000 });
  await host.create(namespaces, { metadata: { name: namespace, labels: { [DELEGATION_LABEL]: "annotated" } } });
  await eventually(() => host.find(configMaps, { namespace, name: "kube-root-ca.crt" }), { what: "the namespace" });
}

function createJob(namespace: string, annotations: object): Promise<Stored<Job>> {
  return clients().host.create(jobs, {
    metadata: { name: "sum", namespace, annotations: { [WHOLE_KEY]: "true", ...annotations } },
    spec: {
      completions: 4,
      parallelism: 4,
      template: template({ restartPolicy: "Never" }, ends(0)) as NonNullable<Job["spec"]>["template"],
    },
  });
}

async function completed(namespace: string): Promise<Stored<Job>> {
  const complete = ["wait", "--for=condition=complete", "job/sum", "--timeout=60s"];
  await onHost(namespace, complete);
  return await clients().host.get(jobs, { namespace, name: "sum" });
}

describe.concurrent("after its namespace was deleted and restored", () => {
  const divided = { "legation.dev/scheduling-preferences": '{"clusters": {"*": {"weight": 1}}}' };

  test.each([
    ["whole", {}, 1],
    ["divided", divided, 2],
  ] as const)("a %s Job runs again, in members", async (_, annotations, members) => {
    const namespace = await freshNamespace(all(), {
      labels: { [DELEGATION_LABEL]: "annotated" },
      onFinished: afterFile,
    });
    await createJob(namespace, annotations);
    const before = await completed(namespace);
    expect(before.metadata.annotations?.[CLUSTER_ANNOTATION]?.split(",")).toHaveLength(members);
    const backup = await exportedJob(namespace);
    await recreate(namespace);
    await onHost(namespace, ["create", "-f", "-"], backup);
    const after = await completed(namespace);
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    expect(after.status).toMatchObject({ succeeded: 4 });
    expect(after.metadata.annotations?.[CLUSTER_ANNOTATION]?.split(",")).toHaveLength(members);
    const counts = await Promise.all(
      [clients().west, clients().east].map(async (client) => (await client.list(jobs, { namespace })).items.length),
    );
    expect(counts.filter((count) => count === 1)).toHaveLength(members);
  });

  test("a whole Job runs on the host if the namespace is not opted in any more", async () => {
    const namespace = await freshNamespace(all(), {
      labels: { [DELEGATION_LABEL]: "annotated" },
      onFinished: afterFile,
    });
    await createJob(namespace, {});
    await completed(namespace);
    await onHost(places.plain, ["create", "-f", "-"], await exportedJob(namespace));
    const after = await completed(places.plain);
    expect(after.spec).not.toHaveProperty("managedBy");
    expect(after.metadata.finalizers).toBeUndefined();
    expect(
      (await clients().host.list(pods, { namespace: places.plain, labelSelector: "job-name=sum" })).items,
    ).toHaveLength(4);
  });

  test("an exclusive object has one copy, in the member that is chosen now", async () => {
    const namespace = await freshNamespace(all(), {
      labels: { [DELEGATION_LABEL]: "annotated" },
      onFinished: afterFile,
    });
    const { west, east } = clients();
    const annotations = { [WHOLE_KEY]: "true", "legation.dev/clusters": "west" };
    const widget = {
      apiVersion: "shop.example.com/v1",
      kind: "Widget",
      metadata: { name: "one", annotations },
      spec: { size: 1 },
    };
    await onHost(namespace, ["create", "-f", "-"], widget);
    await eventually(() => west.find(widgets, { namespace, name: "one" }), { what: "the copy" });
    const backup = await exported(namespace, "widget/one");
    expect(backup.metadata.annotations).toMatchObject({ [CLUSTER_ANNOTATION]: "west" });
    await recreate(namespace);
    const elsewhere = { ...backup.metadata.annotations, "legation.dev/clusters": "east" };
    await onHost(namespace, ["create", "-f", "-"], {
      ...backup,
      metadata: { ...backup.metadata, annotations: elsewhere },
    });
    await eventually(() => east.find(widgets, { namespace, name: "one" }), { what: "the copy of the restored object" });
    expect(await west.find(widgets, { namespace, name: "one" })).toBeUndefined();
    expect((await exported(namespace, "widget/one")).metadata.annotations).toMatchObject({
      [CLUSTER_ANNOTATION]: "east",
    });

    await onHost(places.plain, ["create", "-f", "-"], backup);
    const { metadata, spec } = await exported(places.plain, "widget/one");
    expect({ labels: {}, finalizers: [], ...metadata, spec }).toMatchObject({
      labels: {},
      finalizers: [],
      spec: { size: 1 },
    });
    await onHost(places.plain, ["delete", "widget/one", "--timeout=20s"]);
  });
});
