import { beforeEach, describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/cluster.ts";
import { HOST_LABEL, OWNER_ANNOTATION } from "../../../src/api/keys.ts";
import type { KubeObject, ObjectKey, Stored } from "../../../src/api/kubernetes.ts";
import { confirmedClient } from "../../../src/clusters/confirmed-client.ts";
import { JoinedIdentity } from "../../../src/clusters/identity.ts";
import { Member, type MemberEvents } from "../../../src/clusters/member.ts";
import type { ClusterClient, WatchEvent, WatchOptions } from "../../../src/kube/client.ts";
import type { KubeError, KubeErrorCode } from "../../../src/kube/errors.ts";
import { pods, type Resource } from "../../../src/kube/resources.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { answerOf, listing, writing } from "../../support/builders/answers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const KEY = "default/web" as ObjectKey;
const delegate = {
  metadata: {
    namespace: "default",
    name: "web",
    uid: "d",
    resourceVersion: "5",
    labels: { [HOST_LABEL]: "host-id" },
    annotations: { [OWNER_ANNOTATION]: "p" },
  },
};

/** The cluster that answers at the member's address. */
interface Server {
  /** uid of its kube-system namespace, or why it is not told. */
  uid: string | KubeErrorCode;
  items: readonly object[];
  up: boolean;
}

let clock: FakeClock;
let server: Server;
let told: string[];
let asked: number;
let lists: number;
let watches: PromiseWithResolvers<void>[];

function failed(code: KubeErrorCode): KubeError {
  return kubeError(code, `answer ${code}`, { verb: "get", resource: "x" });
}

function answering(): void {
  if (!server.up) throw failed("NotSent");
}

function client(): ClusterClient {
  return fakeClient({
    raw: async ({ path }) => {
      answering();
      return path === "/version" ? { gitVersion: "v1.36.0" } : "ok";
    },
    find: async <T extends KubeObject>(_resource: Resource<T>) => {
      answering();
      asked += 1;
      if (server.uid === "Forbidden" || server.uid === "ServerError") throw failed(server.uid);
      return answerOf<T>({ metadata: { name: "kube-system", uid: server.uid } });
    },
    list: listing((plural) => {
      answering();
      if (plural === "pods") lists += 1;
      return plural === "pods" ? server.items : [];
    }, "5"),
    watch: async function* <T extends KubeObject>(
      _resource: Resource<T>,
      { onOpen, signal }: WatchOptions,
    ): AsyncGenerator<WatchEvent<T>> {
      answering();
      onOpen?.();
      const ends = Promise.withResolvers<void>();
      watches.push(ends);
      signal.addEventListener("abort", () => ends.reject(signal.reason));
      await ends.promise;
      yield* [];
    },
    ...writing(({ body }) => body),
  });
}

function cluster(uid?: string): Stored<Cluster> {
  const annotations = uid === undefined ? {} : { "legation.dev/member-uid": uid };
  return {
    metadata: { name: "west", uid: "c", resourceVersion: "1", annotations },
    spec: { credentialsSecret: { name: "member-west" } },
  };
}

async function started(recorded?: string): Promise<Member> {
  const events = new Events<MemberEvents>();
  events.on("delegate", (_member, key) => told.push(key));
  const member = new Member({
    cluster: cluster(recorded),
    client: client(),
    hostId: "host-id",
    events,
    clock,
    log: createLogger({ level: "silent" }),
  });
  member.start();
  await clock.advance(1_000);
  return member;
}

/** The member is away for a while; then `next` is at its address. */
async function outage(next: Partial<Server>): Promise<void> {
  server.up = false;
  for (const { reject } of watches.splice(0)) reject(failed("AnswerLost"));
  await clock.advance(90_000);
  server = { ...server, ...next, up: true };
  await clock.advance(30_000);
}

beforeEach(() => {
  clock = new FakeClock();
  server = { uid: "uid-of-west", items: [delegate], up: true };
  told = [];
  asked = 0;
  lists = 0;
  watches = [];
});

test("keeps its delegates, is unreachable, and names the remedy when another cluster answers", async () => {
  const member = await started("uid-of-west");
  expect([member.reachable, member.delegates.size]).toEqual([true, 1]);
  told = [];
  await outage({ uid: "uid-of-other", items: [] });
  expect(member.probed).toMatchObject({ reachable: true });
  expect([member.reachable, member.syncing, member.delegates.size, told]).toEqual([false, false, 1, []]);
  expect(member.unreadable.pods).toBe(
    "another cluster answers: its namespace kube-system has uid uid-of-other, that of the member has uid-of-west; correct the " +
      "server and credentials in Secret legation-system/member-west, or, when the member was built anew and none of its pods runs " +
      "any more, run `kubectl annotate --overwrite clusters.legation.dev west legation.dev/member-uid=uid-of-other`",
  );
  expect(member.candidate().closed?.message).toContain("another cluster answers");
  await outage({ uid: "uid-of-west", items: [delegate] });
  expect([member.reachable, member.unreadable, member.delegates.size, told]).toEqual([true, {}, 1, []]);
  await member.stop();
});

test("sends nothing to another cluster, even over a moved connection without a watch", async () => {
  const member = await started("uid-of-west");
  const pod = { metadata: { namespace: "default", name: "new" } };
  await expect(member.client.create(pods, pod)).resolves.toMatchObject(pod);
  server.uid = "uid-of-other";
  await clock.advance(70_000);
  expect(member.reachable).toBe(false);
  await expect(member.client.create(pods, pod)).rejects.toMatchObject({ code: "NotSent" });
  await expect(member.client.find(pods, { namespace: "default", name: "web" })).rejects.toThrow("another cluster");
  const watch = member.client.watch(pods, { resourceVersion: "1", signal: new AbortController().signal });
  await expect(watch[Symbol.asyncIterator]().next()).rejects.toThrow("another cluster");
  await member.stop();
});

test("ends a watch that leads to another cluster, and lists when the member answers again", async () => {
  const member = await started("uid-of-west");
  const listed = lists;
  // The address moves, and moves back, and no watch is cut: what it brings of the other one has that one's versions.
  server = { ...server, uid: "uid-of-other" };
  await clock.advance(70_000);
  expect([member.reachable, member.delegates.size]).toEqual([false, 1]);
  server = { ...server, uid: "uid-of-west", items: [] };
  await clock.advance(70_000);
  expect([member.reachable, member.delegates.size]).toEqual([true, 0]);
  expect(lists).toBeGreaterThan(listed);
  await member.stop();
});

test("does not reopen a watch at another cluster, and lists the member later", async () => {
  const member = await started("uid-of-west");
  await clock.advance(20_000);
  server = { ...server, uid: "uid-of-other" };
  const opened = watches.length;
  for (const { resolve } of watches) resolve();
  await clock.advance(1_000);
  expect([member.reachable, member.delegates.size, watches.length - opened]).toEqual([false, 1, 0]);
  server = { ...server, uid: "uid-of-west", items: [] };
  await clock.advance(30_000);
  expect([member.reachable, member.delegates.size, told.at(-1)]).toEqual([true, 0, KEY]);
  await member.stop();
});

test("accepts a rebuilt member once its Cluster records the uid, without its earlier pods", async () => {
  const member = await started("uid-of-west");
  await outage({ uid: "uid-of-other", items: [] });
  expect(member.delegates.size).toBe(1);
  member.cluster = cluster("uid-of-other");
  await clock.advance(15_000);
  expect([member.reachable, member.delegates.size]).toEqual([true, 0]);
  await member.stop();
});

test("reads nothing from another cluster, nor from one that does not answer the check", async () => {
  server = { ...server, uid: "uid-of-other", items: [] };
  const other = await started("uid-of-west");
  expect([other.reachable, other.read, other.nodesRead, other.syncing]).toEqual([false, false, false, false]);
  await other.stop();
  server.uid = "ServerError";
  const silent = await started("uid-of-west");
  expect([silent.reachable, silent.read, silent.mistaken]).toEqual([false, false, undefined]);
  await silent.stop();
});

test.each([
  ["whose Cluster records no identity", undefined, 1],
  ["that does not permit reading its identity", "Forbidden", 1],
])("believes a member %s", async (_what, uid, least) => {
  if (uid !== undefined) server.uid = "Forbidden";
  const member = await started(uid === undefined ? undefined : "uid-of-west");
  await outage({ items: [] });
  expect([member.reachable, member.mistaken, told.includes(KEY)]).toEqual([true, undefined, true]);
  expect(Math.min(asked, 1)).toBe(least);
  await member.stop();
});

test("does not repeat a forbidden check before each list, but after an outage", async () => {
  server.uid = "Forbidden";
  const member = await started("uid-of-west");
  await clock.advance(20_000);
  for (let round = 0; round < 3; round += 1) {
    for (const { reject } of watches.splice(0)) reject(failed("Gone"));
    await clock.advance(5_000);
  }
  expect([asked, member.reachable]).toEqual([1, true]);
  const lost = failed("AnswerLost");
  member.noteFailure(lost);
  await clock.advance(5_000);
  // Told again, it is the same failure.
  member.noteFailure(lost);
  await clock.advance(5_000);
  expect(asked).toBe(2);
  member.noteFailure(failed("AnswerLost"));
  await clock.advance(5_000);
  expect(asked).toBe(3);
  await member.stop();
});

test("checks the identity once a minute while all is well", async () => {
  const member = await started("uid-of-west");
  expect(asked).toBe(1);
  await clock.advance(600_000);
  expect(asked).toBeLessThanOrEqual(12);
  await member.stop();
});

test("reaches no other cluster by any method of the client", async () => {
  const ref = { namespace: "default", name: "web" };
  const query = new URLSearchParams();
  const exec = { method: "POST", protocol: "SPDY/3.1", query, headers: {} } as const;
  const { signal } = new AbortController();
  type Requests = Record<Exclude<keyof ClusterClient, "cluster" | "close">, () => Promise<unknown>>;
  const requestsBy = (by: ClusterClient): Requests => ({
    get: () => by.get(pods, ref),
    find: () => by.find(pods, ref),
    list: () => by.list(pods),
    create: () => by.create(pods, delegate),
    createSubresource: () => by.createSubresource(pods, ref, "eviction", {}),
    replace: () => by.replace(pods, delegate),
    patch: () => by.patch(pods, ref, { type: "merge", body: {} }),
    delete: () => by.delete(pods, ref),
    raw: () => by.raw({ method: "POST", path: "/apis" }),
    watch: () => by.watch(pods, { resourceVersion: "1", signal })[Symbol.asyncIterator]().next(),
    upgrade: () => by.upgrade(pods, ref, "exec", exec),
    stream: () => by.stream(pods, ref, "log", { query }),
  });
  // The client behind it gets no request.
  const identity = { problem: "another cluster answers", mistaken: AbortSignal.abort(), confirm: async () => {} };
  const confirmed = confirmedClient(fakeClient({}), identity, { of: (_, send) => send() });
  for (const request of Object.values(requestsBy(confirmed))) {
    await expect(request()).rejects.toThrow("another cluster answers");
  }
});

describe("a request that fails during an identity check", () => {
  /** An identity whose questions are answered one by one. */
  function asking() {
    const answers: PromiseWithResolvers<object>[] = [];
    const identity = new JoinedIdentity({
      client: fakeClient({
        find: async <T extends KubeObject>(_resource: Resource<T>) => {
          const answer = Promise.withResolvers<object>();
          answers.push(answer);
          return answerOf<T>(await answer.promise);
        },
      }),
      cluster: () => cluster("uid-of-west"),
      onFound: () => {},
      clock,
      onChange: () => {},
    });
    const answer = async (index: number, uid: string): Promise<void> => {
      answers[index]?.resolve({ metadata: { name: "kube-system", uid } });
      await clock.advance(0);
    };
    return { identity, answers, answer };
  }

  test("makes waiting and later callers wait for a new check", async () => {
    const { identity, answers, answer } = asking();
    const lists = [identity.confirm()];
    identity.doubt();
    lists.push(identity.confirm());
    expect(answers).toHaveLength(2);
    await answer(0, "uid-of-west");
    expect(await Promise.race([...lists, "nobody"])).toBe("nobody");
    lists.push(identity.confirm());
    await answer(1, "uid-of-other");
    await Promise.all(lists);
    expect(answers).toHaveLength(2);
    expect(identity.problem).toContain("uid-of-other");
  });

  test("is not decided by a check that began before", async () => {
    const { identity, answers, answer } = asking();
    const list = identity.confirm();
    identity.doubt();
    const later = identity.confirm();
    await answer(1, "uid-of-other");
    await later;
    await answer(0, "uid-of-west");
    await list;
    expect(identity.problem).toContain("uid-of-other");
    expect(answers).toHaveLength(2);
  });

  test("causes at most one more check, however many fail", async () => {
    const { identity, answers, answer } = asking();
    const list = identity.confirm();
    for (const index of [0, 1]) {
      identity.doubt();
      await answer(index, "uid-of-west");
    }
    await list;
    expect(answers).toHaveLength(2);
  });
});

test("counts reachability from the member's return, not from its first response", async () => {
  const member = await started("uid-of-west");
  const first = member.reachableSince;
  expect(first).toBeGreaterThan(clock.now() - 1_001);
  await clock.advance(60_000);
  expect(member.reachableSince).toBe(first);
  await outage({});
  expect(member.reachable).toBe(true);
  expect(member.reachableSince).toBeGreaterThanOrEqual(first + 60_000 + 90_000);
  await member.stop();
});
