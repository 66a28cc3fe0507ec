import { beforeEach, expect, test } from "vitest";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { ALL_NAMESPACES, isInShard, type Shard } from "../../../src/api/shards.ts";
import { ForeignUsage } from "../../../src/clusters/foreign-usage.ts";
import type { ListOptions, ListPage } from "../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../src/kube/errors.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { Mutex } from "../../../src/runtime/mutex.ts";
import type { Logger } from "../../../src/telemetry/logger.ts";
import { answerOf } from "../../support/builders/answers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const HOUR_MS = 3_600_000;
let clock: FakeClock;
let mutex: Mutex;
/** Tokens that were asked for, with the member. */
let asked: string[];
let warned: number;
beforeEach(() => {
  clock = new FakeClock();
  mutex = new Mutex();
  asked = [];
  warned = 0;
});

interface Pages {
  readonly count: number;
  readonly takesMs?: number;
  /** Errors by the number of the request, from 1. */
  readonly failing?: Record<number, KubeErrorCode>;
  /** Pods of each page; default: one of one core. */
  readonly items?: readonly KubeObject[];
  readonly shard?: Shard;
}

function usageOf(name: string, { count, takesMs = 0, failing = {}, items, shard }: Pages): ForeignUsage {
  let request = 0;
  const list = async <T extends KubeObject>(
    _resource: Resource<T>,
    options: ListOptions = {},
  ): Promise<ListPage<T>> => {
    request += 1;
    const page = Number(options.continue ?? "1");
    asked.push(`${name}${page}`);
    expect(options.timeoutMs).toBe(30_000);
    const code = failing[request];
    if (code !== undefined) throw kubeError(code, "not now", { cluster: name, verb: "list" });
    if (takesMs > 0) await clock.sleep(takesMs);
    const pod = { spec: { containers: [{ name: "a", resources: { requests: { cpu: "1" } } }] } };
    const following = page < count ? { continue: String(page + 1) } : {};
    return {
      items: items?.map((item) => answerOf<T>(item)) ?? [answerOf<T>(pod)],
      resourceVersion: "1",
      size: 1,
      ...following,
    };
  };
  const log = {
    warn: () => {
      warned += 1;
    },
  } as unknown as Logger;
  const options = {
    client: fakeClient({ list }),
    hostId: "host",
    shard: shard ?? ALL_NAMESPACES,
    mutex,
    clock,
    onChange: () => {},
    log,
  };
  return new ForeignUsage(options);
}

test("counts delegates of other shards as occupied room, and those of its own nowhere", async () => {
  const shard = { index: 0, count: 2 };
  const namespaces = ["a", "b", "c", "d", "e", "f", "g"];
  const others = namespaces.filter((namespace) => !isInShard(shard, namespace)).length;
  expect(others).toBeGreaterThan(0);
  const spec = { containers: [{ name: "a", resources: { requests: { cpu: "1" } } }] };
  const labels = { "legation.dev/host": "host" };
  const delegates = namespaces.map((namespace) => ({ metadata: { namespace, labels }, spec }));
  const items = [...delegates, { metadata: { namespace: "a" }, spec }];
  const usage = usageOf("west", { count: 1, items, shard });
  usage.start();
  await clock.advance(0);
  expect(usage.sum).toMatchObject({ cpu: 1 });
  expect(usage.occupied).toMatchObject({ cpu: 1 + others });
  await usage.stop();
});

test("knows the part of each node, of the Jobs there, and of objects of the host's queues", async () => {
  const pod = (node: string, cpu: string, job?: string, object?: string): KubeObject => {
    const owner = { apiVersion: "batch/v1", kind: "Job", name: job ?? "", uid: "uid", controller: true };
    return answerOf<KubeObject>({
      metadata: {
        namespace: "team",
        ...(job === undefined ? {} : { ownerReferences: [owner] }),
        ...(object === undefined ? {} : { labels: { "legation.dev/queued-object": object } }),
      },
      spec: { nodeName: node, containers: [{ name: "a", resources: { requests: { cpu } } }] },
    });
  };
  const items = [
    pod("a", "1"),
    pod("a", "2", "job-1"),
    pod("b", "4", "job-1"),
    pod("b", "8", "job-2"),
    pod("b", "16", "job-3", "set"),
  ];
  const usage = usageOf("w", { count: 1, items });
  expect(usage.byNode()).toBeUndefined();
  usage.start();
  await clock.advance(1_000);
  expect(usage.sum).toMatchObject({ cpu: 31 });
  const byNode = usage.byNode();
  expect(byNode?.on("a")).toMatchObject({ cpu: 3 });
  expect(byNode?.on("b", ["team/job-1"])).toMatchObject({ cpu: 24 });
  expect(byNode?.on("b", ["team/job-1", "set"])).toMatchObject({ cpu: 8 });
  expect(byNode?.on("c", ["team/job-1"])).toEqual({});
  await usage.stop();
});

test("sums by node are kept only while somebody asks, and are read at once for the first who does", async () => {
  const usage = usageOf("w", { count: 1 });
  usage.start();
  await clock.advance(1_000);
  expect([asked.length, usage.byNode()]).toEqual([1, undefined]);
  await clock.advance(1_000);
  expect(asked).toHaveLength(2);
  expect(usage.byNode()?.on("")).toMatchObject({ cpu: 1 });
  await clock.advance(7 * 60_000);
  expect(asked).toHaveLength(3);
  expect(usage.byNode()).toBeUndefined();
  await usage.stop();
});

test("a member that refuses its pods is not asked at once again for the sake of sums by node", async () => {
  const usage = usageOf("w", { count: 1, failing: { 2: "Forbidden", 3: "Forbidden", 4: "Forbidden" } });
  usage.start();
  await clock.advance(1_000);
  for (let second = 0; second < 60; second += 1) {
    usage.byNode();
    await clock.advance(1_000);
  }
  expect(asked).toHaveLength(2);
  await usage.stop();
});

test("retries a failed page, keeps the pages before it, and logs the failure", async () => {
  const usage = usageOf("w", { count: 3, failing: { 2: "AnswerLost", 3: "ServerError" } });
  usage.start();
  await clock.advance(60_000);
  expect(asked).toEqual(["w1", "w2", "w2", "w2", "w3"]);
  expect(usage.sum).toMatchObject({ cpu: 3 });
  expect(warned).toBe(2);
  await usage.stop();
});

test("starts over after an expired continue token", async () => {
  const usage = usageOf("w", { count: 2, failing: { 2: "Gone" } });
  usage.start();
  await clock.advance(60_000);
  expect(asked).toEqual(["w1", "w2", "w1", "w2"]);
  expect(usage.sum).toMatchObject({ cpu: 2 });
  await usage.stop();
});

test("gives up until the next period when its continue tokens keep expiring", async () => {
  const usage = usageOf("w", {
    count: 3,
    failing: Object.fromEntries(Array.from({ length: 100 }, (_, n) => [2 * n + 2, "Gone"])),
  });
  usage.start();
  await clock.advance(150_000);
  expect(asked).toHaveLength(10);
  expect(usage.sum).toBeUndefined();
  await usage.stop();
});

test("does not count pages that are read again after a lost response as progress", async () => {
  const failing = Object.fromEntries(
    Array.from({ length: 100 }, (_, n): [number, KubeErrorCode] => [3 * n + 3, n % 2 === 0 ? "AnswerLost" : "Gone"]),
  );
  const usage = usageOf("w", { count: 5, failing });
  usage.start();
  await clock.advance(4 * 60_000);
  expect(asked.length).toBeLessThan(30);
  await usage.stop();
});

test("stops at once while it waits for the mutex, and passes the mutex on", async () => {
  const release = await mutex.lock(new AbortController().signal);
  const [waits, next] = [usageOf("w", { count: 1 }), usageOf("n", { count: 1 })];
  for (const usage of [waits, next]) usage.start();
  await clock.advance(1_000);
  await waits.stop();
  expect(asked).toEqual([]);
  release();
  await clock.advance(1_000);
  expect(asked).toEqual(["n1"]);
  await next.stop();
});

test("reads one member at a time, and a failing member delays no other", async () => {
  const large = usageOf("l", { count: 3, failing: { 2: "AnswerLost" } });
  const small = usageOf("s", { count: 2 });
  large.start();
  small.start();
  await clock.advance(60_000);
  expect(asked).toEqual(["l1", "l2", "s1", "s2", "l2", "l3"]);
  await Promise.all([large.stop(), small.stop()]);
});

test("reads a slow member less often, and at least hourly", async () => {
  const slow = usageOf("w", { count: 20, takesMs: 1_000 });
  slow.start();
  slow.ask();
  await clock.advance(30_000);
  expect(asked).toHaveLength(20);
  await clock.advance(20 * 60_000 - 31_000);
  expect(asked).toHaveLength(20);
  await clock.advance(60_000);
  expect(asked.length).toBeGreaterThan(20);
  await slow.stop();
  asked = [];
  const slowest = usageOf("w", { count: 1, takesMs: HOUR_MS });
  slowest.start();
  await clock.advance(2 * HOUR_MS + 60_000);
  expect(asked).toHaveLength(2);
  await clock.advance(HOUR_MS);
  await slowest.stop();
});

test("reads a sum that no placement asks for every half hour, and an old one at once when it does", async () => {
  const usage = usageOf("w", { count: 1 });
  usage.start();
  await clock.advance(10 * 60_000);
  expect(asked).toHaveLength(1);
  usage.ask();
  await clock.advance(0);
  expect(asked).toHaveLength(2);
  for (let minute = 0; minute < 20; minute += 1) {
    usage.ask();
    await clock.advance(60_000);
  }
  expect(asked.length).toBe(6);
  await clock.advance(29 * 60_000);
  expect(asked.length).toBe(7);
  await usage.stop();
});

test("reads a refusing member again after a period, or when it answers again", async () => {
  const usage = usageOf("w", { count: 1, failing: { 1: "Forbidden" } });
  usage.start();
  await clock.advance(60_000);
  expect([asked.length, usage.sum]).toEqual([1, undefined]);
  usage.retry();
  await clock.advance(1_000);
  expect(usage.sum).toMatchObject({ cpu: 1 });
  usage.retry();
  await clock.advance(1_000);
  expect(asked).toHaveLength(2);
  await usage.stop();
});
