import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { EXCLUDE_DISRUPTION_LABEL } from "../../../src/api/keys.ts";
import type { KubeNode, Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { nodes, pods } from "../../../src/kube/resources.ts";
import { conditionOf, isDeleting } from "../../../src/pods/pod-state.ts";
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
import { legation } from "../../support/legation/cli.ts";
import { startLegation } from "../../support/legation/start.ts";

const CORES = 8;
const WEST_NODES = 2;
const NODE = "legation-west";
const OTHER = "legation-east";
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
          "--node-monitor-grace-period=30s",
          "--node-eviction-rate=10",
        ],
      },
      west: { nodes: [{ count: WEST_NODES, cpu: String(CORES) }] },
      east: { nodes: [{ count: 1 }] },
    },
  });
  afterFile(() => clusters.stop());
  host = clusters.get("host");
  const running = await startLegation({ host, members: { west: clusters.get("west"), east: clusters.get("east") } });
  afterFile(() => running.stop());
  const probe = JSON.stringify({ spec: { probe: { periodSeconds: 2, timeoutSeconds: 4, failureThreshold: 2 } } });
  await kubectl(host, ["patch", "clusters.legation.dev", "west", "east", "--type=merge", `--patch=${probe}`]);
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

/** Returns the pods of a workload that wait for a virtual node, once a scheduler has found none that fits. */
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

describe("a scheduler of the host", () => {
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
      "a second scheduler with its own name and user",
      async () => {
        const second = await startSecondScheduler(host);
        onTestFinished(() => second.process.stop("SIGKILL"));
        return second;
      },
    ],
  ])(
    "preempts no delegated pod and nominates no full virtual node for pods that tolerate every taint: %s",
    async (_which, scheduler) => {
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
      const light = workload(
        "DaemonSet",
        "light",
        {},
        { ...spec("0"), containers: [{ name: "main", image: "main:1" }] },
      );
      await applyAll(host, [agents, light, huge], ["-n", plain]);
      // A pod per member stays Pending; those of the host's own nodes run.
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
    },
  );

  test("binds a pod that tolerates every taint to a node of the host, though virtual nodes have more room", async () => {
    const plain = await freshNamespace(host, { prefix: "anywhere" });
    const spec = { tolerations: [{ operator: "Exists" }], containers: [container("1")] };
    await applyAll(host, [workload("Deployment", "anywhere", { replicas: 6 }, spec)], ["-n", plain]);
    await eventuallyPasses(
      async () => expect((await podsOf(client, plain)).filter(inPhase("Running"))).toHaveLength(6),
      patient,
    );
  });

  test("does not undo a deletion by kubectl, a drain or a scale-down", async () => {
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

function readyOf({ status }: KubeNode): string | undefined {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status;
}

/** Waits for the condition Ready of these nodes. */
async function nodesAre(names: readonly string[], state: "True" | "Unknown"): Promise<void> {
  await eventually(
    async () => {
      const found = await Promise.all(names.map((name) => client.get(nodes, { name })));
      return found.every((node) => readyOf(node) === state);
    },
    { ...patient, what: `Ready ${state} of ${names.join(", ")}` },
  );
}

/** Waits until the node lifecycle controller has logged this more than `before` times. */
async function nodeControllerSays(words: string, before: number): Promise<void> {
  await eventually(() => timesSaid(words) > before, { ...patient, what: `"${words}"` });
}

function timesSaid(words: string): number {
  return readFileSync(join(host.directory, "kube-controller-manager.log"), "utf8").split(words).length - 1;
}

// Only its log shows that it stops evicting: the queue of the same pass may still taint one node.
const ENTERING = "Entering master disruption mode";
const EXITING = "Exiting master disruption mode";

/** A Deployment whose pods leave a lost node soon, or after five minutes. */
function web(replicas: number, tolerationSeconds = 300): object {
  const tolerations = ["unreachable", "not-ready"].map((state) => ({
    key: `node.kubernetes.io/${state}`,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds,
  }));
  return workload("Deployment", "web", { replicas }, { tolerations, containers: [container("100m")] });
}

async function ready(namespace: string, count: number): Promise<string[]> {
  await eventuallyPasses(
    async () => expect((await podsOf(client, namespace)).filter(inPhase("Running"))).toHaveLength(count),
    patient,
  );
  return uidsIn(namespace);
}

describe("the host's node lifecycle controller", () => {
  const OWN = ["host-node-1", "host-node-2"];

  test("evicts nothing when all of the host's own nodes are lost, though virtual nodes are Ready", async () => {
    const plain = await freshNamespace(host, { prefix: "own" });
    await applyAll(host, [web(4)], ["-n", plain]);
    const before = await ready(plain, 4);
    const said = timesSaid(ENTERING);
    onTestFinished(() => host.kwok.start());
    await host.kwok.stop("SIGKILL");
    await nodesAre(OWN, "Unknown");
    await nodesAre([NODE, OTHER], "True");
    await nodeControllerSays(ENTERING, said);
    const back = timesSaid(EXITING);
    await host.kwok.start();
    await nodesAre(OWN, "True");
    await nodeControllerSays(EXITING, back);
    expect(await uidsIn(plain)).toEqual(before);
  });

  test("evicts from the one lost member of several, with and without nodes of the host", async () => {
    const moves = async (): Promise<void> => {
      const delegated = await freshNamespace(host, { prefix: "moves", labels: { "legation.dev/delegation": "all" } });
      await applyAll(host, [web(2, 5)], ["-n", delegated]);
      await ready(delegated, 2);
      await clusters.get("west").proxy.cut();
      await nodesAre([NODE], "Unknown");
      await eventuallyPasses(async () => {
        const found = (await podsOf(client, delegated)).filter((pod) => inPhase("Running")(pod) && !isDeleting(pod));
        expect(found.map(({ spec }) => spec?.nodeName)).toEqual([OTHER, OTHER]);
      }, patient);
      await clusters.get("west").proxy.heal();
      await nodesAre([NODE], "True");
    };
    onTestFinished(() => clusters.get("west").proxy.heal());
    await moves();
    await host.kwok.stop();
    await Promise.all(OWN.map((name) => client.delete(nodes, { name })));
    await eventually(
      async () => !(EXCLUDE_DISRUPTION_LABEL in ((await client.get(nodes, { name: NODE })).metadata.labels ?? {})),
      {
        ...patient,
        what: `${NODE} counted`,
      },
    );
    await moves();
  });

  test("evicts nothing when the only member of a host without nodes of its own is lost", async () => {
    // The namespaces of the test before go with their pods; a member with pods does not leave.
    await eventuallyPasses(async () => {
      const { items } = await client.list(pods, { fieldSelector: `spec.nodeName=${OTHER}`, limit: 1 });
      expect(items).toEqual([]);
    }, patient);
    await legation([
      "unjoin",
      "east",
      `--kubeconfig=${host.kubeconfig}`,
      `--member-kubeconfig=${clusters.get("east").kubeconfig}`,
    ]);
    const delegated = await freshNamespace(host, { prefix: "only", labels: { "legation.dev/delegation": "all" } });
    await applyAll(host, [web(2)], ["-n", delegated]);
    const before = await ready(delegated, 2);
    const said = timesSaid(ENTERING);
    onTestFinished(() => clusters.get("west").proxy.heal());
    await clusters.get("west").proxy.cut();
    await nodesAre([NODE], "Unknown");
    await nodeControllerSays(ENTERING, said);
    await clusters.get("west").proxy.heal();
    await nodesAre([NODE], "True");
    expect(await uidsIn(delegated)).toEqual(before);
  });
});
