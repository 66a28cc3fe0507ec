import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { AdmissionCheck, CheckEntry } from "../../../../src/api/kueue-workload.ts";
import { admissionChecks, resourceFlavors, workloads } from "../../../../src/api/resources.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { RoomController } from "../../../../src/controllers/queues/room-controller.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Reflector } from "../../../../src/runtime/reflector.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { host as hostOf } from "../../cli/simulation/host.ts";
import { podSet, workload } from "./workloads.ts";

const versioned = { version: "v1beta2" } as const;
const [checks, flavors, queued] = [
  { ...admissionChecks, ...versioned },
  { ...resourceFlavors, ...versioned },
  { ...workloads, ...versioned },
];
const MINUTE_MS = 60_000;
const REF = { namespace: "team", name: "train" };

let clock: FakeClock;
let host: MemoryCluster;
let writes: number;
let lists: string[];
/** Refuses writes of Workloads. */
let refusal: ReturnType<typeof kubeError> | undefined;
/** Refuses lists of Workloads. */
let unreadable: boolean;

beforeEach(async () => {
  clock = new FakeClock();
  host = new MemoryCluster("host", "host-1");
  for (const resource of [checks, flavors, queued]) host.serve(resource, true);
  writes = 0;
  lists = [];
  refusal = undefined;
  unreadable = false;
});

async function start(): Promise<void> {
  const client: ClusterClient = {
    ...host.client,
    list: async (resource, options) => {
      lists.push(resource.plural);
      if (unreadable && resource.plural === "workloads") throw kubeError("Forbidden");
      return host.client.list(resource, options);
    },
    patch: async (resource, ref, patch, options) => {
      if (resource.plural !== "workloads") return host.client.patch(resource, ref, patch, options);
      writes += 1;
      if (refusal !== undefined) throw refusal;
      return host.client.patch(resource, ref, patch, options);
    },
  };
  const running = {
    host: client,
    events: new Events<ControllerEvents>(),
    clock,
    log: createLogger({ level: "silent" }),
    recorder: { record: () => {} },
  };
  const onState = (): void => running.events.emit("flavors");
  const flavorReflector = new Reflector({ client, resource: resourceFlavors, clock, log: running.log, onState });
  const controller = new RoomController({
    ...running,
    flavors: flavorReflector,
    proxies: new Store<Pod>(),
    hostState: () => hostOf({ west: {} }),
    complete: (spec) => spec,
    wholeWork: () => [],
  });
  controller.start();
  onTestFinished(async () => {
    await controller.stop();
    await flavorReflector.stop();
  });
  await settle();
}

async function settle(): Promise<void> {
  await clock.advanceInSteps(15, 200);
}

function putCheck(controllerName = "legation.dev/room"): void {
  const check: AdmissionCheck & { readonly metadata: { readonly name: string } } = {
    metadata: { name: "room" },
    spec: { controllerName },
  };
  host.put(checks, check);
}

function put(name: string, cpu = "1"): void {
  host.put(queued, workload(name, { podSets: [podSet({ cpu })] }));
}

function entry(ref = REF): CheckEntry | undefined {
  return host.peek(queued, ref)?.status?.admissionChecks?.[0];
}

function active(): Partial<NonNullable<NonNullable<Stored<AdmissionCheck>["status"]>["conditions"]>[number]> {
  return host.peek(checks, { name: "room" })?.status?.conditions?.[0] ?? {};
}

test("reads workloads only while there is a check of its own", async () => {
  putCheck("kueue.x-k8s.io/multikueue");
  put("train");
  await start();
  expect(lists).not.toContain("workloads");
  await host.client.delete(checks, { name: "room" });
  putCheck();
  await settle();
  expect(entry()).toMatchObject({ state: "Ready" });
  await host.client.delete(checks, { name: "room" });
  await settle();
  put("later");
  await settle();
  expect(entry({ ...REF, name: "later" })).toMatchObject({ state: "Pending" });
});

test("workloads that ask while others are judged are answered in the next round, a second later", async () => {
  putCheck();
  await start();
  const begun = clock.now();
  put("train");
  await clock.advance(300);
  expect(entry()).toMatchObject({ state: "Ready" });
  put("later");
  await clock.advance(300);
  expect(entry({ ...REF, name: "later" })).toMatchObject({ state: "Pending" });
  await clock.advance(900);
  expect(entry({ ...REF, name: "later" })).toMatchObject({ state: "Ready" });
  expect(clock.now() - begun).toBeLessThanOrEqual(1_500);
});

test("answers once", async () => {
  putCheck();
  put("train");
  await start();
  await clock.advance(10 * MINUTE_MS);
  expect(writes).toBe(1);
});

test("answers after a conflict by the newest version", async () => {
  putCheck();
  put("train");
  refusal = kubeError("Conflict");
  await start();
  expect(entry()).toMatchObject({ state: "Pending" });
  refusal = undefined;
  const body = { metadata: { labels: { changed: "true" } } };
  await host.client.patch(queued, REF, { type: "merge", body });
  await settle();
  expect(entry()).toMatchObject({ state: "Ready" });
});

test("asks a refused write again after some minutes, by the room of then", async () => {
  putCheck();
  put("train");
  refusal = kubeError("Unprocessable");
  await start();
  const refused = writes;
  await clock.advance(MINUTE_MS);
  expect(writes).toBe(refused);
  refusal = undefined;
  await clock.advance(5 * MINUTE_MS);
  await settle();
  expect(entry()).toMatchObject({ state: "Ready" });
});

test("a check is not active while workloads may not be read", async () => {
  unreadable = true;
  putCheck();
  await start();
  expect(active()).toMatchObject({
    status: "False",
    reason: "NotReady",
    message: expect.stringContaining("cannot read"),
  });
  unreadable = false;
  await clock.advance(MINUTE_MS);
  await settle();
  expect(active()).toMatchObject({ status: "True", reason: "Active" });
});
