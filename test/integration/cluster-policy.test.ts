import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ClusterSpec } from "../../src/api/cluster.ts";
import { SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../src/api/keys.ts";
import type { ObjectRef, Pod } from "../../src/api/kubernetes.ts";
import { clusters, placementDefaults } from "../../src/api/resources.ts";
import { leases, namespaces, nodes, pods, secrets } from "../../src/kube/resources.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podsOf, podsPerNode, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

const legation = useLegation();
const clients = useClients();
const WEST = "legation-west";
const EAST = "legation-east";
const patient = { timeoutMs: 60_000, intervalMs: 200 };
let namespace: string;

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "policy", labels });
});

type Policy = { readonly [Field in "namespaceSelector" | "limits"]?: ClusterSpec[Field] | null };

function policy(name: string, spec: Policy): Promise<unknown> {
  return clients().host.patch(clusters, { name }, { type: "merge", body: { spec } });
}

async function create(names: readonly string[], annotations: Record<string, string> = {}): Promise<void> {
  await Promise.all(names.map((name) => clients().host.create(pods, delegatedPod(namespace, name, { annotations }))));
}

/** Counts the pods of each node that are not being deleted. */
function placed(): Promise<Record<string, number>> {
  return podsPerNode(clients().host, namespace);
}

describe("a Cluster's namespaceSelector", () => {
  const gold = { matchLabels: { team: "gold" } };
  afterEach(() => Promise.all(["west", "east"].map((name) => policy(name, { namespaceSelector: null }))));

  test("excludes a namespace whatever its authors write", async () => {
    await policy("west", { namespaceSelector: gold });
    await create(numbered("anywhere", 4));
    await create(["named"], { "legation.dev/clusters": "west" });
    await create(["preferring"], {
      "legation.dev/scheduling-preferences": '{"clusters": {"west": {"weight": 1, "minReplicas": 1}}}',
      "legation.dev/group": "west",
    });
    expect(await waitingFor(clients().host, namespace, "named", "west")).toContain(
      `west: its namespaceSelector does not admit namespace ${namespace}`,
    );
    expect(await waitingFor(clients().host, namespace, "preferring", "west")).toContain(
      "west: its namespaceSelector does not admit",
    );
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 4, none: 2 }), patient);
    expect(await podsOf(clients().west, namespace)).toEqual([]);
  });

  test("applies at once to waiting pods when it or the namespace's labels change, and leaves running pods", async () => {
    await policy("west", { namespaceSelector: gold });
    await create(["patient"], { "legation.dev/clusters": "west" });
    await waitingFor(clients().host, namespace, "patient", "does not admit");
    const label = (team: string | null): Promise<unknown> =>
      clients().host.patch(
        namespaces,
        { name: namespace },
        { type: "merge", body: { metadata: { labels: { team } } } },
      );
    await label("gold");
    await podThat(clients().host, namespace, "patient", ({ spec }) => spec?.nodeName === WEST);
    await label(null);
    await create(["late"], { "legation.dev/clusters": "west" });
    await waitingFor(clients().host, namespace, "late", "does not admit");
    expect(await placed()).toEqual({ [WEST]: 1, none: 1 });
    await policy("west", { namespaceSelector: null });
    await podThat(clients().host, namespace, "late", ({ spec }) => spec?.nodeName === WEST);
  });

  test("takes a pod back from a member whose scheduler has found no node for it yet", async () => {
    const spec = { tolerations: [], schedulerName: "nobody" };
    const annotations = { "legation.dev/clusters": "west" };
    await clients().host.create(pods, delegatedPod(namespace, "unscheduled", { annotations, spec }));
    await eventuallyPasses(async () => expect(await podsOf(clients().west, namespace)).toHaveLength(1), patient);
    await policy("west", { namespaceSelector: gold });
    await waitingFor(clients().host, namespace, "unscheduled", "does not admit");
    await eventuallyPasses(async () => expect(await podsOf(clients().west, namespace)).toEqual([]), patient);
  });
});

describe("a Cluster's limits", () => {
  afterEach(() => policy("west", { limits: null }));

  test("send further pods of a namespace to another member, or let them wait until one has ended", async () => {
    await policy("west", { limits: { perNamespace: { pods: "2" } } });
    await create(numbered("any", 8));
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [WEST]: 2, [EAST]: 6 }), patient);
    await create(["more"], { "legation.dev/clusters": "west" });
    expect(await waitingFor(clients().host, namespace, "more", "its limit")).toContain(
      `west: its limit for namespace ${namespace} of pods: 1 requested, 0 of 2 left`,
    );
    const [one] = (await podsOf(clients().host, namespace)).filter(({ spec }) => spec?.nodeName === WEST);
    await clients().host.delete(pods, { namespace, name: one?.metadata.name ?? "" }, { gracePeriodSeconds: 0 });
    await podThat(clients().host, namespace, "more", ({ spec }) => spec?.nodeName === WEST);
  });

  test("are refused if they are no quantities", async () => {
    await expect(policy("west", { limits: { total: { cpu: "many" } } })).rejects.toThrow(/must be a quantity/);
  });

  test.each(["requests.cpu", "limits.memory", "requests.nvidia.com/gpu", "count/pods", "services", "gpu"])(
    "refuse %s, which no pod requests by that name, with what to write instead",
    async (resource) => {
      for (const limits of [{ total: { [resource]: "1" } }, { perNamespace: { [resource]: "1" } }]) {
        await expect(policy("west", { limits })).rejects.toThrow(/name resources as pods request them/);
      }
    },
  );

  test.each(["cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi", "nvidia.com/gpu"])(
    "accept %s",
    async (resource) => {
      await policy("west", { limits: { total: { [resource]: "1000" }, perNamespace: { [resource]: "1000" } } });
    },
  );
});

describe("PlacementDefaults", () => {
  const name = "default";
  const region = (value: string): object => ({ clusterSelector: { matchLabels: { region: value } } });
  afterEach(async () => {
    const there = await clients().host.find(placementDefaults, { name });
    if (there !== undefined) await clients().host.delete(placementDefaults, { name });
  });

  test("completes what pods and namespaces say, which may replace it", async () => {
    const object = { apiVersion: "legation.dev/v1alpha1", kind: "PlacementDefaults", metadata: { name } };
    await clients().host.create(placementDefaults, { ...object, spec: region("us") });
    await create(["patient"], { "legation.dev/clusters": "west" });
    await waitingFor(clients().host, namespace, "patient", "do not match");
    await create(numbered("plain", 4));
    await create(["own"], { "legation.dev/cluster-selector": "region=eu" });
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 4, [WEST]: 1, none: 1 }), patient);
    await clients().host.patch(placementDefaults, { name }, { type: "merge", body: { spec: region("eu") } });
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 4, [WEST]: 2 }), patient);
  });

  test("may be missing as a type when a controller starts to lead, and counts once it is there", async () => {
    const { host } = clients();
    const { controller } = legation();
    const type = "crd/placementdefaults.legation.dev";
    await controller.stop();
    await kubectl(hostCluster(), ["delete", type]);
    try {
      await controller.start();
      await create(["plain"]);
      await podThat(host, namespace, "plain", inPhase("Running"), patient);
    } finally {
      await kubectl(hostCluster(), ["create", "-f", "manifests/crds/legation.dev_placementdefaults.yaml"]);
      await kubectl(hostCluster(), ["wait", "--for=condition=Established", type, "--timeout=30s"]);
    }
    const object = { apiVersion: "legation.dev/v1alpha1", kind: "PlacementDefaults", metadata: { name } };
    await eventuallyPasses(async () => {
      await host.create(placementDefaults, { ...object, spec: region("us") });
    }, patient);
    await eventuallyPasses(async () => {
      const pod = `patient-${Date.now()}`;
      await create([pod], { "legation.dev/clusters": "west" });
      const isKept = (found: Pod): boolean => whyNotPlaced(found)?.message?.includes("do not match") === true;
      await podThat(host, namespace, pod, isKept, { timeoutMs: 2_000 });
    }, patient);
  });

  test("is refused under another name or with expressions that select nothing", async () => {
    const object = { apiVersion: "legation.dev/v1alpha1", kind: "PlacementDefaults", spec: {} };
    const other = clients().host.create(placementDefaults, { ...object, metadata: { name: "other" } });
    await expect(other).rejects.toThrow(/its name is default/);
    const spec = { clusterSelector: { matchExpressions: [{ key: "region", operator: "In" as const }] } };
    const empty = clients().host.create(placementDefaults, { ...object, metadata: { name }, spec });
    await expect(empty).rejects.toThrow(/need values/);
  });
});

test("keeps the virtual node alive with taints that no node may have, and reports them in the Cluster's status", async () => {
  const { host } = clients();
  const taints = (written: object[] | null): Promise<unknown> =>
    host.patch(clusters, { name: "west" }, { type: "merge", body: { spec: { taints: written } } });
  const renewed = async (): Promise<string | undefined> =>
    (await host.get(leases, { namespace: "kube-node-lease", name: WEST })).spec?.renewTime;
  const message = async (): Promise<string | undefined> =>
    (await host.get(clusters, { name: "west" })).status?.conditions?.[0]?.message;
  await taints(["a", "b"].map((value) => ({ key: "twice", value, effect: "PreferNoSchedule" })));
  try {
    await eventuallyPasses(
      async () => expect(await message()).toMatch(/^its API server answers, but Node legation-west .*Duplicate value/),
      patient,
    );
    const before = await renewed();
    await eventuallyPasses(async () => expect(await renewed()).not.toBe(before), patient);
    await create(["still"], { "legation.dev/clusters": "west" });
    await podThat(host, namespace, "still", inPhase("Running"));
  } finally {
    await taints(null);
  }
  await eventuallyPasses(async () => expect(await message()).toBe("its API server answers"), patient);
});

test("restores the label of a virtual node within moments, and pods run there", async () => {
  const { host } = clients();
  const { metadata } = await host.get(nodes, { name: WEST });
  const body = { metadata: { labels: { [VIRTUAL_NODE_LABEL]: null } } };
  await host.patch(nodes, { name: WEST }, { type: "merge", body });
  await eventuallyPasses(async () => {
    const now = await host.get(nodes, { name: WEST });
    expect(now.metadata).toMatchObject({ uid: metadata.uid, labels: { [VIRTUAL_NODE_LABEL]: "west" } });
  });
  await create(["after"], { "legation.dev/clusters": "west" });
  await podThat(host, namespace, "after", inPhase("Running"));
});

test("restores a deleted virtual node as cordoned as it was", async () => {
  const { host } = clients();
  const cordon = (unschedulable: boolean | null): Promise<unknown> =>
    host.patch(nodes, { name: WEST }, { type: "merge", body: { spec: { unschedulable } } });
  await cordon(true);
  try {
    await create(["early"], { "legation.dev/clusters": "west" });
    await waitingFor(host, namespace, "early", "west: its virtual node is cordoned");
    const { uid } = (await host.get(nodes, { name: WEST })).metadata;
    await host.delete(nodes, { name: WEST });
    await eventuallyPasses(async () => {
      const node = await host.get(nodes, { name: WEST });
      expect(node.metadata.uid).not.toBe(uid);
      expect(node.spec?.unschedulable).toBe(true);
    }, patient);
  } finally {
    await cordon(null);
  }
  await podThat(host, namespace, "early", inPhase("Running"), patient);
});

// East is reached directly in every run. A Secret leads a member behind an agent nowhere.
test("marks a Cluster as lost, with the reason, when its Secret leads to another cluster, and its pods run on", async () => {
  const { host, west, east } = clients();
  const credentials: ObjectRef = { namespace: SYSTEM_NAMESPACE, name: "member-east" };
  const write = (kubeconfig = ""): Promise<unknown> =>
    host.patch(secrets, credentials, { type: "merge", body: { data: { kubeconfig } } });
  const ready = async (): Promise<unknown> =>
    (await host.get(clusters, { name: "east" })).status?.conditions?.find(({ type }) => type === "Ready");
  await create(["stays"], { "legation.dev/clusters": "east" });
  const before = await podThat(host, namespace, "stays", inPhase("Running"));
  const uids = async (): Promise<string[]> => (await podsOf(east, namespace)).map(({ metadata }) => metadata.uid);
  const [delegate] = await uids();
  const own = (await host.get(secrets, credentials)).data?.kubeconfig;
  await write(readFileSync(memberCluster("west").kubeconfig, "base64"));
  try {
    await eventuallyPasses(
      async () => expect(await ready()).toMatchObject({ status: "False", reason: "AnotherCluster" }),
      patient,
    );
    await create(["waits"], { "legation.dev/clusters": "east" });
    await waitingFor(host, namespace, "waits", "east:");
    expect(await podsOf(west, namespace)).toEqual([]);
    expect(await host.get(pods, { namespace, name: "stays" })).toMatchObject({
      metadata: { uid: before.metadata.uid },
      status: { phase: "Running" },
    });
  } finally {
    await write(own);
  }
  await podThat(host, namespace, "waits", inPhase("Running"), patient);
  expect(await ready()).toMatchObject({ status: "True" });
  expect(await uids()).toContain(delegate);
  expect((await host.get(pods, { namespace, name: "stays" })).status?.phase).toBe("Running");
});

// As above, east: the host does not know how to reach a member behind an agent directly.
describe("a Cluster applied by hand for a member that has joined under another name", () => {
  const TWICE = "east-again";
  afterEach(async () => {
    await clients().host.delete(clusters, { name: TWICE });
    await eventuallyPasses(async () => expect(await clients().host.find(clusters, { name: TWICE })).toBeUndefined());
  });

  test("is not Ready, gives the reason, gets no pod, and does not disturb the first one", async () => {
    const { host, east } = clients();
    await create(["before"], { "legation.dev/clusters": "east" });
    const before = await podThat(east, namespace, "before", inPhase("Running"));
    await host.create(clusters, {
      apiVersion: "legation.dev/v1alpha1",
      kind: "Cluster",
      metadata: { name: TWICE },
      spec: { credentialsSecret: { name: "member-east" } },
    });
    const readyOf = async (name: string): Promise<unknown> =>
      (await host.get(clusters, { name })).status?.conditions?.find(({ type }) => type === "Ready");
    await eventuallyPasses(
      async () =>
        expect(await readyOf(TWICE)).toMatchObject({
          status: "False",
          reason: "JoinedTwice",
          message: expect.stringContaining("its member has joined already, as Cluster east"),
        }),
      patient,
    );
    expect(await readyOf("east")).toMatchObject({ status: "True" });
    await create(["again"], { "legation.dev/clusters": TWICE });
    await create(numbered("anywhere", 4));
    await eventuallyPasses(async () => {
      const running = (await podsOf(host, namespace)).filter(inPhase("Running"));
      expect(running).toHaveLength(5);
    }, patient);
    expect((await placed())[`legation-${TWICE}`]).toBeUndefined();
    expect(await waitingFor(host, namespace, "again", TWICE)).toContain(
      "its member has joined already, as Cluster east",
    );
    const after = await podThat(east, namespace, "before", inPhase("Running"));
    expect(after.metadata.uid).toBe(before.metadata.uid);
  });
});
