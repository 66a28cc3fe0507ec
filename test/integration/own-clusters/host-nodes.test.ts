import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { conditionOf } from "../../../src/pods/phase.ts";
import { auditEvents, isWrite } from "../../support/clusters/audit.ts";
import { startSecondScheduler } from "../../support/clusters/second-scheduler.ts";
import { startClusters } from "../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../support/clusters/types.ts";
import { afterFile, cleanUpFile } from "../../support/harness/after-file.ts";
import { clientOf } from "../../support/harness/clients.ts";
import { applyAll, kubectl } from "../../support/harness/kubectl.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { inPhase, podsOf } from "../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { startLegation } from "../../support/legation/start.ts";

const CORES = 8;
const WEST_NODES = 2;
const NODE = "legation-west";
const EVERY_TAINT = { priorityClassName: "system-node-critical", tolerations: [{ operator: "Exists" }] };
const patient = { timeoutMs: 90_000, intervalMs: 200 };

let clusters: Clusters;
let host: Cluster;
let client: ClusterClient;

beforeAll(async () => {
  clusters = await startClusters({
    names: ["host", "west", "east"],
    clusters: {
      host: {
        nodes: [{ count: 2, cpu: String(CORES) }],
        // The node lifecycle controller acts within seconds instead of minutes.
        controllerManagerFlags: [
          "--node-monitor-period=1s",
          "--node-monitor-grace-period=20s",
          "--node-eviction-rate=10",
        ],
      },
      west: { nodes: [{ count: WEST_NODES, cpu: String(CORES) }] },
      east: { nodes: [{ count: 1 }] },
    },
  });
  afterFile(() => clusters.stop());
  host = clusters.get("host");
  const legation = await startLegation({ host, members: { west: clusters.get("west"), east: clusters.get("east") } });
  afterFile(() => legation.stop());
  client = clientOf(host);
  afterFile(() => client.close());
  return cleanUpFile;
});

function container(cpu: string): object {
  return { name: "main", image: "main:1", resources: { requests: { cpu } } };
}

function workload(kind: "Deployment" | "DaemonSet", name: string, spec: object, podSpec: object): object {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: podSpec };
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name },
    spec: { ...spec, selector: { matchLabels: labels }, template },
  };
}

async function uidsIn(namespace: string): Promise<string[]> {
  return (await podsOf(client, namespace)).map(({ metadata }) => metadata.uid).sort();
}

/** The pods of a workload that wait for a virtual node, once a scheduler has said that none of them fits. */
async function unschedulable(namespace: string, app: string): Promise<Stored<Pod>[]> {
  return eventually(
    async () => {
      const found = (await podsOf(client, namespace)).filter(
        ({ metadata, spec }) => metadata.labels?.app === app && spec?.nodeName === undefined,
      );
      return found.length > 0 && found.every((pod) => conditionOf(pod, "PodScheduled")?.status === "False") && found;
    },
    { ...patient, what: `pods of ${app} without a node` },
  );
}

describe("a scheduler of the host, when pods that tolerate every taint find a virtual node full,", () => {
  let namespace: string;

  beforeAll(async () => {
    namespace = await freshNamespace(host, {
      prefix: "full",
      labels: { "legation.dev/delegation": "all" },
      annotations: { "legation.dev/clusters": "west" },
      onFinished: afterFile,
    });
    const full = workload("Deployment", "full", { replicas: WEST_NODES }, { containers: [container(String(CORES))] });
    await applyAll(host, [full], ["-n", namespace]);
    await eventuallyPasses(
      async () => expect((await podsOf(client, namespace)).filter(inPhase("Running"))).toHaveLength(WEST_NODES),
      patient,
    );
  });

  test.each([
    ["default-scheduler", async () => ({ schedulerName: "default-scheduler", user: "system:kube-scheduler" })],
    [
      "a second one with a name and a user of its own",
      async () => {
        const second = await startSecondScheduler(host);
        onTestFinished(() => second.process.stop("SIGKILL"));
        return second;
      },
    ],
  ])("%s, preempts no delegated pod and nominates no virtual node", async (_which, scheduler) => {
    const { schedulerName, user } = await scheduler();
    const plain = await freshNamespace(host, { prefix: "agents" });
    const before = await uidsIn(namespace);
    const spec = (cpu: string): object => ({ schedulerName, ...EVERY_TAINT, containers: [container(cpu)] });
    const huge = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "huge", labels: { app: "huge" } },
      spec: spec("9"),
    };
    const agents = workload("DaemonSet", "agent", {}, spec("100m"));
    const light = workload("DaemonSet", "light", {}, { ...spec("0"), containers: [{ name: "main", image: "main:1" }] });
    await applyAll(host, [agents, light, huge], ["-n", plain]);
    // One for each member; those of the host's own nodes run.
    for (const [app, count] of [
      ["agent", 2],
      ["light", 2],
      ["huge", 1],
    ] as const) {
      const waiting = await unschedulable(plain, app);
      expect(waiting).toHaveLength(count);
      for (const { status } of waiting) expect(status?.nominatedNodeName).toBeUndefined();
    }
    expect(await uidsIn(namespace)).toEqual(before);
    const isPreemption = await auditEvents(host, (event) => event.user.username === user && isWrite(event), [
      namespace,
    ]);
    expect(isPreemption.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([]);
  });

  test("binds a pod that tolerates every taint to a node of the host, though virtual nodes have more room", async () => {
    const plain = await freshNamespace(host, { prefix: "anywhere" });
    const spec = { tolerations: [{ operator: "Exists" }], containers: [container("1")] };
    await applyAll(host, [workload("Deployment", "anywhere", { replicas: 6 }, spec)], ["-n", plain]);
    await eventuallyPasses(
      async () => expect((await podsOf(client, plain)).filter(inPhase("Running"))).toHaveLength(6),
      patient,
    );
  });

  test("leaves a deletion by kubectl, a drain and a scale-down as they are", async () => {
    const before = await uidsIn(namespace);
    const [first] = await podsOf(client, namespace);
    await client.delete(pods, { namespace, name: first?.metadata.name ?? "" });
    await eventuallyPasses(async () => {
      const running = (await podsOf(client, namespace)).filter(inPhase("Running"));
      expect(running).toHaveLength(WEST_NODES);
      expect(running.filter(({ metadata }) => !before.includes(metadata.uid))).toHaveLength(1);
    }, patient);
    await kubectl(host, ["-n", namespace, "scale", "deployment/full", "--replicas=1"]);
    await eventuallyPasses(async () => expect(await podsOf(client, namespace)).toHaveLength(1), patient);
    await kubectl(host, ["drain", NODE, "--ignore-daemonsets", "--timeout=60s", `--pod-selector=app=full`]);
    await kubectl(host, ["uncordon", NODE]);
  });
});
