import { beforeEach, expect, test } from "vitest";
import { confirmedClient } from "../../../src/clusters/confirmed-client.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { ChangingMember, delegate, KEY } from "./changing-member.ts";

let west: ChangingMember;
beforeEach(() => {
  west = new ChangingMember();
});

test("sends nothing to another cluster, even over a moved connection without a watch", async () => {
  const member = await west.started("uid-of-west");
  const pod = { metadata: { namespace: "default", name: "new" } };
  await expect(member.client.create(pods, pod)).resolves.toMatchObject(pod);
  west.server.uid = "uid-of-other";
  await west.clock.advance(70_000);
  expect(member.reachable).toBe(false);
  await expect(member.client.create(pods, pod)).rejects.toMatchObject({ code: "NotSent" });
  await expect(member.client.find(pods, { namespace: "default", name: "web" })).rejects.toThrow("another cluster");
  const watch = member.client.watch(pods, { resourceVersion: "1", signal: new AbortController().signal });
  await expect(watch[Symbol.asyncIterator]().next()).rejects.toThrow("another cluster");
  await member.stop();
});

test("ends a watch that leads to another cluster, and lists when the member answers again", async () => {
  const member = await west.started("uid-of-west");
  const listed = west.lists;
  // The address moves, and moves back, and no watch is cut: what it brings of the other one has that one's versions.
  west.server = { ...west.server, uid: "uid-of-other" };
  await west.clock.advance(70_000);
  expect([member.reachable, member.delegates.size]).toEqual([false, 1]);
  west.server = { ...west.server, uid: "uid-of-west", items: [] };
  await west.clock.advance(70_000);
  expect([member.reachable, member.delegates.size]).toEqual([true, 0]);
  expect(west.lists).toBeGreaterThan(listed);
  await member.stop();
});

test("does not reopen a watch at another cluster, and lists the member later", async () => {
  const member = await west.started("uid-of-west");
  await west.clock.advance(20_000);
  west.server = { ...west.server, uid: "uid-of-other" };
  const opened = west.watches.length;
  for (const { resolve } of west.watches) resolve();
  await west.clock.advance(1_000);
  expect([member.reachable, member.delegates.size, west.watches.length - opened]).toEqual([false, 1, 0]);
  west.server = { ...west.server, uid: "uid-of-west", items: [] };
  await west.clock.advance(30_000);
  expect([member.reachable, member.delegates.size, west.told.at(-1)]).toEqual([true, 0, KEY]);
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
