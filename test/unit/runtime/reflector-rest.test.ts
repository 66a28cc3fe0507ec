import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { CREATE_ENDS_MS } from "../../../src/kube/request-ends.ts";
import { pods } from "../../../src/kube/resources.ts";
import { Mutex } from "../../../src/runtime/mutex.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { pod } from "../../support/builders/pod.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const MINUTE_MS = 60_000;

let clock: FakeClock;
let requests: string[];
let items: Pod[];
let isAway: boolean;
let mutex: Mutex;
let states: string[];
let reflector: Reflector<Pod>;
let onState: (state: string) => void;

beforeEach(() => {
  clock = new FakeClock();
  requests = [];
  states = [];
  onState = () => {};
  items = [];
  isAway = false;
  mutex = new Mutex();
  reflector = reflect();
});
afterEach(() => reflector.stop());

function reflect(spreadMs: () => number = () => 0): Reflector<Pod> {
  const client = fakeClient({
    list: async () => {
      requests.push("list");
      if (isAway) throw kubeError("NotSent", "no route");
      return { items: [...items], resourceVersion: "1", size: 0 };
    },
    // Ends in good order after the time that it was asked for.
    watch: async function* (_resource, { onOpen, signal, timeoutSeconds = 0 }) {
      requests.push("watch");
      onOpen?.();
      yield* [];
      await clock.sleep(timeoutSeconds * 1000, signal).catch(() => {});
    },
  });
  const log = { info: () => {}, warn: () => {}, debug: () => {}, error: () => {} };
  return new Reflector<Pod>({
    client,
    resource: pods,
    rest: { mutex, share: 0.5, spreadMs },
    clock,
    log,
    onState: (state) => {
      states.push(state);
      onState(state);
    },
  });
}

/** Starts a reflector that has to wait for its first list, and needs it. */
async function watchesOnceNeeded(): Promise<void> {
  reflector.start();
  await clock.advance(1_000);
  expect(requests).toEqual([]);
  reflector.need();
  await clock.advance(0);
  expect(reflector.state).toBe("watching");
}

test("opens no watch while the store is empty and nobody needs it", async () => {
  reflector.start();
  await clock.advance(1_000);
  expect(requests).toEqual(["list"]);
  expect(reflector.state).toBe("resting");
  expect(reflector.store.synced).toBe(true);
});

test("watches objects that are there, needed or not", async () => {
  items = [pod()];
  reflector.start();
  await clock.advance(20 * MINUTE_MS);
  expect(requests.filter((request) => request === "list")).toHaveLength(1);
  expect(reflector.state).toBe("watching");
});

test("lists again once no earlier request can create an object, and every quarter of an hour from then on", async () => {
  reflector.start();
  await clock.advance(CREATE_ENDS_MS);
  expect(requests).toEqual(["list"]);
  await clock.advance(CREATE_ENDS_MS);
  expect(requests).toEqual(["list", "list"]);
  await clock.advance(15 * MINUTE_MS - CREATE_ENDS_MS);
  expect(requests).toEqual(["list", "list"]);
  items = [pod()];
  await clock.advance(10 * MINUTE_MS);
  expect(requests.slice(0, 4)).toEqual(["list", "list", "list", "watch"]);
  expect(reflector.store.size).toBe(1);
});

test("tells of a rest once, and not of the lists in it", async () => {
  reflector.start();
  await clock.advance(60 * MINUTE_MS);
  expect(requests.length).toBeGreaterThan(3);
  expect(states).toEqual(["listing", "resting"]);
});

test("opens the watch at once when it is needed, and closes it some minutes after", async () => {
  reflector.start();
  await clock.advance(1_000);
  reflector.need();
  await clock.advance(0);
  expect(requests).toEqual(["list", "list", "watch"]);
  reflector.need();
  await clock.advance(4 * MINUTE_MS);
  expect(reflector.state).toBe("watching");
  await clock.advance(10 * MINUTE_MS);
  expect(reflector.state).toBe("resting");
  // A watch that ends after a rest has begun is not opened again.
  expect(requests.filter((request) => request === "watch").length).toBeLessThanOrEqual(2);
});

test("is read when it is needed before its first list was due", async () => {
  reflector = reflect(() => MINUTE_MS);
  await watchesOnceNeeded();
});

test("spreads first lists", async () => {
  reflector = reflect(() => MINUTE_MS);
  reflector.start();
  await clock.advance(MINUTE_MS / 2 - 1);
  expect(requests).toEqual([]);
  await clock.advance(1);
  expect(requests).toEqual(["list"]);
});

test("lists again when the cluster has returned, also long after a rest began", async () => {
  reflector.start();
  await clock.advance(3 * MINUTE_MS);
  const before = requests.length;
  reflector.retry();
  await clock.advance(0);
  expect(requests).toHaveLength(before + 1);
  expect(reflector.state).toBe("resting");
  await clock.advance(2 * CREATE_ENDS_MS);
  expect(requests).toHaveLength(before + 2);
});

test("does not take silence for emptiness: a failed list is no rest", async () => {
  reflector.start();
  await clock.advance(3 * MINUTE_MS);
  isAway = true;
  reflector.retry();
  await clock.advance(0);
  expect(reflector.state).toBe("backing-off");
  expect(reflector.failing?.reason).toContain("no route");
  isAway = false;
  await clock.advance(MINUTE_MS);
  expect(reflector.state).toBe("resting");
  expect(reflector.failing).toBeUndefined();
});

test("waits no longer for its turn once it is needed", async () => {
  const release = await mutex.lock(new AbortController().signal);
  await watchesOnceNeeded();
  release();
});

test("takes turns with the cluster's other lists, unless somebody waits for it", async () => {
  const release = await mutex.lock(new AbortController().signal);
  reflector.start();
  await clock.advance(1_000);
  expect(requests).toEqual([]);
  const needed = reflect();
  needed.need();
  needed.start();
  await clock.advance(0);
  expect(needed.state).toBe("watching");
  await needed.stop();
  release();
  await clock.advance(0);
  expect(reflector.state).toBe("resting");
});

test("opens the watch for one who needs it in the moment in which the rest begins", async () => {
  onState = (state) => {
    if (state === "resting") reflector.need();
  };
  reflector.start();
  await expect.poll(() => requests).toContain("watch");
});

test("waits for the first list's turn when the cluster answers, and longer when more clusters come", async () => {
  let spreadMs = MINUTE_MS;
  reflector = reflect(() => spreadMs);
  reflector.start();
  reflector.retry();
  await clock.advance(29_000);
  expect(requests).toEqual([]);
  spreadMs = 2 * MINUTE_MS;
  await clock.advance(30_000);
  expect(requests).toEqual([]);
  await clock.advance(1_000);
  expect(requests).toEqual(["list"]);
});

test("lists at once what somebody waits for, and opens no watch for that", async () => {
  reflector = reflect(() => MINUTE_MS);
  reflector.start();
  await clock.advance(1_000);
  reflector.hurry();
  await clock.advance(1_000);
  expect(requests).toEqual(["list"]);
  expect(reflector.state).toBe("resting");
});
