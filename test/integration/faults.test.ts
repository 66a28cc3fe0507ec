import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CLUSTERS_ANNOTATION, DELEGATE_UID_ANNOTATION } from "../../src/api/keys.ts";
import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import { pods } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { conditionOf } from "../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { type PodHistories, watchPods } from "../support/delegated/histories.ts";
import { countPhases, delegatedPod, numbered } from "../support/delegated/pods.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podLives } from "../support/harness/pod-lives.ts";
import { inPhase, podGone, podsOf, podThat } from "../support/harness/pods-of.ts";
import { useQuickProbes } from "../support/harness/quick-probes.ts";
import { scheduleTimeout } from "../support/harness/schedule-timeout.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { createIn, type Workload } from "../support/harness/workloads.ts";

const legation = useLegation();
const clients = useClients();

const west = memberCluster("west");
const east = memberCluster("east");
const patient = { timeoutMs: 90_000, intervalMs: 250 };
const labels = { "legation.dev/delegation": "annotated" };
let namespace: string;

beforeEach(async () => {
  namespace = await freshNamespace([hostCluster(), west, east], { prefix: "faults", labels });
});

/** Creates pods as fast as the host accepts them. */
async function burst(names: readonly string[]): Promise<void> {
  const left = names.values();
  // Batches: a request that waits too long for a slot of the client fails.
  const create = async (): Promise<void> => {
    for (const name of left) await eventuallyPasses(() => createOnce(name), patient);
  };
  await Promise.all(Array.from({ length: 16 }, create));
}

/** Creates a pod like a workload's controller, which tries again where a busy webhook did not answer in time. */
async function createOnce(name: string): Promise<void> {
  try {
    await clients().host.create(pods, delegatedPod(namespace, name));
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists")) throw error;
  }
}

async function allRun(count: number): Promise<void> {
  await eventuallyPasses(async () => {
    expect(countPhases(await podsOf(clients().host, namespace))).toEqual({ Running: count });
  }, patient);
}

/** Returns the sorted milliseconds from creation to running of the pods on a node. */
function times(histories: PodHistories, node: string): number[] {
  return [...histories.values()]
    .filter((history) => history.node === node)
    .flatMap(({ phases }) => {
      const running = phases.find(({ phase }) => phase === "Running");
      return running === undefined ? [] : [running.at - (phases[0]?.at ?? 0)];
    })
    .sort((a, b) => a - b);
}

function spread(sorted: readonly number[]): { readonly half: number; readonly all: number } {
  return { half: sorted[Math.floor(sorted.length / 2)] ?? 0, all: sorted.at(-1) ?? 0 };
}

/** Reports whether the proxy is bound to the member, or says that the member may have it. */
function waitsFor(proxy: Pod, member: string): boolean {
  if (proxy.spec?.nodeName === `legation-${member}`) return true;
  const { reason, message = "" } = whyNotPlaced(proxy) ?? {};
  return reason === "ClusterNotReady" && message.startsWith(`${member}:`);
}

/** Expects exactly one running delegate per proxy, and never two at one moment. */
async function expectOneEach(proxies: readonly Stored<Pod>[]): Promise<void> {
  await eventuallyPasses(async () => {
    const delegates = (await Promise.all([clients().west, clients().east].map((c) => podsOf(c, namespace)))).flat();
    expect(delegates.map((delegate) => ownerOf(delegate)?.uid).sort()).toEqual(
      proxies.map(({ metadata }) => metadata.uid).sort(),
    );
    expect(countPhases(delegates)).toEqual({ Running: proxies.length });
  }, patient);
  // None was ever deleted: a pod that may run in one member never runs in another.
  const lives = (await Promise.all([west, east].map((member) => podLives(member, namespace)))).flat();
  expect(lives.filter(({ until }) => until !== undefined)).toEqual([]);
}

/** Waits for the Cluster's condition Ready. */
async function clusterIs(name: string, status: "True" | "False"): Promise<void> {
  await eventually(async () => {
    const cluster = await clients().host.get(clusters, { name });
    return cluster.status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === status);
  }, patient);
}

describe("a burst of pods", () => {
  const COUNT = 200;
  /** Milliseconds until pods in east run. */
  let undisturbed: { readonly half: number; readonly all: number };

  beforeAll(async () => {
    namespace = await freshNamespace([hostCluster(), west, east], { prefix: "faults", labels, onFinished: afterFile });
    const { histories, stop } = await watchPods(clients().host, namespace);
    await burst(numbered("pod", COUNT));
    await allRun(COUNT);
    await stop();
    undisturbed = spread(times(histories, "legation-east"));
  });

  test.each([
    {
      how: "stopped and started again",
      breakIt: () => west.apiServer.stop(),
      mendIt: () => west.apiServer.start(),
    },
    {
      how: "frozen, killed and started again",
      breakIt: () => west.apiServer.freeze(),
      mendIt: () => west.apiServer.restart(),
    },
  ])("goes on in one member while the other's API server is $how", async ({ breakIt, mendIt }) => {
    const { host } = clients();
    // On a busy machine, the member's scheduler may return too late for pods that it had not seen.
    onTestFinished(await scheduleTimeout(host, 600));
    const { histories, stop } = await watchPods(host, namespace);
    onTestFinished(stop);
    const names = numbered("pod", COUNT);
    await burst(names.slice(0, COUNT / 4));
    const rest = burst(names.slice(COUNT / 4));
    try {
      await breakIt();
      await rest;
      await eventuallyPasses(async () => {
        const waiting = (await podsOf(host, namespace)).filter(({ status }) => status?.phase !== "Running");
        // Only pods that west has, or may have, wait for it.
        expect(waiting.filter((proxy) => !waitsFor(proxy, "west")).map(({ metadata }) => metadata.name)).toEqual([]);
        expect(waiting.length).toBeLessThan(COUNT / 2);
      }, patient);
    } finally {
      await mendIt();
      // Shortens the controller manager's own backoff.
      await west.controllerManager.restart();
    }
    const { half, all } = spread(times(histories, "legation-east"));
    // East gets more pods than without the fault, up to all.
    expect(half).toBeLessThan(3_000 + 3 * undisturbed.half);
    expect(all).toBeLessThan(10_000 + 3 * undisturbed.all);

    await allRun(COUNT);
    const proxies = await podsOf(host, namespace);
    expect(histories.size).toBe(COUNT);
    await expectOneEach(proxies);
  });
});

describe("a member that is declared lost soon", () => {
  useQuickProbes();

  test("catches up with changes on both sides after it was cut off and its watches expired", async () => {
    const { host, west: member } = clients();
    const annotations = { [CLUSTERS_ANNOTATION]: "west" };
    const names = ["stays", "ends", "vanishes", "leaves", "changes"];
    await Promise.all(names.map((name) => host.create(pods, delegatedPod(namespace, name, { annotations }))));
    await allRun(names.length);
    const stays = await podThat(member, namespace, "stays", inPhase("Running"));
    const seen = legation().controller.log().length;

    try {
      await west.proxy.cut();
      await clusterIs("west", "False");
      const ended = { phase: "Succeeded", containerStatuses: [endedContainer()] };
      const write = { type: "merge", body: { status: ended } } as const;
      await member.patch(pods, { namespace, name: "ends" }, write, { subresource: "status" });
      await member.delete(pods, { namespace, name: "vanishes" }, { gracePeriodSeconds: 0 });
      await host.delete(pods, { namespace, name: "leaves" });
      const labelled = { type: "merge", body: { metadata: { labels: { tier: "gold" } } } } as const;
      await host.patch(pods, { namespace, name: "changes" }, labelled);
      await host.create(pods, delegatedPod(namespace, "comes", { annotations }));
      await podThat(host, namespace, "comes", (pod) => whyNotPlaced(pod) !== undefined, patient);
      // The restarted API server's watch cache begins anew: a watch from an older version must list again.
      await west.apiServer.restart();
      await west.controllerManager.restart();
    } finally {
      await west.proxy.heal();
    }

    await podThat(host, namespace, "ends", inPhase("Succeeded"), patient);
    const vanished = await podThat(host, namespace, "vanishes", inPhase("Failed"), patient);
    expect(conditionOf(vanished, "DisruptionTarget")?.reason).toBe("DeletedInMember");
    await Promise.all([host, member].map((client) => podGone(client, namespace, "leaves", undefined, patient)));
    await podThat(member, namespace, "changes", ({ metadata }) => metadata.labels?.tier === "gold", patient);
    await podThat(host, namespace, "comes", inPhase("Running"), patient);
    const still = await podThat(host, namespace, "stays", inPhase("Running"));
    expect(still.metadata.annotations?.[DELEGATE_UID_ANNOTATION]).toBe(stays.metadata.uid);
    expect(legation().controller.log().slice(seen)).toContain('"code":"Gone"');
  });

  test("loses pods that were gated while the controller started to another member, or to their deletion, at once", async () => {
    const { host } = clients();
    const spec = { schedulingGates: [{ name: "example.com/quota" }] };
    for (const name of ["goes", "leaves"]) await host.create(pods, delegatedPod(namespace, name, { spec }));
    try {
      await west.proxy.cut();
      await legation().controller.stop();
      await legation().controller.start();
      await clusterIs("west", "False");
      const ungated = { type: "merge", body: { spec: { schedulingGates: [] } } } as const;
      await host.patch(pods, { namespace, name: "goes" }, ungated);
      const placed = await podThat(host, namespace, "goes", inPhase("Running"), patient);
      expect(placed.spec?.nodeName).toBe("legation-east");
      await host.delete(pods, { namespace, name: "leaves" });
      await podGone(host, namespace, "leaves", undefined, patient);
    } finally {
      await west.proxy.heal();
    }
  });

  test("has delegates whose create was never answered found when it answers again", async () => {
    const { host } = clients();
    // Both get their share of the first pods: later requests need open connections.
    await Promise.all(["west", "east"].map((name) => clusterIs(name, "True")));
    const first = numbered("first", 20);
    await burst(first);
    await allRun(first.length);
    const second = numbered("second", 20);
    try {
      // Open connections take requests, and new ones are never opened.
      await west.proxy.deaf("answers");
      await burst(second);
      await eventually(async () => {
        const waiting = (await podsOf(host, namespace)).filter(({ status }) => status?.phase !== "Running");
        const made = await podsOf(clients().west, namespace);
        return waiting.some((proxy) => made.some((delegate) => ownerOf(delegate)?.uid === proxy.metadata.uid));
      }, patient);
      await eventuallyPasses(async () => {
        const waiting = (await podsOf(host, namespace)).filter(({ status }) => status?.phase !== "Running");
        expect(waiting.filter((proxy) => !waitsFor(proxy, "west"))).toEqual([]);
      }, patient);
    } finally {
      await west.proxy.heal();
    }
    await allRun(first.length + second.length);
    await expectOneEach(await podsOf(host, namespace));
  });

  test("loses pods of a Job whose create it was never sent to another member", async () => {
    const { host, east: other } = clients();
    const COUNT = 20;
    const { metadata, spec } = delegatedPod(namespace, "task");
    const template = { metadata: { annotations: metadata?.annotations }, spec: { ...spec, restartPolicy: "Never" } };
    const job: Workload = {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "task" },
      spec: { parallelism: COUNT, completions: COUNT, template },
    };
    await Promise.all(["west", "east"].map((name) => clusterIs(name, "True")));
    try {
      // Legation asks a member for the namespace before it creates the first delegate there.
      await west.proxy.deaf("requests");
      await createIn(host, namespace, [job]);
      await allRun(COUNT);
      expect(await podsOf(other, namespace)).toHaveLength(COUNT);
    } finally {
      await west.proxy.heal();
    }
    await expectOneEach(await podsOf(host, namespace));
  });
});

function endedContainer(): object {
  const at = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const terminated = { exitCode: 0, reason: "Completed", startedAt: at, finishedAt: at };
  return { name: "main", image: "work:1", imageID: "", ready: false, restartCount: 0, state: { terminated } };
}
