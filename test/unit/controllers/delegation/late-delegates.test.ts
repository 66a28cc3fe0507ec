import { expect, test } from "vitest";
import { HOST_LABEL } from "../../../../src/api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { Memories } from "../../../../src/controllers/delegation/decisions/memory.ts";
import { LateDelegates } from "../../../../src/controllers/delegation/late-delegates.ts";
import type { ListOptions } from "../../../../src/kube/client.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../cli/client.ts";
import { failure } from "./executing.ts";
import { delegateOf, member as memberView, world } from "./world.ts";

const log = createLogger({ level: "silent" });
const since = 1_001_000;

/** Proxy `uid-N` of the pod `web-N`, and its delegate. */
function pair(number: number): { readonly proxy: Stored<Pod>; readonly delegate: Stored<Pod> } {
  const metadata = { name: `web-${number}` };
  const proxy = proxyPod({ uid: `uid-${number}`, metadata });
  return { proxy, delegate: delegateOf(proxy, { uid: `delegate-${number}`, metadata }) };
}

/** The member `west`, which has some delegates and shows others. */
function asking({ has = [], shows = [] }: { has?: Stored<Pod>[]; shows?: Stored<Pod>[] }) {
  const clock = { now: since };
  const memories = new Memories();
  const told: string[] = [];
  const requests: string[] = [];
  const state: { failure?: Error } = {};
  const answer = async <T>(request: string, value: T): Promise<T> => {
    requests.push(request);
    if (state.failure !== undefined) throw state.failure;
    return value;
  };
  const client = fakeClient({
    find: ((_resource: unknown, { name }: { name: string }) => {
      const found = has.find(({ metadata }) => metadata.name === name);
      return answer("find", found);
    }) as never,
    list: ((_resource: unknown, { labelSelector, continue: token }: ListOptions) => {
      const items = token === undefined ? has.slice(0, 1) : has.slice(1);
      const following = token === undefined ? { continue: "more" } : {};
      return answer(`list ${labelSelector}`, { items, resourceVersion: "9", size: 1, ...following });
    }) as never,
  });
  const get = (key: ObjectKey) => shows.find(({ metadata }) => objectKey(metadata) === key);
  const west = { name: "west", client, delegates: { get }, noteFailure: () => {} };
  const late = new LateDelegates({
    registry: { member: (name: string) => (name === "west" ? west : undefined) },
    identity: { id: "host-id", name: "cern" },
    clock: { now: () => clock.now },
    memories,
    exchange: { tellOnce: (_key: unknown, _uid: unknown, _reason: unknown, message: string) => told.push(message) },
  } as never);
  const ask = (number: number, from = since, member = "west") => {
    const { proxy } = pair(number);
    const { uid: proxyUid } = proxy.metadata;
    if (memories.of(proxyUid).fresh) memories.noteInherited(proxyUid);
    const context = { key: objectKey(proxy.metadata), signal: new AbortController().signal, heardAt: 0, log };
    return late.ask({ type: "ask", member, proxyUid, since: from }, context);
  };
  /** Until lists are what is asked for. */
  const askFew = async (): Promise<void> => {
    for (let number = 1; number <= 10; number += 1) await ask(100 + number);
    requests.length = 0;
  };
  return { ask, askFew, clock, memories, requests, state, told };
}

test("a member that has a late delegate keeps its pod until its watch shows it; one that has none denies it", async () => {
  const { proxy, delegate } = pair(1);
  const { ask, memories, requests } = asking({ has: [delegate] });
  const shown = await ask(1);
  expect(memories.of("uid-1")).toMatchObject({ uncertain: "west" });
  expect(memories.of("uid-1").denied).toBeUndefined();
  expect(shown?.(world(proxy, [memberView("west")]))).toBe(false);
  expect(shown?.(world(proxy, [memberView("west", { delegate })]))).toBe(true);

  await ask(2);
  expect(memories.of("uid-2").uncertain).toBeUndefined();
  expect([...(memories.of("uid-2").denied ?? [])]).toEqual(["west"]);
  expect(requests).toEqual(["find", "find"]);
  expect(await ask(3, since, "gone")).toBeUndefined();
});

test("for the first ten proxies it is asked one by one, and one list answers for all others", async () => {
  const [late, seen] = [pair(2).delegate, pair(3).delegate];
  const { ask, askFew, memories, requests } = asking({ has: [late, seen], shows: [seen] });
  await askFew();
  await Promise.all([1, 2, 3].map((number) => ask(number)));
  await ask(4);
  const pages = [`list ${HOST_LABEL}=host-id`, `list ${HOST_LABEL}=host-id`];
  expect(requests).toEqual([...pages, "find"]);
  expect([1, 2, 3, 4].map((number) => memories.of(`uid-${number}`).uncertain)).toEqual([
    undefined,
    "west",
    // The next decision sees it.
    undefined,
    undefined,
  ]);
});

test("what was listed and has gone since is denied", async () => {
  const has = [pair(1).delegate, pair(2).delegate];
  const { ask, askFew, memories, requests } = asking({ has });
  await askFew();
  await ask(1);
  expect(memories.of("uid-1").uncertain).toBe("west");
  has.shift();
  memories.noteAbsent("uid-1");
  await ask(1);
  expect(memories.of("uid-1").uncertain).toBeUndefined();
  expect([...(memories.of("uid-1").denied ?? [])]).toEqual(["west"]);
  expect(requests.filter((request) => request === "find")).toHaveLength(2);
});

test("a list that was begun before the earlier leader's requests were over does not count, nor one that failed", async () => {
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
  expect(memories.of("uid-3").denied).toBeUndefined();
  delete state.failure;
  await ask(3, since + 1000);
  expect(memories.of("uid-3").denied).toBeDefined();
});

test("the author is told of a member that goes on failing to say so", async () => {
  const { ask, clock, requests, state, told } = asking({});
  state.failure = failure("ServerError", "etcdserver: request timed out");
  for (let attempt = 1; attempt <= 12; attempt += 1) await expect(ask(1)).rejects.toBe(state.failure);
  expect(told).toEqual([]);
  clock.now += 5000;
  await expect(ask(1)).rejects.toBe(state.failure);
  expect(told).toEqual([
    "west: may have the pod from before the controller started, and fails to say so: etcdserver: request timed out",
  ]);
  // What has not been answered makes nobody read all that the member has.
  expect(new Set(requests)).toEqual(new Set(["find"]));
});
