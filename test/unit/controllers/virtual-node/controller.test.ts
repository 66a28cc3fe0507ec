import { afterEach, beforeEach, expect, test } from "vitest";
import { CLUSTER_FINALIZER, SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../../../src/api/keys.ts";
import { type RunningControllers, startControllers } from "../../../../src/controllers/start-controllers.ts";
import { controllersOf } from "../../../bench/scale/controllers.ts";
import { type Fleet, fleetOf } from "../../../bench/scale/fleet.ts";
import type { Json } from "../../../bench/scale/simulated-cluster.ts";
import { eventually } from "../../../support/harness/wait.ts";

const CLUSTER = "member-0";
const NODE = virtualNodeName(CLUSTER);
// Limits all waits of a test together.
const WAITS = { timeout: 90_000 };

let fleet: Fleet;
let controllers: RunningControllers | undefined;
/** Pods that were bound, in order. */
let bound: string[];

beforeEach(async () => {
  fleet = await fleetOf(1, 0);
  bound = [];
  fleet.host.onWrite = (_method, { name = "", subresource }) => {
    if (subresource === "binding") bound.push(name);
  };
});

afterEach(async () => {
  await controllers?.stop();
  controllers = undefined;
  await fleet.close();
});

async function start(): Promise<void> {
  controllers = await startControllers(controllersOf(fleet), new AbortController().signal);
}

function foreignNode(): Json {
  return { metadata: { name: NODE }, spec: { providerID: "kind://host/legation-member-0" }, status: {} };
}

function readyOf(cluster: string): { reason?: string; message?: string } | undefined {
  const status = fleet.host.get("clusters", "", cluster)?.status as
    | { conditions?: { reason?: string; message?: string }[] }
    | undefined;
  return status?.conditions?.[0];
}

function messageOf(pod: string): string {
  return JSON.stringify(fleet.host.get("pods", "load", pod)?.status ?? {});
}

test("gives a member without its node on the host no pod, with the reason, until the node exists", WAITS, async () => {
  fleet.host.put("nodes", foreignNode());
  await start();
  await eventually(() => readyOf(CLUSTER)?.reason === "NodeRefused", { intervalMs: 20, timeoutMs: 15_000 });
  expect(readyOf(CLUSTER)?.message).toContain('not Legation\'s (spec.providerID: "kind://host/legation-member-0")');
  fleet.host.put("pods", fleet.pod("early"));
  await eventually(() => messageOf("early").includes("the host has no virtual node for it"), { intervalMs: 20 });
  expect(bound).toEqual([]);
  fleet.host.erase("nodes", "", NODE);
  await eventually(() => bound.includes("early"), { intervalMs: 20, timeoutMs: 15_000 });
});

test("restores the label of a virtual node at once, which stays cordoned meanwhile", WAITS, async () => {
  await start();
  await eventually(() => fleet.host.get("nodes", "", NODE) !== undefined, { intervalMs: 20 });
  const node = fleet.host.get("nodes", "", NODE) ?? foreignNode();
  const { [VIRTUAL_NODE_LABEL]: _, ...labels } = node.metadata.labels as Record<string, string>;
  const spec = { ...(node.spec as object), unschedulable: true };
  fleet.host.put("nodes", { ...node, metadata: { ...node.metadata, labels }, spec });
  fleet.host.put("pods", fleet.pod("late"));
  await eventually(() => messageOf("late").includes("its virtual node is cordoned"), { intervalMs: 20 });
  expect(fleet.host.get("nodes", "", NODE)?.metadata).toMatchObject({
    uid: node.metadata.uid,
    labels: { [VIRTUAL_NODE_LABEL]: CLUSTER },
  });
  expect(bound).toEqual([]);
});

/** Creates a terminating Cluster without credentials before a controller leads. */
async function leaving(proxies: number): Promise<void> {
  await fleet.close();
  fleet = await fleetOf(1, proxies);
  await start();
  await eventually(() => fleet.host.get("nodes", "", NODE) !== undefined, { intervalMs: 20 });
  await controllers?.stop();
  markLeaving();
}

function markLeaving(): void {
  const cluster = fleet.host.get("clusters", "", CLUSTER) ?? foreignNode();
  const metadata = { ...cluster.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [CLUSTER_FINALIZER] };
  fleet.host.put("clusters", { ...cluster, metadata });
  fleet.host.erase("secrets", SYSTEM_NAMESPACE, `member-${CLUSTER}`);
}

function finalizersOf(cluster: string): unknown {
  return fleet.host.get("clusters", "", cluster)?.metadata.finalizers;
}

test(
  "keeps the node of a terminating Cluster while pods are bound to it, whichever controller leads",
  WAITS,
  async () => {
    await leaving(1);
    await start();
    const cordoned = (): unknown => fleet.host.get("nodes", "", NODE)?.spec;
    await expect.poll(cordoned, { timeout: 30_000 }).toMatchObject({ unschedulable: true });
    expect(finalizersOf(CLUSTER)).toEqual([CLUSTER_FINALIZER]);
  },
);

test(
  "lets a terminating Cluster go as soon as a new leader knows that no pod is bound to its node",
  WAITS,
  async () => {
    await leaving(0);
    const node = fleet.host.get("nodes", "", NODE);
    const changes: unknown[] = [];
    fleet.host.onChange = (method, { collection, subresource }, body) => {
      if (collection === "nodes" && method === "DELETE") changes.push(body);
      if (collection === "clusters" && subresource === undefined) changes.push(body);
    };
    await start();
    await eventually(() => fleet.host.get("nodes", "", NODE) === undefined, { intervalMs: 20 });
    await eventually(() => fleet.host.get("clusters", "", CLUSTER) === undefined, { intervalMs: 20 });
    // A recreated node stays, and so do later finalizers of the Cluster.
    expect(changes).toMatchObject([
      { preconditions: { uid: node?.metadata.uid } },
      { metadata: { finalizers: [], resourceVersion: expect.any(String) } },
    ]);
  },
);

test("counts members without credentials at the controller's start among the lost ones", WAITS, async () => {
  await fleet.close();
  fleet = await fleetOf(3, 0);
  const conditions = (index: number): { reason?: string }[] => {
    const status = fleet.host.get("nodes", "", virtualNodeName(`member-${index}`))?.status as object | undefined;
    return (status as { conditions?: { reason?: string }[] } | undefined)?.conditions ?? [];
  };
  const reasons = (): unknown[] => [0, 1, 2].map((index) => conditions(index)[0]?.reason);
  await start();
  await expect.poll(reasons, { timeout: 30_000 }).toEqual(Array(3).fill("MemberReady"));
  await expect.poll(() => fleet.host.get("clusters", "", "member-2")?.status).toHaveProperty("version");
  await controllers?.stop();
  for (const index of [0, 1, 2]) fleet.host.erase("secrets", SYSTEM_NAMESPACE, `member-member-${index}`);
  await start();
  await expect.poll(() => readyOf("member-0")?.reason, { timeout: 30_000 }).toBe("ProbeFailed");
  await expect.poll(reasons, { timeout: 30_000 }).toEqual(Array(3).fill("MostMembersUnreachable"));
});

test("restores a virtual node that is deleted while it is drained as cordoned and tainted", WAITS, async () => {
  await start();
  await expect.poll(() => readyOf(CLUSTER)?.reason, { timeout: 30_000 }).toBe("ProbeSucceeded");
  const node = fleet.host.get("nodes", "", NODE) ?? foreignNode();
  const taint = { key: "example.com/upkeep", effect: "NoSchedule" };
  const { taints = [], ...spec } = node.spec as { taints?: object[] };
  fleet.host.put("nodes", { ...node, spec: { ...spec, unschedulable: true, taints: [...taints, taint] } });
  fleet.host.put("pods", fleet.pod("late"));
  await expect.poll(() => messageOf("late"), { timeout: 30_000 }).toContain("example.com/upkeep");
  fleet.host.erase("nodes", "", NODE);
  await expect
    .poll(() => fleet.host.get("nodes", "", NODE)?.spec, { timeout: 30_000 })
    .toMatchObject({
      unschedulable: true,
      taints: [...taints, taint],
    });
  expect(bound).toEqual([]);
});

test(
  "keeps the node of a terminating Cluster that does not answer while it may have the delegate of an unbound pod",
  WAITS,
  async () => {
    const [member] = fleet.members;
    // The member's scheduler does not answer.
    if (member !== undefined) member.onPod = (pod) => pod;
    await start();
    await eventually(() => fleet.host.get("nodes", "", NODE) !== undefined, { intervalMs: 20 });
    fleet.host.put("pods", fleet.pod("waits"));
    await eventually(() => member?.get("pods", "load", "waits") !== undefined, { intervalMs: 20 });
    await controllers?.stop();
    markLeaving();
    await start();
    const told = (): string => JSON.stringify(fleet.host.get("clusters", "", CLUSTER)?.status ?? {});
    await eventually(() => told().includes("may start while it does not answer: 1"), { intervalMs: 20 });
    expect(finalizersOf(CLUSTER)).toEqual([CLUSTER_FINALIZER]);
    const node = fleet.host.get("nodes", "", NODE) ?? foreignNode();
    const taints = [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }];
    fleet.host.put("nodes", { ...node, spec: { ...(node.spec as object), taints } });
    await eventually(() => fleet.host.get("clusters", "", CLUSTER) === undefined, { intervalMs: 20 });
    await eventually(() => fleet.host.get("nodes", "", NODE) === undefined, { intervalMs: 20 });
  },
);
