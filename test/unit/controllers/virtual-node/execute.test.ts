import { afterEach, beforeEach, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { CLUSTER_FINALIZER, VIRTUAL_NODE_LABEL } from "../../../../src/api/keys.ts";
import type { KubeNode, Pod, PodStatus, Stored } from "../../../../src/api/kubernetes.ts";
import { ALL_NAMESPACES } from "../../../../src/api/shards.ts";
import type { KubeletEndpoint } from "../../../../src/api/virtual-node.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { VirtualNodeController } from "../../../../src/controllers/virtual-node/controller.ts";
import type { Patch, WatchEvent, WatchOptions, WriteOptions } from "../../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member, withState } from "../../../support/builders/member.ts";
import { endedStatus, proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { registryOf } from "../fleet.ts";

interface Write {
  /** E.g. `patch nodes/status`. */
  readonly to: string;
  readonly body: object;
  readonly outOfTurn: boolean;
}

const HEARD = { reachable: true, syncing: false, read: true, nodesRead: true };
const OPEN = { unschedulable: false, taints: [] };

let clock: FakeClock;
let writes: Write[];
/** Writes that the host answers with an error. */
let failures: Map<string, KubeErrorCode>;
let found: Stored<KubeNode>[];
let tell: (event: WatchEvent<KubeNode>) => void;
let cluster: Stored<Cluster>;
let west: Member;
let endpoint: KubeletEndpoint | undefined;
let controller: VirtualNodeController;
let controllerEvents: Events<ControllerEvents>;

function node(spec: KubeNode["spec"] = OPEN): Stored<KubeNode> {
  return {
    metadata: {
      name: "legation-west",
      uid: "node",
      resourceVersion: "1",
      creationTimestamp: "2026-11-01T10:00:00Z",
      labels: { [VIRTUAL_NODE_LABEL]: "west" },
    },
    spec: { providerID: "legation://west", ...spec },
  };
}

function clusterOf(uid: string, creationTimestamp = "2026-11-01T10:00:00Z"): Stored<Cluster> {
  const more = { resourceVersion: "1", creationTimestamp, generation: 1, finalizers: [CLUSTER_FINALIZER] };
  return {
    metadata: { name: "west", uid, ...more },
    spec: { credentialsSecret: { name: "member-west" } },
  };
}

async function write<T>(to: string, body: T, options?: WriteOptions): Promise<T> {
  writes.push({ to, body: body as object, outOfTurn: options?.outOfTurn === true });
  const code = failures.get(to);
  if (code === undefined) return body;
  throw kubeError(code, `refused: ${code}`, { cluster: "host", verb: "patch", resource: to });
}

function written(to: string): object[] {
  return writes.filter((each) => each.to === to).map(({ body }) => body);
}

beforeEach(() => {
  clock = new FakeClock();
  writes = [];
  failures = new Map();
  found = [];
  cluster = clusterOf("c");
  endpoint = undefined;
  const events: ((event: WatchEvent<KubeNode>) => void)[] = [];
  const next = (): Promise<WatchEvent<KubeNode>> => new Promise((resolve) => events.push(resolve));
  tell = (event) => events.shift()?.(event);
  const host = fakeClient({
    list: async (_resource: unknown, { labelSelector }: { labelSelector?: string }) => {
      // A node without its label is found by its name alone.
      const items = found.filter(({ metadata }) => labelSelector === undefined || metadata.labels !== undefined);
      return { items, resourceVersion: "1", size: 0 };
    },
    watch: async function* (_resource: unknown, { onOpen, signal }: WatchOptions) {
      onOpen?.();
      const ended = new Promise<never>((_resolve, reject) => signal.addEventListener("abort", reject));
      for (;;) yield await Promise.race([ended, next()]);
    },
    create: async ({ plural }: { plural: string }, object: object, options: WriteOptions) => {
      return { metadata: { resourceVersion: "2" }, ...(await write(`create ${plural}`, object, options)) };
    },
    patch: async ({ plural }: { plural: string }, _ref: object, { body }: Patch, options: WriteOptions) => {
      const { subresource } = options;
      await write(`patch ${plural}${subresource === undefined ? "" : `/${subresource}`}`, body, options);
      return { metadata: { uid: "node", resourceVersion: "1" } };
    },
  });
  west = member("west", host, {
    setVirtualNode: () => false,
    nodeTotals: { nodes: 0, capacity: {}, allocatable: {}, largestNode: {}, features: [] },
    unreadable: {},
  });
  hear(HEARD);
  controllerEvents = new Events();
  controller = new VirtualNodeController({
    host,
    registry: registryOf([west], { cluster: () => cluster, clusters: () => [cluster] }),
    clock,
    log: createLogger({ level: "silent" }),
    events: controllerEvents,
    proxies: { synced: true, countByIndex: () => 0 },
    endpoint: () => endpoint,
    shard: ALL_NAMESPACES,
    waitingIn: () => 0,
    kept: { countIn: () => 0 },
    networkProblem: () => undefined,
  });
});
afterEach(() => controller.stop());

/** Changes what is known of the member. */
function hear({ reachable, ...state }: typeof HEARD): void {
  withState(west, { ...state, probed: { reachable } });
}

async function start(): Promise<void> {
  await controller.start(new AbortController().signal);
  await clock.advance(0);
}

test.each<[string, Partial<typeof HEARD>, string | undefined]>([
  ["answers", {}, "True"],
  ["answers, and whose pods cannot be read,", { read: false }, "Unknown"],
  ["does not answer", { reachable: false }, "Unknown"],
  ["has still to be read since the controller began", { syncing: true, read: false }, undefined],
])("sets Ready correctly on the node of a member that %s", async (_which, state, ready) => {
  hear({ ...HEARD, ...state });
  found = [node()];
  await start();
  const conditions = written("patch nodes/status").map(
    (body) => (body as { status: { conditions: { status: string }[] } }).status.conditions[0]?.status,
  );
  expect(conditions[0]).toBe(ready);
  if (ready === undefined) expect(writes).toEqual([]);
});

test("publishes a new leader's endpoint before the member is read, and the heartbeat once it is", async () => {
  hear({ ...HEARD, syncing: true, read: false });
  const { metadata } = node();
  found = [{ ...node(), metadata: { ...metadata, resourceVersion: "0" } }];
  await start();
  expect(writes).toEqual([]);

  endpoint = { address: "10.0.0.6", port: 10251 };
  controllerEvents.emit("nodeEndpoint", "west");
  await clock.advance(0);
  const addresses = [{ type: "InternalIP", address: "10.0.0.6" }];
  const daemonEndpoints = { kubeletEndpoint: { Port: 10251 } };
  const status = { addresses: [{ $patch: "replace" }, ...addresses], daemonEndpoints };
  expect(writes).toEqual([{ to: "patch nodes/status", body: { status }, outOfTurn: true }]);

  hear(HEARD);
  tell({ type: "MODIFIED", object: { ...node(), status: { addresses, daemonEndpoints } }, size: 0 });
  await clock.advance(0);
  const conditions = [{ type: "Ready", status: "True" }];
  expect(written("patch nodes/status")[1]).toMatchObject({ status: { conditions } });
});

test("writes what the unfinished pods of a node request into the status of its Cluster", async () => {
  const pod = (uid: string, cpu: string, status?: PodStatus): Stored<Pod> => {
    const containers = [{ name: "main", resources: { requests: { cpu } } }];
    return proxyPod({
      uid,
      spec: { nodeName: "legation-west", containers },
      ...(status === undefined ? {} : { status }),
    });
  };
  const elsewhere = proxyPod({ uid: "d", spec: { nodeName: "legation-east" } });
  for (const object of [pod("a", "1"), pod("b", "2"), pod("c", "4"), elsewhere]) {
    controllerEvents.emit("anyProxy", { type: "added", object });
  }
  const ended = pod("b", "2", endedStatus(0));
  controllerEvents.emit("anyProxy", { type: "updated", object: ended, previous: pod("b", "2") });
  controllerEvents.emit("anyProxy", { type: "deleted", object: pod("c", "4") });
  found = [node()];
  await start();
  expect(written("patch clusters/status")[0]).toMatchObject({ status: { requested: { cpu: "1", pods: "1" } } });
});

test("sends node heartbeats out of turn, ahead of thousands of pod writes", async () => {
  failures.set("patch leases", "NotFound");
  found = [node()];
  await start();
  const urgent = ["patch leases", "create leases", "patch nodes/status", "patch clusters/status"];
  for (const to of urgent) expect(writes).toContainEqual(expect.objectContaining({ to, outOfTurn: true }));
});

test("restores the label of a node with its uid, and of no other node in its place", async () => {
  const { labels: _labels, ...metadata } = node().metadata;
  found = [{ ...node(), metadata }];
  failures.set("create nodes", "AlreadyExists");
  await start();
  expect(written("patch nodes")[0]).toEqual({ metadata: { uid: "node", labels: { [VIRTUAL_NODE_LABEL]: "west" } } });
});

test("reports a refused node write in the status of its Cluster", async () => {
  failures.set("patch nodes", "Unprocessable");
  found = [node()];
  await start();
  await clock.advance(20_000);
  expect(JSON.stringify(written("patch clusters/status").at(-1))).toContain(
    "Node legation-west is not as it should be: refused: Unprocessable",
  );
});

test.each([
  ["restores the cordon for the same Cluster", "c", true],
  ["restores no cordon for a Cluster that was created anew", "another", undefined],
])("restores a deleted node: %s", async (_which, uid, unschedulable) => {
  found = [node({ unschedulable: true })];
  await start();
  hear({ ...HEARD, syncing: true, read: false });
  tell({ type: "DELETED", object: node({ unschedulable: true }), size: 0 });
  await clock.advance(0);
  cluster = clusterOf(uid);
  hear(HEARD);
  controllerEvents.emit("clusterStatus", "west");
  await clock.advance(0);
  const [made] = written("create nodes") as KubeNode[];
  expect(made?.spec?.providerID).toBe("legation://west");
  expect(made?.spec?.unschedulable).toBe(unschedulable);
});

test("does not cordon the node of a recreated Cluster like the earlier one's, even if that deletion is seen last", async () => {
  found = [node({ unschedulable: true })];
  await start();
  cluster = clusterOf("another", "2026-11-01T10:00:01Z");
  tell({ type: "DELETED", object: node({ unschedulable: true }), size: 0 });
  await clock.advance(0);
  const [made] = written("create nodes") as KubeNode[];
  expect(made?.spec?.providerID).toBe("legation://west");
  expect(made?.spec?.unschedulable).toBeUndefined();
});
