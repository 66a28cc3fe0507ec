import { beforeEach, expect, test } from "vitest";
import { DELETION_COST_ANNOTATION, OWN_DELETION_COST_ANNOTATION } from "../../../../src/api/keys.ts";
import { type OwnerReference, objectKey, type Pod, type PodSpec, type Stored } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { PreferencesController } from "../../../../src/controllers/preferences/controller.ts";
import type { KubeError } from "../../../../src/kube/errors.ts";
import type { Candidate } from "../../../../src/placement/candidate.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { OwnedProxies } from "../../../../src/scheduling/owned-proxies.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { fieldsOf } from "../../../support/builders/answers.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

let owner: OwnerReference;
const STATEFUL_SET = { apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "owner", controller: true };

interface Eviction {
  readonly deleteOptions: { readonly preconditions: object };
}

function candidate(name: string): Candidate {
  const allocatable = { cpu: 1000, pods: 1000 };
  return { name, labels: {}, allocatable, largestNode: allocatable, used: {} };
}

let clock: FakeClock;
let store: Store<Pod>;
let owned: OwnedProxies;
let evicted: string[];
/** The preconditions of evictions. */
let demanded: object[];
/** The host's answer to an eviction; undefined if it evicts. */
let refusedWrites: string[];
let refusal: KubeError | undefined;
/** The written annotations and their preconditions; the host may be ahead of the store. */
let written: { readonly name: string; readonly metadata: { readonly resourceVersion?: string } }[];
let ahead: Set<string>;
let members: string[];
let controller: PreferencesController;
let events: Events<ControllerEvents>;
beforeEach(() => {
  clock = new FakeClock(Date.now());
  owner = STATEFUL_SET;
  store = new Store<Pod>();
  owned = new OwnedProxies();
  evicted = [];
  demanded = [];
  refusal = undefined;
  written = [];
  ahead = new Set();
  members = ["west", "east", "north"];
  refusedWrites = [];
  events = new Events();
  controller = new PreferencesController({
    refusedWrites: {
      note: (_key, uid, what) => refusedWrites.push(`${what} ${uid}`),
      over: () => undefined,
    },
    host: fakeClient({
      createSubresource: async (_resource: unknown, { name }: { name: string }, _to: string, body: Eviction) => {
        evicted.push(name);
        demanded.push(body.deleteOptions.preconditions);
        if (refusal !== undefined) throw refusal;
      },
      patch: async (_resource, { name }, patch) => {
        written.push({ name, metadata: {}, ...fieldsOf(patch) });
        if (ahead.has(name)) throw kubeError("Conflict", "changed", { cluster: "host", verb: "patch" });
        return {};
      },
    }),
    owned,
    proxies: store,
    events,
    eligibilities: {
      moving: () => ({
        preferences: {
          rebalance: true,
          clusters: Object.fromEntries(members.map((name) => [name, { weight: 1, minReplicas: 0 }])),
        },
        candidates: members.map(candidate),
        full: new Set(),
        closed: new Set(),
        syncing: false,
      }),
    },
    clock,
    log: createLogger({ level: "silent" }),
  });
});

function put(
  index: number,
  parts: {
    readonly volumes?: PodSpec["volumes"] & object;
    readonly deleting?: boolean;
    readonly uid?: string;
    readonly ready?: "True" | "False";
    readonly member?: string;
    readonly waiting?: boolean;
    readonly costed?: boolean;
    readonly metadata?: object;
  } = {},
): void {
  const name = `db-${index}`;
  const { volumes = [], deleting = false, uid = name, ready = "True", member = "west", costed = false } = parts;
  const proxy: Stored<Pod> = proxyPod({
    name,
    uid,
    metadata: {
      ownerReferences: [owner],
      ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
      ...parts.metadata,
    },
    spec: { ...(parts.waiting === true ? {} : { nodeName: `legation-${member}` }), volumes },
    status: { ...runningStatus(), conditions: [{ type: "Ready", status: ready }] },
  });
  store.set(proxy);
  owned.update(proxy, costed);
  events.emit("proxy", { type: "added", object: proxy });
}

async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    await clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("does not move replicas whose data is in a member, since they would return there", async () => {
  for (let index = 0; index < 12; index += 1) {
    put(index, { volumes: [{ name: "data", persistentVolumeClaim: { claimName: `data-db-${index}` } }] });
  }
  await pass(30_000);
  expect(evicted).toEqual([]);
  await controller.stop();
});

test.each([
  ["Job", "batch/v1"],
  ["Workflow", "argoproj.io/v1alpha1"],
])("does not move replicas of a %s, whose work would start anew", async (kind, apiVersion) => {
  owner = { ...STATEFUL_SET, kind, apiVersion };
  for (let index = 0; index < 12; index += 1) put(index);
  await pass(30_000);
  expect(evicted).toEqual([]);
  await controller.stop();
});

test("evicts the observed replica by uid, never another of its name", async () => {
  for (let index = 0; index < 12; index += 1) put(index, { uid: `uid-${index}` });
  await pass(10_000);
  expect(demanded).toEqual(evicted.map((name) => ({ uid: name.replace("db", "uid") })));
  expect(evicted).toHaveLength(1);
  await controller.stop();
});

test.each<[string, number | undefined, number]>([
  ["ten seconds", undefined, 10],
  ["the host's Retry-After", 25_000, 25],
])(
  "retries an eviction that a budget forbids after %s, and counts nothing as moved",
  async (_for, retryAfterMs, seconds) => {
    const fields = { cluster: "host", resource: "pods/eviction" };
    const later = retryAfterMs === undefined ? {} : { retryAfterMs };
    refusal = kubeError("TooManyRequests", "not now", { ...fields, ...later });
    for (let index = 0; index < 12; index += 1) put(index);
    await pass(3_000);
    expect(evicted).toHaveLength(1);
    await pass((seconds - 2) * 1_000);
    expect(evicted).toHaveLength(1);
    refusal = undefined;
    await pass(4_000);
    expect(evicted).toHaveLength(2);
    await pass(40_000);
    expect(evicted).toHaveLength(2);
    await controller.stop();
  },
);

test("reports and retries a failed eviction, and counts nothing as moved", async () => {
  refusal = kubeError("ServerError", "no", { cluster: "host", resource: "pods/eviction" });
  for (let index = 0; index < 12; index += 1) put(index);
  await pass(5_000);
  expect(evicted.length).toBeGreaterThan(1);
  expect(new Set(evicted).size).toBe(1);
  expect(new Set(refusedWrites)).toEqual(new Set([`evict ${evicted[0]}`]));
  await controller.stop();
});

test("moves the next replica of a StatefulSet when the one before it has returned, however long that takes to end", async () => {
  for (let index = 0; index < 12; index += 1) put(index);
  await pass(10_000);
  expect(evicted).toHaveLength(1);
  const [name = ""] = evicted;
  const index = Number(name.split("-")[1]);
  put(index, { deleting: true });
  await pass(200_000);
  expect(evicted).toHaveLength(1);
  store.delete(objectKey({ namespace: "team", name }));
  put(index, { uid: "again" });
  await pass(70_000);
  expect(evicted).toHaveLength(2);
  await controller.stop();
});

test("leaves members alone that did not get a moved replica, also when a replica is not ready meanwhile", async () => {
  for (let index = 0; index < 12; index += 1) put(index);
  for (const moves of [1, 2]) {
    await pass(70_000);
    expect(evicted).toHaveLength(moves);
    const index = Number(evicted.at(-1)?.split("-")[1]);
    const other = index === 0 ? 1 : 0;
    put(other, { ready: "False" });
    store.delete(objectKey({ namespace: "team", name: `db-${index}` }));
    put(index, { uid: `again-${moves}` });
    await pass(5_000);
    put(other);
  }
  await pass(300_000);
  expect(evicted).toHaveLength(2);
  await controller.stop();
});

test("doubles the pause for a member that repeatedly does not get a moved replica, until it does", async () => {
  members = ["west", "east"];
  for (let index = 0; index < 12; index += 1) put(index);
  /** Returns after how many minutes the next replica is moved; its replacement goes to the member. */
  const nextMove = async (replacement: string): Promise<number> => {
    const before = evicted.length;
    const start = clock.now();
    while (evicted.length === before) await pass(5_000);
    const minutes = Math.round((clock.now() - start) / 60_000);
    const name = evicted.at(-1) ?? "";
    const key = objectKey({ namespace: "team", name });
    owned.remove(store.get(key)?.metadata.uid ?? "");
    store.delete(key);
    put(Number(name.split("-")[1]), { uid: `again-${evicted.length}`, member: replacement });
    return minutes;
  };
  const minutes: number[] = [];
  for (const member of ["west", "west", "west", "east", "west", "west"]) minutes.push(await nextMove(member));
  expect(minutes).toEqual([0, 10, 20, 40, 0, 10]);
  await controller.stop();
});

test("writes a deletion cost over the observed one, and not over one that the author has just written", async () => {
  members = ["west"];
  ahead.add("db-0");
  put(0, { costed: true, metadata: { resourceVersion: "7" } });
  await pass(5_000);
  expect(written).toMatchObject([{ name: "db-0", metadata: { resourceVersion: "7" } }]);
  put(0, { costed: false, metadata: { resourceVersion: "8" } });
  await pass(60_000);
  expect(written).toHaveLength(1);
  await controller.stop();
});

test("keeps a deletion cost that the author has written over Legation's", async () => {
  members = ["west", "east"];
  const mine = [-1, -2, -3, -4];
  for (const [index, cost] of mine.entries()) {
    const annotations = { [DELETION_COST_ANNOTATION]: "100", [OWN_DELETION_COST_ANNOTATION]: String(cost) };
    put(index, { member: index < 2 ? "west" : "east", metadata: { annotations } });
  }
  await pass(60_000);
  expect(written).toEqual([]);
  await controller.stop();
});

test("does not blame a member while the replacement still waits for a place", async () => {
  members = ["west", "east"];
  for (let index = 0; index < 12; index += 1) put(index);
  await pass(10_000);
  expect(evicted).toHaveLength(1);
  const name = evicted[0] ?? "";
  owned.remove(name);
  store.delete(objectKey({ namespace: "team", name }));
  const index = Number(name.split("-")[1]);
  put(index, { uid: "again", waiting: true });
  await pass(20_000);
  put(index, { uid: "again", member: "east" });
  await pass(20_000);
  expect(evicted).toHaveLength(2);
  await controller.stop();
});

test.each([
  ["ignores a member's result if the workload is scaled down meanwhile", 4, 2],
  ["counts a replica that is not replaced as a failed move", 0, 1],
])("%s", async (_, fewer, moves) => {
  members = ["west", "east"];
  for (let index = 0; index < 12; index += 1) put(index);
  await pass(10_000);
  expect(evicted).toHaveLength(1);
  const others = Array.from({ length: 12 }, (_each, index) => `db-${index}`).filter((name) => name !== evicted[0]);
  for (const name of [...evicted, ...others.slice(0, fewer)]) {
    owned.remove(name);
    store.delete(objectKey({ namespace: "team", name }));
  }
  put(Number(others.at(-1)?.split("-")[1]));
  await pass(100_000);
  expect(evicted).toHaveLength(moves);
  await controller.stop();
});
