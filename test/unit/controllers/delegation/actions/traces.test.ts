import { beforeEach, expect, test } from "vitest";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../../../../src/api/kubernetes.ts";
import { PodTraces } from "../../../../../src/controllers/delegation/actions/traces.ts";
import type { Action } from "../../../../../src/controllers/delegation/decision/decision.ts";
import type { ActionContext } from "../../../../../src/runtime/controller.ts";
import type { Memory } from "../../../../../src/scheduling/memory.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import type { FinishedStep, Step, TracedPod, Traces } from "../../../../../src/telemetry/traces.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { boundProxy, memory } from "../world.ts";

const CREATED = "2026-11-21T10:00:00Z";
const AT = Date.parse(CREATED);
const SHOWN = (): boolean => true;

let told: (Step | FinishedStep)[];
let about: TracedPod[];
let now = AT;

beforeEach(() => {
  told = [];
  about = [];
  now = AT + 3_000;
});

const traces: Traces = {
  step: async (traced, step, run) => {
    about.push(traced);
    told.push(step);
    return run();
  },
  finishedStep: (traced, step) => {
    about.push(traced);
    told.push(step);
  },
  request: () => undefined,
  review: () => undefined,
  close: async () => undefined,
};

interface Setting {
  readonly proxy?: Stored<Pod>;
  readonly memory?: Memory;
  readonly waitingSince?: number;
}

async function follow(action: Action, setting: Setting = {}): Promise<(Step | FinishedStep)[]> {
  const { proxy } = setting;
  const way = new PodTraces({
    traces,
    host: "cern",
    proxies: { get: () => proxy },
    memories: { of: () => setting.memory ?? memory() },
    waiting: { since: () => setting.waitingSince },
    clock: { now: () => now },
  });
  const key: ObjectKey = objectKey({ namespace: "team", name: "web-0" });
  const log = createLogger({ level: "silent" });
  const context: ActionContext<ObjectKey> = { key, signal: new AbortController().signal, heardAt: now, log };
  await way.follow(action, context, async () => {
    now += 500;
    return SHOWN;
  });
  return told;
}

const proxy = proxyPod({ uid: "proxy-uid", metadata: { creationTimestamp: CREATED } });
const create: Action = { type: "create", member: "west", proxyUid: "proxy-uid", controlled: false };
const bind: Action = { type: "bind", member: "west", proxyUid: "proxy-uid", delegateUid: "d", memberNode: "n" };

test("ends the wait for placement with the first delegate, and not with the next one", async () => {
  expect(await follow(create, { proxy, waitingSince: AT + 1_000 })).toEqual([
    {
      name: "wait for placement",
      startedAt: AT + 1_000,
      endedAt: AT + 3_000,
      attributes: { "k8s.cluster.name": "cern" },
    },
    {
      name: "create delegate",
      startedAt: AT + 3_000,
      attributes: { "k8s.cluster.name": "cern", "legation.member": "west" },
    },
  ]);
  expect(about).toEqual(Array(2).fill({ uid: "proxy-uid", namespace: "team", name: "web-0" }));
  told = [];
  const attempts = new Map([["east", { since: AT, refusalCount: 1 }]]);
  expect(await follow(create, { proxy, memory: memory({ attempts }) })).toMatchObject([{ name: "create delegate" }]);
});

test("counts the wait of a pod from an earlier leader since its creation", async () => {
  const [wait] = await follow(create, { proxy, memory: memory({ fresh: false }), waitingSince: AT + 2_000 });
  expect(wait).toMatchObject({ name: "wait for placement", startedAt: AT });
});

test("ends the step of the member's scheduler with the Binding, and gives the trace its root", async () => {
  const attempts = new Map([["west", { since: AT + 1_500, refusalCount: 0 }]]);
  expect(await follow(bind, { proxy, memory: memory({ attempts }) })).toMatchObject([
    { name: "bind proxy", startedAt: AT + 3_000 },
    {
      name: "schedule delegate",
      startedAt: AT + 1_500,
      endedAt: AT + 3_000,
      attributes: { "legation.member": "west" },
    },
    { name: "place pod", root: true, startedAt: AT, endedAt: AT + 3_500, attributes: { "legation.member": "west" } },
  ]);
});

test("marks the step of a member's scheduler that finds no node in time as failed", async () => {
  const attempts = new Map([["west", { since: AT, refusalCount: 0 }]]);
  const refusal = { cluster: "west", reason: "Unschedulable", message: "0/3 nodes" } as const;
  const refuse: Action = { type: "noteRefusal", proxyUid: "proxy-uid", refusal, nodesVersion: 1, sharedBy: "spec" };
  expect(await follow(refuse, { proxy, memory: memory({ attempts }) })).toMatchObject([
    { name: "schedule delegate", startedAt: AT, endedAt: AT + 3_000, failure: "Unschedulable" },
  ]);
});

test("ends the placement of a proxy that was bound first when its first delegate is recorded", async () => {
  const record: Action = {
    type: "recordDelegate",
    proxyUid: "proxy-uid",
    resourceVersion: "1",
    delegateUid: "d",
    memberNode: "n",
  };
  const overflowed = proxyPod({ uid: "proxy-uid", spec: { nodeName: "legation-west" } });
  expect(await follow(record, { proxy: overflowed })).toMatchObject([
    { name: "record delegate" },
    { name: "place pod", root: true, attributes: { "legation.member": "west" } },
  ]);
  told = [];
  expect(await follow(record, { proxy: boundProxy({ uid: "proxy-uid" }) })).toMatchObject([
    { name: "record delegate" },
  ]);
});

test.each([
  ["Succeeded", undefined],
  ["Failed", "Failed"],
])("ends the run with the final status %s", async (phase, failure) => {
  const running = boundProxy({ uid: "proxy-uid", status: { phase: "Running", startTime: CREATED } });
  const status: Action = {
    type: "status",
    patch: { metadata: { uid: "proxy-uid" }, status: { phase } },
    resourceVersion: "1",
  };
  const [step, run, ...others] = await follow(status, { proxy: running });
  expect(step).toMatchObject({ name: "copy status", attributes: { "k8s.pod.status.phase": phase } });
  expect(run).toMatchObject({ name: "run", startedAt: AT, endedAt: AT + 3_500 });
  expect(run).toHaveProperty("attributes", { "k8s.cluster.name": "cern", "k8s.pod.status.phase": phase });
  expect(run !== undefined && "failure" in run ? run.failure : undefined).toBe(failure);
  expect(others).toEqual([]);
  told = [];
  // A later write of it, with the same phase.
  const ended = boundProxy({ uid: "proxy-uid", status: { phase, startTime: CREATED } });
  expect(await follow(status, { proxy: ended })).toHaveLength(1);
});

test("ends the deletion with the release, counted from its request", async () => {
  const deletion = { deletionTimestamp: "2026-11-21T10:00:30Z", deletionGracePeriodSeconds: 30 };
  const release: Action = { type: "removeFinalizer", proxyUid: "proxy-uid" };
  const bound = boundProxy({ uid: "proxy-uid", metadata: deletion });
  expect(await follow(release, { proxy: bound })).toMatchObject([
    { name: "release proxy" },
    { name: "delete pod", startedAt: AT, endedAt: AT + 3_500 },
  ]);
  told = [];
  // The pod was never placed: its trace has a root all the same.
  const unbound = proxyPod({ uid: "proxy-uid", metadata: { ...deletion, creationTimestamp: CREATED } });
  expect(await follow(release, { proxy: unbound })).toMatchObject([
    { name: "release proxy" },
    { name: "place pod", root: true, failure: "DeletedBeforePlacement" },
    { name: "delete pod" },
  ]);
});

test("makes no steps of notes in memory", async () => {
  expect(await follow({ type: "prepare", member: "west", proxyUid: "proxy-uid" }, { proxy })).toEqual([]);
  // No pod's trace would fit it.
  expect(await follow({ type: "delete", member: "west", uid: "d" })).toEqual([]);
});
