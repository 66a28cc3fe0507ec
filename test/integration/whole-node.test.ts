import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { KubeObject, Pod, PodCondition, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { nodes, pods } from "../../src/kube/resources.ts";
import { podRequests } from "../../src/placement/requests.ts";
import { isTerminal } from "../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { createKwokNodes } from "../support/clusters/nodes.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { condition } from "../support/harness/at-rest.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { readState } from "../support/harness/final-state.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { overlaps, type PodLife, podLives } from "../support/harness/pod-lives.ts";
import { inPhase, podsOf, podThat } from "../support/harness/pods-of.ts";
import { scheduleTimeout } from "../support/harness/schedule-timeout.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { createIn } from "../support/harness/workloads.ts";

useLegation();
const clients = useClients();
const members = ["west", "east"] as const;
const running = inPhase("Running");

// Each member has its three nodes and one more: eight nodes of 64 cores. No two pods of 60 share one, and
// small pods of earlier files do not matter.
const CORES = "60";
const NODE_CORES = "64";
const NODES = 8;

beforeAll(async () => {
  for (const name of members) {
    const member = memberCluster(name);
    await createKwokNodes(member, `${name}-more`, [{ count: 1, cpu: NODE_CORES }]);
    await eventuallyPasses(() => allFree(clients()[name]), { timeoutMs: 90_000, what: `free nodes in ${name}` });
  }
  await eventually(
    async () => {
      const found = await Promise.all(members.map((name) => clients().host.get(nodes, { name: `legation-${name}` })));
      return found.every(({ status }) => status?.allocatable?.cpu === "256");
    },
    { timeoutMs: 90_000, what: "four nodes in each virtual node" },
  );
});

afterAll(async () => {
  // Restores the nodes that later files expect; nothing runs here any more.
  await Promise.all(members.map((name) => clients()[name].delete(nodes, { name: `${name}-more-node-1` })));
});

/** Passes when four nodes are ready, and no large pod of an earlier file is left. */
async function allFree(client: ClusterClient): Promise<void> {
  const [{ items: left }, { items: all }] = await Promise.all([client.list(pods), client.list(nodes)]);
  const ready = all.filter(({ status }) =>
    status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"),
  );
  expect(ready).toHaveLength(NODES / members.length);
  const users = left.filter((pod: Pod) => !isTerminal(pod) && (podRequests(pod).cpu ?? 0) > 1);
  expect(users.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual([]);
}

function optedIn(): Promise<string> {
  return freshNamespace(hostCluster(), { prefix: "whole", labels: { "legation.dev/delegation": "all" } });
}

function wholeNode(namespace: string, name: string, annotations: Readonly<Record<string, string>> = {}): Pod {
  const main = { name: "main", image: "main:1", resources: { requests: { cpu: CORES } } };
  const spec = { containers: [main], restartPolicy: "Never" };
  return { apiVersion: "v1", kind: "Pod", metadata: { namespace, name, annotations: { ...annotations } }, spec };
}

async function runningIn(namespace: string): Promise<Stored<Pod>[]> {
  return (await podsOf(clients().host, namespace)).filter(running);
}

/** Returns the nodes of all delegates, with duplicates. */
async function nodesUsed(namespace: string): Promise<string[]> {
  const delegates = await Promise.all(members.map((name) => podsOf(clients()[name], namespace)));
  return delegates.flat().map(({ spec }) => spec?.nodeName ?? "none");
}

/** Waits until every one of these pods runs, and no two of them share a node. */
async function allRun(namespace: string, count: number, timeoutMs = 60_000): Promise<void> {
  await eventuallyPasses(
    async () => {
      expect(await runningIn(namespace)).toHaveLength(count);
      const used = await nodesUsed(namespace);
      expect(used).toHaveLength(count);
      expect(new Set(used).size).toBe(count);
    },
    { timeoutMs, what: `${count} of ${count} running` },
  );
}

/** Deletes the namespace's pods, and waits until they are gone from the members. */
async function vacate(namespace: string): Promise<void> {
  await clients().host.raw({ method: "DELETE", path: `/api/v1/namespaces/${namespace}/pods` });
  await eventually(async () => (await nodesUsed(namespace)).length === 0, { what: `free nodes after ${namespace}` });
}

const names = Array.from({ length: NODES }, (_, index) => `whole-${index}`);

describe("whole-node pods", () => {
  test("all run, each on its own node, when as many as there are free nodes are created at once", async () => {
    const namespace = await optedIn();
    await Promise.all(names.map((name) => clients().host.create(pods, wholeNode(namespace, name))));
    await allRun(namespace, NODES);
    const lives = (await Promise.all(members.map((name) => podLives(memberCluster(name), namespace)))).flat();
    // None was moved: pods on their way count as used room.
    expect(lives).toHaveLength(NODES);
    await vacate(namespace);
  });

  test("wait with the reason if there are more than nodes, and run one by one as nodes get free in any member", async () => {
    const namespace = await optedIn();
    await Promise.all(names.map((name) => clients().host.create(pods, wholeNode(namespace, name))));
    await allRun(namespace, NODES);
    // The schedulers get just the time to answer that no node is free.
    const restore = await scheduleTimeout(clients().host, 2);
    try {
      const late = ["late-0", "late-1", "late-2"];
      await Promise.all(late.map((name) => clients().host.create(pods, wholeNode(namespace, name))));
      for (const name of late) {
        const waiting = await podThat(clients().host, namespace, name, (pod) => placed(pod)?.status === "False");
        expect(placed(waiting)?.message).toMatch(/east: .*; west: /);
      }
      // All free nodes are in the member where fewer wait: only Legation can tell the others.
      const parked = await eventually(async () => {
        const found = await parkedIn(namespace);
        return found.length === late.length ? found : undefined;
      });
      // From now on there is a node for each, if the scheduler has the time.
      await scheduleTimeout(clients().host, 6);
      const freed = parked.filter((name) => name === "west").length < 2 ? "west" : "east";
      const occupants = (await runningIn(namespace)).filter(({ spec }) => spec?.nodeName === `legation-${freed}`);
      for (const [index, { metadata }] of occupants.slice(0, late.length).entries()) {
        await clients().host.delete(pods, { namespace, name: metadata.name });
        await eventually(async () => lateOf(await runningIn(namespace)).length === index + 1, {
          // By then another member would be tried without any news.
          timeoutMs: 25_000,
          what: `${index + 1} of the late pods running`,
        });
        await eventually(async () => (await parkedIn(namespace)).length === late.length - index - 1);
      }
      await allRun(namespace, NODES);
      const lives = (await Promise.all(members.map((name) => podLives(memberCluster(name), namespace)))).flat();
      expect(overlaps(lives)).toEqual([]);
      // A free node is for one pod: the others stay where they wait.
      expect(lateLives(lives).length).toBeLessThanOrEqual(2 * late.length);
      await vacate(namespace);
    } finally {
      await restore();
    }
  });

  test("find the free nodes of a member when pods that are not Legation's use another's", async () => {
    const namespace = await optedIn();
    const restore = await scheduleTimeout(clients().host, 4);
    try {
      // Two of east's nodes are partly used, which the sum of its cores does not show.
      const others = ["other-0", "other-1"];
      const taken = await freshNamespace(memberCluster("east"), { prefix: "taken" });
      for (const [index, name] of others.entries()) {
        const pod = wholeNode(taken, name);
        const spec = { containers: [], ...pod.spec, nodeName: `east-node-${index + 1}` };
        await clients().east.create(pods, { ...pod, spec });
      }
      const six = names.slice(0, 6);
      await Promise.all(six.map((name) => clients().host.create(pods, wholeNode(namespace, name))));
      await allRun(namespace, six.length);
      const lives = (await Promise.all(members.map((name) => podLives(memberCluster(name), namespace)))).flat();
      expect(overlaps(lives)).toEqual([]);
      await vacate(namespace);
      await Promise.all(others.map((name) => clients().east.delete(pods, { namespace: taken, name })));
    } finally {
      await restore();
    }
  });

  test("of a Job run until each has had a node, even if there are more pods than nodes", async () => {
    const namespace = await optedIn();
    const ends = { [KWOK_ANNOTATIONS.outcome]: "succeeded", [KWOK_ANNOTATIONS.endsAfter]: "500ms" };
    const { spec } = wholeNode(namespace, "work");
    const job: KubeObject & { readonly spec: object } = {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "work" },
      spec: { completions: 12, parallelism: 12, template: { metadata: { annotations: ends }, spec } },
    };
    await createIn(clients().host, namespace, [job]);
    await eventually(async () => condition("Complete")(await readState(clients().host, namespace)), {
      timeoutMs: 90_000,
      what: "end of the Job",
    });
    await vacate(namespace);
  });
});

test("preempts for a pod of high priority in the one full member where this host's pods have a lower one", async () => {
  const namespace = await optedIn();
  const { host } = clients();
  const priority = `${namespace}-high`;
  const path = "/apis/scheduling.k8s.io/v1/priorityclasses";
  const body = { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name: priority }, value: 1000 };
  const everywhere = [host, clients().west, clients().east];
  await Promise.all(everywhere.map((client) => client.raw({ method: "POST", path, body })));
  onTestFinished(async () => {
    await Promise.all(everywhere.map((client) => client.raw({ method: "DELETE", path: `${path}/${priority}` })));
  });
  const pod = (name: string, clusters: string, isHigh: boolean): Pod => {
    const made = wholeNode(namespace, name, { "legation.dev/clusters": clusters });
    const spec = { containers: [], ...made.spec, ...(isHigh ? { priorityClassName: priority } : {}) };
    return { ...made, spec };
  };
  // East comes first by its name, and has no pod to preempt.
  const four = names.slice(0, 4);
  await Promise.all([
    ...four.map((name) => host.create(pods, pod(`high-${name}`, "east", true))),
    ...four.map((name) => host.create(pods, pod(`low-${name}`, "west", false))),
  ]);
  await allRun(namespace, NODES);
  await host.create(pods, pod("urgent", "east,west", true));
  const urgent = await podThat(host, namespace, "urgent", running, { timeoutMs: 60_000, intervalMs: 200 });
  expect(urgent.spec?.nodeName).toBe("legation-west");
  const lives = await podLives(memberCluster("east"), namespace);
  expect(lives.map(({ name }) => name).filter((name) => name === "urgent")).toEqual([]);
  // A scheduler that made room leaves this: a pod of lower priority is gone, or has ended for that reason.
  const left = (await runningIn(namespace)).filter(({ metadata }) => metadata.name.startsWith("low-"));
  expect(left).toHaveLength(3);
  await vacate(namespace);
});

/** Returns the member of each delegate that waits for a node. */
async function parkedIn(namespace: string): Promise<string[]> {
  const found = members.map(async (name) => {
    const delegates = await podsOf(clients()[name], namespace);
    return delegates.filter(({ spec }) => spec?.nodeName === undefined).map(() => name);
  });
  return (await Promise.all(found)).flat();
}

function lateOf(all: readonly Stored<Pod>[]): Stored<Pod>[] {
  return all.filter(({ metadata }) => metadata.name.startsWith("late-"));
}

function lateLives(lives: readonly PodLife[]): PodLife[] {
  return lives.filter(({ name }) => name.startsWith("late-"));
}

function placed(pod: Pod): PodCondition | undefined {
  return whyNotPlaced(pod);
}
