import { describe, expect, test, vi } from "vitest";
import {
  type ObjectKey,
  type ObjectMeta,
  objectKey,
  type Pod,
  type Stored,
} from "../../../../../src/api/kubernetes.ts";
import { PreviousLeader } from "../../../../../src/controllers/delegation/actions/read-previous-delegates.ts";
import type { ListOptions } from "../../../../../src/kube/client.ts";
import type { KubeError } from "../../../../../src/kube/errors.ts";
import { delegateSelector } from "../../../../../src/pods/delegate.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import { delegates, member, withState } from "../../../../support/builders/member.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { delegateOf, member as memberView, world } from "../world.ts";
import { failure } from "./executing.ts";

const log = createLogger({ level: "silent" });
const since = 1_001_000;

/** Returns proxy `uid-N` of the pod `web-N`, and its delegate. */
function pair(number: number): { readonly proxy: Stored<Pod>; readonly delegate: Stored<Pod> } {
  const metadata = { name: `web-${number}` };
  const proxy = proxyPod({ uid: `uid-${number}`, metadata });
  return { proxy, delegate: delegateOf(proxy, { uid: `delegate-${number}`, metadata }) };
}

interface Has {
  /** Delegates in the member. */
  readonly has?: Stored<Pod>[];
  /** Delegates that its watch has shown. */
  readonly shows?: readonly Stored<Pod>[];
}

/** Returns a member, and the requests that it received. */
function memberOf(name: string, { has = [], shows = [] }: Has) {
  const requests: string[] = [];
  const failures: unknown[] = [];
  const state: { failure?: Error; answers?: Promise<void>; hangsIn?: string } = {};
  const answer = async <T>(request: string, value: T): Promise<T> => {
    requests.push(request);
    await (request === state.hangsIn ? new Promise(() => {}) : state.answers);
    if (state.failure !== undefined) throw state.failure;
    return value;
  };
  const client = fakeClient({
    find: (_resource: unknown, { name: pod }: { name: string }) => {
      const found = has.find(({ metadata }) => metadata.name === pod);
      return answer("find", found);
    },
    list: (_resource: unknown, { labelSelector, continue: token }: ListOptions) => {
      const items = token === undefined ? has.slice(0, 1) : has.slice(1);
      const following = token === undefined ? { continue: "more" } : {};
      return answer(`list ${labelSelector}`, { items, resourceVersion: "9", size: 1, ...following });
    },
  });
  const get = (key: ObjectKey) => shows.find(({ metadata }) => objectKey(metadata) === key);
  const noteFailure = (error: unknown): void => void failures.push(error);
  const west = member(name, client, { delegates: delegates({ get }), mistaken: undefined, noteFailure });
  return { member: west, requests, failures, state };
}

/** Returns the members `west` and `east`, each with its delegates. */
function asking(west: Has, others: Has = {}) {
  const clock = { now: since };
  const memories = new Memories({ now: () => 0 });
  const told: string[] = [];
  const proxies = new Map<ObjectKey, Stored<Pod>>();
  const members = { west: memberOf("west", west), east: memberOf("east", others) };
  const late = new PreviousLeader({
    registry: { member: (name) => Object.values(members).find((each) => each?.member.name === name)?.member },
    identity: { id: "host-id", name: "cern" },
    clock: { now: () => clock.now, wall: () => clock.now },
    memories,
    proxies,
    sync: { tellOnce: (_key, _uid, _reason, message) => void told.push(message) },
  });
  const askAll = (number: number, names: readonly string[], from = since) => {
    const { proxy } = pair(number);
    const { uid: proxyUid } = proxy.metadata;
    const key = objectKey(proxy.metadata);
    if (!proxies.has(key)) proxies.set(key, proxy);
    if (memories.of(proxyUid).fresh) memories.noteInherited(proxyUid);
    const context = { key, signal: new AbortController().signal, heardAt: 0, log };
    const asked = names.map((name) => ({ name, since: from }));
    return late.readDelegate({ type: "readPreviousDelegate", proxyUid, members: asked }, context);
  };
  const ask = (number: number, from = since, member = "west") => askAll(number, [member], from);
  const { requests, state } = members.west;
  /** Asks for so many pods that lists replace single reads. */
  const askFew = async (): Promise<void> => {
    for (let number = 1; number <= 10; number += 1) await ask(100 + number);
    requests.length = 0;
  };
  return { ask, askAll, askFew, clock, members, memories, proxies, requests, state, told };
}

test("keeps a pod in a member with a late delegate until its watch shows it, and denies it where there is none", async () => {
  const { proxy, delegate } = pair(1);
  const { ask, memories, requests } = asking({ has: [delegate] });
  const shown = await ask(1);
  expect(memories.of("uid-1")).toMatchObject({ uncertain: "west" });
  expect(memories.of("uid-1").confirmedAbsent).toBeUndefined();
  expect(shown?.(world(proxy, [memberView("west")]))).toBe(false);
  expect(shown?.(world(proxy, [memberView("west", { delegate })]))).toBe(true);

  await ask(2);
  expect(memories.of("uid-2").uncertain).toBeUndefined();
  expect([...(memories.of("uid-2").confirmedAbsent ?? [])]).toEqual(["west"]);
  expect(requests).toEqual(["find", "find"]);
  expect(await ask(3, since, "gone")).toBeUndefined();
});

test("reads the first ten proxies one by one, and all others from one list", async () => {
  const [late, seen] = [pair(2).delegate, pair(3).delegate];
  const { ask, askFew, memories, requests } = asking({ has: [late, seen], shows: [seen] });
  await askFew();
  await Promise.all([1, 2, 3].map((number) => ask(number)));
  await ask(4);
  const page = `list ${delegateSelector("host-id")}`;
  const pages = [page, page];
  expect(requests).toEqual([...pages, "find"]);
  expect([1, 2, 3, 4].map((number) => memories.of(`uid-${number}`).uncertain)).toEqual([
    undefined,
    "west",
    // The next decision sees it.
    undefined,
    undefined,
  ]);
});

test("counts a delegate that was listed and is gone as absent", async () => {
  const has = [pair(1).delegate, pair(2).delegate];
  const { ask, askFew, memories, requests } = asking({ has });
  await askFew();
  await ask(1);
  expect(memories.of("uid-1").uncertain).toBe("west");
  has.shift();
  memories.noteAbsent("uid-1");
  await ask(1);
  expect(memories.of("uid-1").uncertain).toBeUndefined();
  expect([...(memories.of("uid-1").confirmedAbsent ?? [])]).toEqual(["west"]);
  expect(requests.filter((request) => request === "find")).toHaveLength(2);
});

test("takes no pod for a delegate that someone derived from one under another name", async () => {
  const { delegate } = pair(1);
  const derived = { ...delegate, metadata: { ...delegate.metadata, name: "web-1-debug", uid: "derived" } };
  const { ask, askFew, memories, requests } = asking({ has: [derived] });
  await askFew();
  await ask(1);
  expect([...(memories.of("uid-1").confirmedAbsent ?? [])]).toEqual(["west"]);
  expect(requests).not.toContain("find");
});

test("processes a long list in slices that yield to other work", async () => {
  const { ask, askFew, memories, state } = asking({});
  await askFew();
  const listed = Promise.withResolvers<void>();
  state.answers = listed.promise;
  const numbers = [1, 2, 3, 4, 5];
  let done = false;
  const asked = Promise.all(numbers.map((number) => ask(number))).then(() => {
    done = true;
  });
  let now = performance.now();
  const slow = vi.spyOn(performance, "now").mockImplementation(() => {
    now += 20;
    return now;
  });
  listed.resolve();
  const noted = new Set<number>();
  while (!done) {
    noted.add(numbers.filter((number) => memories.of(`uid-${number}`).confirmedAbsent !== undefined).length);
    await new Promise(setImmediate);
  }
  slow.mockRestore();
  await asked;
  expect([...noted]).toEqual(expect.arrayContaining([1, 2, 3, 4]));
});

test("ignores a list that began before the earlier leader's requests had ended, and a failed one", async () => {
  const { ask, askFew, clock, memories, requests, state } = asking({});
  await askFew();
  await ask(1);
  clock.now += 500;
  await ask(2, since + 500);
  expect(requests).toHaveLength(4);
  state.failure = failure("ServerError", "etcdserver: request timed out");
  clock.now += 500;
  await Promise.all([3, 4].map((number) => expect(ask(number, since + 1000)).rejects.toBe(state.failure)));
  expect(requests).toHaveLength(5);
  expect(memories.of("uid-3").confirmedAbsent).toBeUndefined();
  delete state.failure;
  await ask(3, since + 1000);
  expect(memories.of("uid-3").confirmedAbsent).toBeDefined();
});

test("reports a member that goes on failing to answer", async () => {
  const { ask, clock, requests, state, told } = asking({});
  state.failure = failure("ServerError", "etcdserver: request timed out");
  for (let attempt = 1; attempt <= 12; attempt += 1) await expect(ask(1)).rejects.toBe(state.failure);
  expect(told).toEqual([]);
  clock.now += 5000;
  await expect(ask(1)).rejects.toBe(state.failure);
  expect(told).toEqual([
    "west: may have the pod from before the controller started, and fails to say so: etcdserver: request timed out",
  ]);
  // A failed read does not cause a list of the whole member.
  expect(new Set(requests)).toEqual(new Set(["find"]));
});

describe("members that are asked at once", () => {
  const busyFor = (retryAfterMs: number): KubeError =>
    kubeError("TooManyRequests", "busy", { cluster: "east", verb: "list", retryAfterMs });
  const broken = failure("ServerError", "etcdserver: request timed out");

  test("get their answers noted although another one hangs and fails", async () => {
    const { askAll, members, memories } = asking({});
    const west = Promise.withResolvers<void>();
    members.west.state.answers = west.promise;
    const asked = askAll(1, ["west", "east"]);
    expect([members.west.requests, members.east.requests]).toEqual([["find"], ["find"]]);
    west.reject(broken);
    await expect(asked).rejects.toBe(broken);
    expect([members.west.failures, members.east.failures]).toEqual([[broken], []]);
    expect([...(memories.of("uid-1").confirmedAbsent ?? [])]).toEqual(["east"]);
  });

  test("are suspected at once when they fail, although others hang", async () => {
    const { askAll, members } = asking({});
    members.west.state.answers = new Promise(() => {});
    members.east.state.failure = broken;
    void askAll(1, ["west", "east"]);
    await vi.waitFor(() => expect(members.east.failures).toEqual([broken]));
  });

  test("deny nothing if they were connected anew meanwhile", async () => {
    const { askAll, members, memories } = asking({}, { has: [pair(1).delegate] });
    const west = Promise.withResolvers<void>();
    members.west.state.answers = west.promise;
    const asked = askAll(1, ["west", "east"]);
    members.east = memberOf("east", {});
    west.resolve();
    await asked;
    expect([...(memories.of("uid-1").confirmedAbsent ?? [])]).toEqual(["west"]);
    expect(memories.of("uid-1").uncertain).toBeUndefined();
  });

  test("deny nothing for a pod that has gone meanwhile", async () => {
    const { askAll, members, memories } = asking({}, { has: [pair(1).delegate] });
    const west = Promise.withResolvers<void>();
    members.west.state.answers = west.promise;
    const asked = askAll(1, ["west", "east"]);
    memories.forget("uid-1");
    west.resolve();
    await asked;
    expect(memories.of("uid-1")).toEqual(new Memories({ now: () => 0 }).of("uid-1"));
  });

  test("hold up no pod by a failure after they reconnected or left", async () => {
    const closed = failure("NotSent", "the client was closed");
    const { askAll, clock, members, memories, told } = asking({});
    clock.now += 5000;
    for (const by of [{ east: memberOf("east", {}) }, { east: undefined }]) {
      const hangs = Promise.withResolvers<void>();
      members.east.state.answers = hangs.promise;
      const asked = askAll(1, ["west", "east"]);
      Object.assign(members, by);
      hangs.reject(closed);
      expect((await asked)?.(world(pair(1).proxy, []))).toBe(true);
      expect([...(memories.of("uid-1").confirmedAbsent ?? [])]).toEqual(["west"]);
    }
    expect(told).toEqual([]);
  });

  test("deny nothing if another cluster is found to answer in their place", async () => {
    const { askAll, members, memories } = asking({});
    const west = Promise.withResolvers<void>();
    members.west.state.answers = west.promise;
    const asked = askAll(1, ["west", "east"]);
    await vi.waitFor(() => expect(members.east.requests).toEqual(["find"]));
    withState(members.east.member, { mistaken: "another cluster answers" });
    west.resolve();
    await asked;
    expect([...(memories.of("uid-1").confirmedAbsent ?? [])]).toEqual(["west"]);
  });

  test("are asked once more at the same time if their lists have the pod", async () => {
    const { askAll, askFew, members } = asking({ has: [pair(1).delegate] }, { has: [pair(1).delegate] });
    await askFew();
    for (let number = 1; number <= 10; number += 1) await askAll(200 + number, ["east"]);
    members.east.requests.length = 0;
    members.west.state.hangsIn = "find";
    void askAll(1, ["west", "east"]);
    await vi.waitFor(() => expect(members.west.requests).toContain("find"));
    await vi.waitFor(() => expect(members.east.requests).toContain("find"));
  });

  test("keep a pod that they have, whatever the others fail with", async () => {
    const { proxy, delegate } = pair(1);
    const { askAll, clock, members, memories, told } = asking({}, { has: [delegate] });
    members.west.state.failure = broken;
    clock.now += 5000;
    const shown = await askAll(1, ["west", "east"]);
    expect(memories.of("uid-1").uncertain).toBe("east");
    expect(shown?.(world(proxy, [memberView("west"), memberView("east")]))).toBe(false);
    expect(shown?.(world(proxy, [memberView("west"), memberView("east", { delegate })]))).toBe(true);
    expect([members.west.failures, told]).toEqual([[broken], []]);
  });

  test("have the same failing one reported each time, and the longest Retry-After observed", async () => {
    const { askAll, clock, members, told } = asking({});
    members.west.state.failure = broken;
    members.east.state.failure = broken;
    clock.now += 5000;
    for (const names of [
      ["west", "east"],
      ["west", "gone", "east"],
    ]) {
      await expect(askAll(1, names)).rejects.toBe(broken);
    }
    expect(told.map((message) => message.split(":")[0])).toEqual(["west", "west"]);
    members.east.state.failure = busyFor(60_000);
    await expect(askAll(1, ["west", "east"])).rejects.toBe(members.east.state.failure);
  });

  describe("have a pod decided on at once, despite Retry-After and another one that hangs,", () => {
    const { proxy } = pair(1);
    const key = objectKey(proxy.metadata);
    const changed = (metadata: Partial<ObjectMeta>): Stored<Pod> => ({
      ...proxy,
      metadata: { ...proxy.metadata, resourceVersion: "2", ...metadata },
    });
    test.each([
      { when: "is being deleted", by: changed({ deletionTimestamp: "2026-01-01T00:00:00Z" }), tells: 0 },
      { when: "has gone", by: undefined, tells: 0 },
      { when: "is another one", by: changed({ uid: "uid-2" }), tells: 0 },
      { when: "has changed", by: changed({ annotations: { "legation.dev/clusters": "east" } }), tells: 1 },
    ])("if it $when", async ({ by, tells }) => {
      const { askAll, clock, members, proxies, told } = asking({});
      clock.now += 5000;
      members.west.state.failure = busyFor(60_000);
      const east = Promise.withResolvers<void>();
      members.east.state.answers = east.promise;
      const asked = askAll(1, ["west", "east"]);
      if (by === undefined) proxies.delete(key);
      else proxies.set(key, by);
      east.reject(broken);
      const shown = await asked;
      expect(shown?.(world(by, [memberView("west"), memberView("east")]))).toBe(true);
      expect(told).toHaveLength(tells);
    });
  });
});
