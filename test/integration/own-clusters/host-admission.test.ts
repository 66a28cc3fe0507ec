import { afterAll, beforeAll, expect, test } from "vitest";
import type { Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { startClusters } from "../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../support/clusters/types.ts";
import { delegatedPod } from "../../support/delegated/pods.ts";
import { clientOf } from "../../support/harness/clients.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { inPhase, podThat } from "../../support/harness/pods-of.ts";
import { type Legation, startLegation } from "../../support/legation/start.ts";

// Plugins that write into pods and are off by default.
const PLUGINS = "PodNodeSelector,PodTolerationRestriction,AlwaysPullImages";
const NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector";
const TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations";
const HOST_POOL = { key: "sandbox", operator: "Exists", effect: "NoSchedule" };
const TEAM = { key: "team", operator: "Equal", value: "a", effect: "NoSchedule" };
const patient = { timeoutMs: 60_000 };

let clusters: Clusters;
let host: Cluster;
let west: Cluster;
let client: ClusterClient;
let member: ClusterClient;
let legation: Legation;

function runtimeClass(handler: string, cpu: string, scheduling: object): object {
  return {
    apiVersion: "node.k8s.io/v1",
    kind: "RuntimeClass",
    metadata: { name: "sandbox" },
    handler,
    overhead: { podFixed: { cpu } },
    scheduling,
  };
}

function priorityClass(name: string, value: number, globalDefault = false): object {
  return { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value, globalDefault };
}

async function apply(cluster: Cluster, ...items: readonly object[]): Promise<void> {
  const list = { apiVersion: "v1", kind: "List", items };
  await kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(list) });
}

beforeAll(async () => {
  clusters = await startClusters({
    names: ["completing", "west"],
    clusters: {
      completing: { nodes: [], apiServerFlags: [`--enable-admission-plugins=NodeRestriction,${PLUGINS}`] },
      west: { nodes: [{ count: 1, labels: { sandbox: "member-pool", disk: "ssd" } }] },
    },
  });
  [host, west] = [clusters.get("completing"), clusters.get("west")];
  const ofHost = { nodeSelector: { sandbox: "host-pool" }, tolerations: [HOST_POOL] };
  await Promise.all([
    apply(host, runtimeClass("kata", "100m", ofHost), priorityClass("usual", 7, true), priorityClass("high", 9)),
    apply(
      west,
      runtimeClass("gvisor", "250m", { nodeSelector: { sandbox: "member-pool" } }),
      priorityClass("high", 1_000),
    ),
  ]);
  legation = await startLegation({ host, members: { west } });
  [client, member] = [clientOf(host), clientOf(west)];
});
afterAll(async () => {
  await legation?.stop();
  await Promise.all([client?.close(), member?.close()]);
  await clusters?.stop();
});

/** Runs a pod in a namespace with these annotations on the host; resolves to its proxy and its delegate. */
async function run(
  spec: Partial<PodSpec>,
  annotations: Readonly<Record<string, string>> = {},
): Promise<{ readonly proxy: Stored<Pod>; readonly delegate: Stored<Pod> }> {
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace([host, west], { prefix: "completed", labels });
  for (const [key, value] of Object.entries(annotations)) {
    await kubectl(host, ["annotate", "namespace", namespace, `${key}=${value}`]);
  }
  await client.create(pods, delegatedPod(namespace, "web", { spec: { automountServiceAccountToken: false, ...spec } }));
  const proxy = await podThat(client, namespace, "web", inPhase("Running"), patient);
  return { proxy, delegate: await member.get(pods, { namespace, name: "web" }) };
}

interface Case {
  readonly spec?: Partial<PodSpec>;
  /** Annotations of the pod's namespace on the host. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly proxy: object;
  readonly delegate: object;
}

test.each<[string, Case]>([
  [
    "RuntimeClass merged, and has what the member's class merges",
    {
      spec: { runtimeClassName: "sandbox" },
      proxy: {
        nodeSelector: { sandbox: "host-pool" },
        tolerations: expect.arrayContaining([HOST_POOL]),
        overhead: { cpu: "100m" },
      },
      delegate: {
        runtimeClassName: "sandbox",
        nodeSelector: { sandbox: "member-pool" },
        tolerations: expect.not.arrayContaining([HOST_POOL]),
        overhead: { cpu: "250m" },
      },
    },
  ],
  [
    "RuntimeClass merged, but keeps its author's own node selector and tolerations",
    {
      spec: { runtimeClassName: "sandbox", nodeSelector: { disk: "ssd" }, tolerations: [TEAM] },
      proxy: { nodeSelector: { disk: "ssd", sandbox: "host-pool" } },
      delegate: {
        nodeSelector: { disk: "ssd", sandbox: "member-pool" },
        tolerations: expect.arrayContaining([TEAM]),
      },
    },
  ],
  [
    "Priority wrote: the host's default class, which the member does not have",
    {
      proxy: { priorityClassName: "usual", priority: 7 },
      delegate: { priorityClassName: undefined, priority: 0 },
    },
  ],
  [
    "Priority wrote, but keeps the class that its author named",
    {
      spec: { priorityClassName: "high" },
      proxy: { priorityClassName: "high", priority: 9 },
      delegate: { priorityClassName: "high", priority: 1_000 },
    },
  ],
  [
    "PodNodeSelector merged from the namespace",
    {
      spec: { nodeSelector: { disk: "ssd" } },
      annotations: { [NODE_SELECTOR]: "pool=host" },
      proxy: { nodeSelector: { disk: "ssd", pool: "host" } },
      delegate: { nodeSelector: { disk: "ssd" } },
    },
  ],
  [
    "PodTolerationRestriction merged from the namespace",
    {
      annotations: { [TOLERATIONS]: JSON.stringify([TEAM]) },
      proxy: { tolerations: expect.arrayContaining([TEAM]) },
      delegate: { tolerations: expect.not.arrayContaining([TEAM]) },
    },
  ],
])("leaves out of the delegate what %s", async (_, { spec = {}, annotations = {}, ...expected }) => {
  const found = await run(spec, annotations);
  for (const side of ["proxy", "delegate"] as const) {
    const names = new Set(Object.keys(expected[side]));
    const fields = Object.entries(found[side].spec ?? {}).filter(([name]) => names.has(name));
    expect(Object.fromEntries(fields)).toEqual(expected[side]);
  }
});

test("keeps in the delegate AlwaysPullImages' pull policy and LimitRanger's defaults, as the proxy shows them", async () => {
  const namespace = await freshNamespace([host, west], {
    prefix: "completed",
    labels: { "legation.dev/delegation": "annotated" },
  });
  const limits = [{ type: "Container", defaultRequest: { cpu: "30m" }, default: { cpu: "60m" } }];
  await apply(host, { apiVersion: "v1", kind: "LimitRange", metadata: { name: "usual", namespace }, spec: { limits } });
  await client.create(pods, delegatedPod(namespace, "web", { spec: { automountServiceAccountToken: false } }));
  const proxy = await podThat(client, namespace, "web", inPhase("Running"), patient);
  const delegate = await member.get(pods, { namespace, name: "web" });
  for (const { spec } of [proxy, delegate]) {
    expect(spec?.containers[0]).toMatchObject({
      imagePullPolicy: "Always",
      resources: { requests: { cpu: "30m" }, limits: { cpu: "60m" } },
    });
  }
});
