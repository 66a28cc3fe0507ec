import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import {
  CLUSTER_ANNOTATION,
  CLUSTERS_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  FAILOVER_ANNOTATION,
  HOST_LABEL,
} from "../../src/api/keys.ts";
import type { KubeNode, NodeCondition, Pod, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { leases, nodes, pods } from "../../src/kube/resources.ts";
import { conditionOf, isBound, isDeleting } from "../../src/pods/pod-state.ts";
import { auditEvents } from "../support/clusters/audit.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { watchPods } from "../support/delegated/histories.ts";
import { countPhases, delegatedPod, numbered } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podLives } from "../support/harness/pod-lives.ts";
import { inPhase, podGone, podOf, podsOf, podThat } from "../support/harness/pods-of.ts";
import { useQuickProbes } from "../support/harness/quick-probes.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

const clients = useClients();
const running = useLegation();
// A running controller removes what earlier files have left; what it finds when it connects counts as used for minutes.
beforeAll(async () => {
  await membersFree();
  await running().controller.stop();
  await running().controller.start();
  await running().whenAnswered();
});
useQuickProbes();

const west = memberCluster("west");
const east = memberCluster("east");
const NODE = "legation-west";
const OTHER = "legation-east";
const patient = { timeoutMs: 90_000, intervalMs: 200 };
let namespace: string;

const run = (...args: string[]): Promise<string> => kubectl(hostCluster(), args, { timeoutMs: 120_000 });

/**
 * Returns the namespaces of a member's pods. Removes the finalizer that the Job controller
 * may leave on a pod whose Job went with its namespace.
 */
async function busyNamespaces(client: ClusterClient): Promise<(string | undefined)[]> {
  const { items } = await client.list(pods);
  const finalizer = "batch.kubernetes.io/job-tracking";
  const forgotten = items.filter(
    ({ metadata }) =>
      metadata.labels?.[HOST_LABEL] === undefined &&
      metadata.deletionGracePeriodSeconds === 0 &&
      metadata.finalizers?.includes(finalizer) === true,
  );
  for (const { metadata } of forgotten) {
    const { namespace: from = "", name, uid } = metadata;
    const body = { metadata: { uid, finalizers: null } };
    await client.patch(pods, { namespace: from, name }, { type: "merge", body });
  }
  return items.map(({ metadata }) => metadata.namespace);
}

/** Waits until pods of earlier tests, which would draw new pods to the other member, are gone. */
function membersFree(): Promise<void> {
  return eventuallyPasses(async () => {
    const busy = await Promise.all([clients().west, clients().east].map(busyNamespaces));
    expect(busy.flat()).toEqual([]);
  }, patient);
}

beforeEach(async () => {
  await membersFree();
  const labels = { "legation.dev/delegation": "annotated" };
  namespace = await freshNamespace([hostCluster(), west, east], { prefix: "drain", labels });
});
afterEach(async () => {
  await west.apiServer.thaw();
  await Promise.all([west.proxy.heal(), east.proxy.heal()]);
  await run("uncordon", NODE);
  await Promise.all([NODE, OTHER].map((name) => nodeIs("True", "MemberReady", name)));
});

function node(name = NODE): Promise<Stored<KubeNode>> {
  return clients().host.get(nodes, { name });
}

function readyOf({ status }: KubeNode): NodeCondition | undefined {
  return status?.conditions?.find(({ type }) => type === "Ready");
}

function nodeIs(status: "True" | "Unknown", reason: string, name = NODE): Promise<Stored<KubeNode>> {
  return eventually(
    async () => {
      const found = await node(name);
      const ready = readyOf(found);
      return ready?.status === status && ready.reason === reason && found;
    },
    { ...patient, what: `Ready ${status} of ${name}, because ${reason}` },
  );
}

/** Returns the taints of both virtual nodes that evict pods. */
async function lostTaints(): Promise<string[]> {
  const found = await Promise.all([NODE, OTHER].map((name) => node(name)));
  return found
    .flatMap(({ spec }) => spec?.taints ?? [])
    .flatMap(({ key, effect }) => (effect === "NoExecute" ? key : []));
}

async function renewedAt(): Promise<string | undefined> {
  const lease = await clients().host.get(leases, { namespace: "kube-node-lease", name: NODE });
  return lease.spec?.renewTime;
}

async function create(names: readonly string[], annotations: Record<string, string> = {}): Promise<void> {
  await Promise.all(names.map((name) => clients().host.create(pods, delegatedPod(namespace, name, { annotations }))));
}

function deployment(replicas: number, tolerationSeconds?: number): string {
  const tolerations = ["not-ready", "unreachable"].map((state) => ({
    key: `node.kubernetes.io/${state}`,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds,
  }));
  return JSON.stringify({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", annotations: { "legation.dev/delegate": "true" } },
    spec: {
      replicas,
      selector: { matchLabels: { app: "web" } },
      template: {
        // A budget permits no eviction while one of them starts.
        metadata: { labels: { app: "web" }, annotations: { [KWOK_ANNOTATIONS.startsAfter]: "1s" } },
        spec: {
          containers: [{ name: "main", image: "web:1" }],
          ...(tolerationSeconds === undefined ? {} : { tolerations }),
        },
      },
    },
  });
}

async function rollOut(manifest: string): Promise<void> {
  await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: manifest });
  await run("-n", namespace, "rollout", "status", "deployment/web", "--timeout=90s");
}

function isReady(pod: Pod): boolean {
  return conditionOf(pod, "Ready")?.status === "True" && !isDeleting(pod);
}

/** Counts the ready pods of each node that are not being deleted. */
async function placed(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const pod of await podsOf(clients().host, namespace)) {
    const on = pod.spec?.nodeName ?? "none";
    if (isReady(pod)) counts[on] = (counts[on] ?? 0) + 1;
  }
  return counts;
}

describe("a virtual node", () => {
  test("gets no new pods while it is cordoned, and keeps those that it has", async () => {
    const { host } = clients();
    await create(numbered("before", 4));
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [NODE]: 2, [OTHER]: 2 }), patient);
    await run("cordon", NODE);
    await create(numbered("during", 4));
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [NODE]: 2, [OTHER]: 6 }), patient);
    await run("uncordon", NODE);
    await create(numbered("after", 4));
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [NODE]: 6, [OTHER]: 6 }), patient);
    expect(countPhases(await podsOf(host, namespace))).toEqual({ Running: 12 });
  });

  test("is drained as its PodDisruptionBudget allows, and its pods are replaced in the other member", async () => {
    const replicas = 3;
    const least = 2;
    onTestFinished(async () => void (await run("uncordon", OTHER)));
    await run("cordon", OTHER);
    await rollOut(deployment(replicas));
    expect(await placed()).toEqual({ [NODE]: replicas });
    await run("uncordon", OTHER);
    await run(
      "-n",
      namespace,
      "create",
      "poddisruptionbudget",
      "web",
      "--selector=app=web",
      `--min-available=${least}`,
    );
    await eventually(
      async () => (await run("-n", namespace, "get", "pdb", "web", "-o=jsonpath={.status.disruptionsAllowed}")) === "1",
      patient,
    );
    let fewest = replicas;
    const { stop } = await watchPods(clients().host, namespace, (all) => {
      fewest = Math.min(fewest, all.filter(isReady).length);
    });
    onTestFinished(stop);

    await run("drain", NODE, "--pod-selector=app=web", "--timeout=90s");
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [OTHER]: replicas }), patient);
    expect(fewest).toBe(least);
    const refused = await auditEvents(
      hostCluster(),
      ({ objectRef, responseStatus }) =>
        objectRef?.namespace === namespace && objectRef.subresource === "eviction" && responseStatus?.code === 429,
      [namespace],
    );
    expect(refused.length).toBeGreaterThan(0);
    await eventuallyPasses(async () => expect(await podsOf(clients().west, namespace)).toEqual([]), patient);
    expect((await node()).spec?.unschedulable).toBe(true);
  });
});

describe("a member that does not answer", () => {
  test("has its pods replaced in the other member after their tolerationSeconds, and leaves nothing when it returns", async () => {
    const { host, west: member } = clients();
    const replicas = 4;
    await rollOut(deployment(replicas, 5));
    const before = await podsOf(member, namespace);
    expect(before.length).toBeGreaterThan(0);
    const tolerations = ["not-ready", "unreachable"].map((state) => ({
      key: `node.kubernetes.io/${state}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 2,
    }));
    const annotations = { [CLUSTERS_ANNOTATION]: "west", [FAILOVER_ANNOTATION]: "never" };
    const { metadata: stays } = await host.create(
      pods,
      delegatedPod(namespace, "stays", { annotations, spec: { tolerations } }),
    );
    await podThat(host, namespace, "stays", isReady, patient);

    await west.proxy.cut();
    await nodeIs("Unknown", "MemberUnreachable");
    const lastRenewal = await renewedAt();
    // Controllers that count ready pods no longer count these.
    await podThat(host, namespace, "stays", (pod) => !isReady(pod), patient);
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [OTHER]: replicas }), patient);
    // These pods may still run there, so they stay, as on a lost node.
    const left = (await podsOf(host, namespace)).filter(isDeleting);
    expect(left.map(({ metadata }) => metadata.name)).toEqual(before.map(({ metadata }) => metadata.name));
    expect(await podsOf(member, namespace)).toHaveLength(before.length + 1);
    expect(await renewedAt()).toBe(lastRenewal);

    await west.proxy.heal();
    const back = await nodeIs("True", "MemberReady");
    expect(back.status?.conditions).toHaveLength(1);
    await eventually(async () => (await renewedAt()) !== lastRenewal, patient);
    await eventuallyPasses(async () => {
      expect((await podsOf(member, namespace)).map(({ metadata }) => metadata.name)).toEqual(["stays"]);
      expect(await podsOf(host, namespace)).toHaveLength(replicas + 1);
      expect((await node()).spec?.taints?.filter(({ key }) => key.startsWith("node.kubernetes.io/"))).toEqual([]);
    }, patient);
    expect(await placed()).toEqual({ [OTHER]: replicas, [NODE]: 1 });
    expect((await podOf(host, namespace, "stays"))?.metadata.uid).toBe(stays.uid);
  });

  test("has pods that were created while it hung replaced by their controllers in the other member", async () => {
    const { host, west: member } = clients();
    const replicas = 20;
    const staying = { [CLUSTERS_ANNOTATION]: "west", [FAILOVER_ANNOTATION]: "never" };
    await create(["runs"], staying);
    await podThat(host, namespace, "runs", isReady, patient);
    const { histories, stop } = await watchPods(host, namespace);
    onTestFinished(stop);

    await west.apiServer.freeze();
    // The create reaches west and is never answered.
    await create(["stays"], staying);
    await kubectl(hostCluster(), ["-n", namespace, "apply", "-f", "-"], { input: deployment(replicas, 5) });
    const lost = await podThat(host, namespace, "stays", isBound, patient);
    expect(lost.spec?.nodeName).toBe(NODE);
    expect(lost.metadata.annotations).toMatchObject({ [CLUSTER_ANNOTATION]: "west" });
    expect(lost.metadata.annotations).not.toHaveProperty(DELEGATE_UID_ANNOTATION);
    await eventuallyPasses(async () => expect(await placed()).toEqual({ [OTHER]: replicas }), patient);
    const left = await podsOf(host, namespace);
    const inDoubt = [...histories.values()].filter(({ node: name, phases }) => name === NODE && phases.length < 2);
    expect(inDoubt.length).toBeLessThanOrEqual(5);
    expect(left.find(({ metadata }) => metadata.name === "stays")?.status?.phase).toBe("Pending");
    expect(isReady(lost)).toBe(false);
    const said = await run("-n", namespace, "get", "events", "--field-selector=reason=BoundToLostMember", "-o=name");
    expect(said).not.toBe("");

    await west.apiServer.thaw();
    const back = await podThat(host, namespace, "stays", isReady, patient);
    expect(back.metadata.uid).toBe(lost.metadata.uid);
    await eventuallyPasses(async () => {
      expect((await podsOf(member, namespace)).map(({ metadata }) => metadata.name)).toEqual(["runs", "stays"]);
      expect(await podsOf(host, namespace)).toHaveLength(replicas + 2);
    }, patient);
    expect(await placed()).toEqual({ [OTHER]: replicas, [NODE]: 2 });
    const lives = (await Promise.all([west, east].map((each) => podLives(each, namespace)))).flat();
    const names = lives.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
  });

  test("is not Ready while its pods cannot be read, even for a new controller and although its API server answers", async () => {
    const { west: member } = clients();
    const [role = ""] = (await kubectl(west, ["get", "clusterroles", "-l", HOST_LABEL, "-o", "name"]))
      .trim()
      .split("\n");
    const { rules } = JSON.parse(await kubectl(west, ["get", role, "-o", "json"]));
    const set = (next: readonly object[]): Promise<string> =>
      kubectl(west, ["patch", role, "--type=merge", "-p", JSON.stringify({ rules: next })]);
    await create(["stays"], { [CLUSTERS_ANNOTATION]: "west" });
    await podThat(clients().host, namespace, "stays", isReady, patient);
    const reads = ({ resources = [] }: { resources?: readonly string[] }): boolean => resources.includes("pods");
    expect(rules.filter(reads)).not.toEqual([]);
    await set(rules.filter((rule: object) => !reads(rule)));
    try {
      await west.proxy.cut();
      await west.proxy.heal();
      // Connections that were cut may be the first reason.
      await eventuallyPasses(async () => {
        const lost = await nodeIs("Unknown", "MemberUnreachable");
        expect(readyOf(lost)?.message).toMatch(/^its pods cannot be read: pods is forbidden/);
      }, patient);
      await running().controller.stop();
      const conditions = [
        {
          type: "Ready",
          status: "True",
          reason: "ProbeSucceeded",
          message: "of before",
          lastTransitionTime: new Date(),
        },
      ];
      const status = ["--subresource=status", "--type=merge", "-p", JSON.stringify({ status: { conditions } })];
      await run("patch", "clusters.legation.dev", "west", ...status);
      await running().controller.start();
      const cluster = ["get", "clusters.legation.dev", "west", "-o", "jsonpath={.status.conditions[0].message}"];
      const since = await renewedAt();
      await eventuallyPasses(async () => expect(await run(...cluster)).toMatch(/^its pods cannot be read/), patient);
      expect(readyOf(await node())?.status).toBe("Unknown");
      expect(await renewedAt()).toBe(since);
    } finally {
      await set(rules);
    }
    await nodeIs("True", "MemberReady");
    await podThat(clients().host, namespace, "stays", isReady, patient);
    expect(await podsOf(member, namespace)).toHaveLength(1);
  });

  test("holds deleted pods until they are forced or it is out of service, and ends their delegates when it returns", async () => {
    const { host, west: member } = clients();
    const names = ["forced", "released"];
    await create(names, { [CLUSTERS_ANNOTATION]: "west" });
    await Promise.all(names.map((name) => podThat(host, namespace, name, inPhase("Running"), patient)));
    await west.proxy.blackhole();
    await nodeIs("Unknown", "MemberUnreachable");

    await run("-n", namespace, "delete", "pod", ...names, "--wait=false");
    await Promise.all(names.map((name) => podThat(host, namespace, name, isDeleting, patient)));
    await run("-n", namespace, "delete", "pod", "forced", "--force", "--grace-period=0");
    await podGone(host, namespace, "forced");
    expect(await podOf(host, namespace, "released")).toBeDefined();

    const taint = "node.kubernetes.io/out-of-service";
    onTestFinished(async () => void (await run("taint", "node", NODE, `${taint}-`)));
    await run("taint", "node", NODE, `${taint}=gone:NoExecute`);
    await podGone(host, namespace, "released", undefined, patient);
    expect(await podsOf(member, namespace)).toHaveLength(names.length);

    await west.proxy.heal();
    await eventuallyPasses(async () => expect(await podsOf(member, namespace)).toEqual([]), patient);
  });

  test("evicts nothing if all other members are lost as well, and all pods go on when they return", async () => {
    const { host } = clients();
    const replicas = 4;
    // Members are lost one after the other: until the last one is, the nodes of the first have taints.
    await rollOut(deployment(replicas, 20));
    const uids = async (): Promise<string[]> => (await podsOf(host, namespace)).map(({ metadata }) => metadata.uid);
    const before = await uids();

    await Promise.all([west.proxy.cut(), east.proxy.cut()]);
    for (const name of [NODE, OTHER]) {
      const spared = await nodeIs("True", "MostMembersUnreachable", name);
      expect(readyOf(spared)?.message).toBe(
        "2 of 2 members do not answer, so the trouble is probably here: nothing is evicted for it",
      );
    }
    const found = await run("get", "clusters.legation.dev", "-o=jsonpath={.items[*].status.conditions[0].status}");
    expect(found).toBe("False False");
    // Without the taints of a lost node nothing evicts them, however long it takes.
    await eventuallyPasses(async () => expect(await lostTaints()).toEqual([]), patient);
    await sleep(10_000);
    expect(await lostTaints()).toEqual([]);
    expect(await uids()).toEqual(before);
    expect((await podsOf(host, namespace)).filter(isDeleting)).toEqual([]);

    await Promise.all([west.proxy.heal(), east.proxy.heal()]);
    await Promise.all([NODE, OTHER].map((name) => nodeIs("True", "MemberReady", name)));
    await eventuallyPasses(async () => expect((await podsOf(host, namespace)).filter(isReady)).toHaveLength(replicas));
    expect(await uids()).toEqual(before);
  });
});
