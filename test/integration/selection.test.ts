import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NODE_TAINTS_ANNOTATION } from "../../src/api/keys.ts";
import type { Taint } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { nodes, pods } from "../../src/kube/resources.ts";
import { conditionOf } from "../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { delegatedPod, numbered } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podsPerNode, podThat, waitingFor } from "../support/harness/pods-of.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

useLegation();
const clients = useClients();
const WEST = "legation-west";
const EAST = "legation-east";
const patient = { timeoutMs: 60_000, intervalMs: 200 };
let namespace: string;

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  namespace = await freshNamespace(all, { prefix: "selection", labels });
});

function preferring(region: string): string {
  const preference = { matchExpressions: [{ key: "region", operator: "In", values: [region] }] };
  return JSON.stringify({ preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] });
}

function deployment(replicas: number, annotations: Record<string, string>, podSpec: object = {}): string {
  return JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", annotations: { "legation.dev/delegate": "true", ...annotations } },
    spec: {
      replicas,
      selector: { matchLabels: { app: "web" } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "main", image: "web:1" }], ...podSpec },
      },
    },
  });
}

async function rollOut(manifest: string): Promise<void> {
  await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: manifest });
  const wait = ["-n", namespace, "rollout", "status", "deployment/web", "--timeout=60s"];
  await kubectl(hostCluster(), wait, { timeoutMs: 70_000 });
}

/** Counts the pods of each node that are not being deleted. */
function placed(): Promise<Record<string, number>> {
  return podsPerNode(clients().host, namespace);
}

function isPlacedOn(node: string): (pod: { readonly spec?: { nodeName?: string } }) => boolean {
  return ({ spec }) => spec?.nodeName === node;
}

describe("cluster affinity", () => {
  test("outweighs load as a preference", async () => {
    const annotations = { "legation.dev/cluster-affinity": preferring("us") };
    const names = numbered("eager", 6);
    await Promise.all(names.map((name) => clients().host.create(pods, delegatedPod(namespace, name, { annotations }))));
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 6 }), patient);
  });

  test("makes a pod wait, with the reason, if a requirement matches no member", async () => {
    const term = { matchFields: [{ key: "metadata.name", operator: "In", values: ["north"] }] };
    const affinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } };
    const annotations = { "legation.dev/cluster-affinity": JSON.stringify(affinity) };
    await clients().host.create(pods, delegatedPod(namespace, "picky", { annotations }));
    const pod = await podThat(clients().host, namespace, "picky", (found) => whyNotPlaced(found) !== undefined);
    expect(whyNotPlaced(pod)?.message).toBe(
      "east: no term of legation.dev/cluster-affinity matches it; west: no term of legation.dev/cluster-affinity matches it",
    );
  });

  test("applies from the pod's own affinity on the label of virtual nodes, which a member's nodes lack", async () => {
    const expressions = [{ key: "legation.dev/cluster", operator: "NotIn", values: ["west"] }];
    const required = { nodeSelectorTerms: [{ matchExpressions: expressions }] };
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: required };
    const names = numbered("own", 3);
    const spec = { affinity: { nodeAffinity } };
    await Promise.all(names.map((name) => clients().host.create(pods, delegatedPod(namespace, name, { spec }))));
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 3 }), patient);
    const [name = ""] = names;
    await podThat(clients().host, namespace, name, inPhase("Running"));
    const proxy = await clients().host.get(pods, { namespace, name });
    expect(proxy.spec?.affinity).toEqual({ nodeAffinity });
    const delegate = await clients().east.get(pods, { namespace, name });
    expect(delegate.spec?.affinity).toBeUndefined();
  });

  test("makes a pod wait for a member once its scheduling gates are removed", async () => {
    const { host } = clients();
    const spec = { schedulingGates: [{ name: "example.com/quota" }] };
    const annotations = { "legation.dev/cluster-selector": "region=nowhere" };
    await host.create(pods, delegatedPod(namespace, "gated", { annotations, spec }));
    const status = (): Promise<string> =>
      kubectl(hostCluster(), ["get", "pod", "gated", "-n", namespace, "--no-headers"]);
    expect(await status()).toMatch(/ SchedulingGated /);
    const { lastTransitionTime } =
      conditionOf(await host.get(pods, { namespace, name: "gated" }), "PodScheduled") ?? {};
    await host.patch(pods, { namespace, name: "gated" }, { type: "merge", body: { spec: { schedulingGates: [] } } });
    await eventuallyPasses(async () => expect(await status()).toMatch(/ Pending /), patient);
    const waits = await host.get(pods, { namespace, name: "gated" });
    // kube-scheduler writes this: the status stays, and so does its transition time.
    expect(waits.status?.conditions).toEqual([
      {
        type: "PodScheduled",
        status: "False",
        reason: "NotPlaced",
        message: expect.stringContaining("west: its labels do not match"),
        lastProbeTime: null,
        lastTransitionTime,
        observedGeneration: 2,
      },
    ]);
  });

  test("is refused with every problem if it is invalid", async () => {
    const annotations = { "legation.dev/cluster-affinity": "required: []", "legation.dev/cluster-spread": "[{}]" };
    const refused = clients().host.create(pods, delegatedPod(namespace, "wrong", { annotations }));
    await expect(refused).rejects.toThrow(/cluster-affinity: .*required.*cluster-spread: \[0\]\.topologyKey/s);
  });
});

describe("spread over clusters", () => {
  const spread = (maxSkew: number): string => JSON.stringify([{ topologyKey: "region", maxSkew }]);

  test("limits how far preferences fill one cluster", async () => {
    const annotations = { "legation.dev/cluster-affinity": preferring("us") };
    await rollOut(deployment(6, { ...annotations, "legation.dev/cluster-spread": spread(2) }));
    expect(await placed()).toEqual({ [EAST]: 4, [WEST]: 2 });
  });

  test("applies from the pods' own constraints over virtual nodes, and is removed for a member's nodes", async () => {
    const topologySpreadConstraints = [
      {
        topologyKey: "legation.dev/cluster",
        maxSkew: 1,
        whenUnsatisfiable: "DoNotSchedule",
        labelSelector: { matchLabels: { app: "web" } },
      },
    ];
    await rollOut(deployment(4, { "legation.dev/cluster-affinity": preferring("us") }, { topologySpreadConstraints }));
    expect(await placed()).toEqual({ [EAST]: 2, [WEST]: 2 });
    const there = await clients().east.list(pods, { namespace });
    expect(there.items.map(({ spec }) => spec?.topologySpreadConstraints)).toEqual([undefined, undefined]);
  });

  test("counts the pods of a selector, whoever owns them", async () => {
    await rollOut(deployment(2, { "legation.dev/cluster-spread": spread(1) }));
    expect(await placed()).toEqual({ [EAST]: 1, [WEST]: 1 });
    const counted = [
      { topologyKey: "region", labelSelector: { matchLabels: { app: "web" } }, whenUnsatisfiable: "DoNotSchedule" },
    ];
    const pod = delegatedPod(namespace, "third", {
      annotations: { "legation.dev/cluster-spread": JSON.stringify(counted) },
    });
    const labelled = { ...pod, metadata: { ...pod.metadata, labels: { app: "web" } } };
    await clients().host.create(pods, labelled);
    const third = await podThat(clients().host, namespace, "third", inPhase("Running"));
    const fourth = { ...labelled, metadata: { ...labelled.metadata, name: "fourth" } };
    await clients().host.create(pods, fourth);
    const other = third.spec?.nodeName === EAST ? WEST : EAST;
    await podThat(clients().host, namespace, "fourth", isPlacedOn(other));
  });
});

describe("taints of a Cluster", () => {
  const taint = async (taints: readonly Taint[] | null): Promise<void> => {
    await clients().host.patch(clusters, { name: "west" }, { type: "merge", body: { spec: { taints } } });
    const keys = (taints ?? []).map(({ key }) => key);
    await eventuallyPasses(async () => {
      const { spec, metadata } = await clients().host.get(nodes, { name: WEST });
      expect(spec?.taints?.map(({ key }) => key)).toEqual(["legation.dev/virtual-node", ...keys]);
      expect(metadata.annotations?.[NODE_TAINTS_ANNOTATION] !== undefined).toBe(keys.length > 0);
    }, patient);
  };
  afterEach(() => taint(null));

  test("keep off pods that do not tolerate them, and are on its virtual node as long as on the Cluster", async () => {
    await taint([{ key: "team", value: "gold", effect: "NoSchedule" }]);
    const annotations = { "legation.dev/clusters": "west" };
    const tolerations = [{ key: "team", operator: "Equal", value: "gold" }];
    const { host } = clients();
    await host.create(pods, delegatedPod(namespace, "gold", { annotations, spec: { tolerations } }));
    await host.create(pods, delegatedPod(namespace, "plain", { annotations }));
    await podThat(host, namespace, "gold", isPlacedOn(WEST));
    const waiting = await podThat(host, namespace, "plain", (found) => whyNotPlaced(found) !== undefined);
    expect(whyNotPlaced(waiting)?.message).toContain("west: the pod does not tolerate its taint team=gold:NoSchedule");
    await taint(null);
    await podThat(host, namespace, "plain", isPlacedOn(WEST));
  });

  test("evict pods with effect NoExecute, and their controller replaces them elsewhere", async () => {
    await rollOut(deployment(4, {}));
    await taint([{ key: "down", effect: "NoExecute" }]);
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 4 }), patient);
  });

  test("apply as well, and stay, if they were put on the virtual node itself", async () => {
    await kubectl(hostCluster(), ["taint", "node", WEST, "hand=made:NoSchedule"]);
    try {
      await Promise.all(numbered("away", 4).map((name) => clients().host.create(pods, delegatedPod(namespace, name))));
      await eventuallyPasses(async () => expect(await placed()).toEqual({ [EAST]: 4 }), patient);
    } finally {
      await kubectl(hostCluster(), ["taint", "node", WEST, "hand=made:NoSchedule-"]);
    }
  });
});

describe("a node selection for virtual nodes", () => {
  const expression = (key: string, ...values: string[]): object => ({ key, operator: "In", values });
  const required = (term: object): object => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
  });
  const preferred = (term: object): object => ({
    affinity: {
      nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term }] },
    },
  });
  const provider = { tolerations: [{ key: "virtual-kubelet.io/provider", operator: "Exists" }] };

  test.each<readonly [string, string, object, string | undefined]>([
    ["by type", "type", { nodeSelector: { type: "virtual-kubelet" }, ...provider }, undefined],
    [
      "by roles of other virtual kubelets, too",
      "roles",
      { nodeSelector: { type: "virtual-kubelet", "kubernetes.io/role": "agent", "node-role.kubernetes.io/agent": "" } },
      undefined,
    ],
    ["by role", "role", { nodeSelector: { "node-role.kubernetes.io/member": "" } }, undefined],
    ["by host name", "host", { nodeSelector: { "kubernetes.io/hostname": EAST } }, EAST],
    ["by name", "field", required({ matchFields: [expression("metadata.name", EAST)] }), EAST],
    [
      "preferably by host name",
      "soft",
      preferred({ matchExpressions: [expression("kubernetes.io/hostname", EAST)] }),
      EAST,
    ],
    ["by a label of a Cluster", "label", { nodeSelector: { region: "us" } }, EAST],
    ["preferably by a label of a Cluster", "wish", preferred({ matchExpressions: [expression("region", "us")] }), EAST],
  ])("selects members, and is removed for their nodes: %s", async (_what, name, spec, node) => {
    await clients().host.create(pods, delegatedPod(namespace, name, { spec }));
    const { spec: placedSpec } = await podThat(clients().host, namespace, name, inPhase("Running"));
    expect(placedSpec?.nodeName).toMatch(node ?? /^legation-(west|east)$/);
    const member = placedSpec?.nodeName === WEST ? "west" : "east";
    const delegate = await clients()[member].get(pods, { namespace, name });
    expect(delegate.spec?.nodeSelector).toBeUndefined();
    expect(delegate.spec?.affinity?.nodeAffinity).toBeUndefined();
  });

  test("makes a pod wait, with the reason, if neither a Cluster nor a node has the label", async () => {
    await clients().host.create(
      pods,
      delegatedPod(namespace, "nowhere", { spec: { nodeSelector: { region: "moon" } } }),
    );
    const message = await waitingFor(clients().host, namespace, "nowhere", "region");
    expect(message).toBe(
      `east: the pod's nodeSelector says region: "moon"; west: the pod's nodeSelector says region: "moon"`,
    );
  });

  // Last: the controller sees the removal of the label later.
  test("applies to the nodes of a member that have the key, whatever its Cluster says", async () => {
    const { host, east } = clients();
    const { items } = await east.list(nodes);
    const ref = { name: items[0]?.metadata.name ?? "" };
    const label = (region: string | null): Promise<unknown> =>
      east.patch(nodes, ref, { type: "merge", body: { metadata: { labels: { region } } } });
    await label("moon");
    try {
      await host.create(pods, delegatedPod(namespace, "lunar", { spec: { nodeSelector: { region: "moon" } } }));
      const { spec } = await podThat(host, namespace, "lunar", inPhase("Running"));
      expect(spec?.nodeName).toBe(EAST);
      const delegate = await east.get(pods, { namespace, name: "lunar" });
      expect(delegate.spec).toMatchObject({ nodeSelector: { region: "moon" }, nodeName: ref.name });
    } finally {
      await label(null);
    }
  });
});
