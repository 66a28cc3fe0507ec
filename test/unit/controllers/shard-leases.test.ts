import { beforeEach, expect, test } from "vitest";
import { LEADERLESS_ANNOTATION, SHARDS_ANNOTATION } from "../../../src/api/keys.ts";
import { ShardLeases } from "../../../src/controllers/shard-leases.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const { signal } = new AbortController();
let clock: FakeClock;
let items: object[];
let deleted: string[];
let board: ShardLeases;

beforeEach(() => {
  clock = new FakeClock();
  items = [];
  deleted = [];
  const client = fakeClient({
    list: async () => ({ items }),
    delete: async (_, { name }) => void deleted.push(name),
  });
  board = new ShardLeases({ client, leaseDurationMs: 15_000, clock });
});

function lease(
  name: string,
  holder: string,
  { count = 4, version = "1", renewed = 0, annotations = {}, made = 0 } = {},
): object {
  return {
    metadata: {
      name,
      uid: name,
      resourceVersion: version,
      creationTimestamp: new Date(made).toISOString(),
      annotations: { ...annotations, ...(count === 1 ? {} : { [SHARDS_ANNOTATION]: String(count) }) },
    },
    spec: { holderIdentity: holder, leaseDurationSeconds: 15, renewTime: new Date(renewed).toISOString() },
  };
}

test("knows who holds each shard, and which replicas count as many", async () => {
  items = [
    lease("legation-controller", "a"),
    lease("legation-controller-1", ""),
    lease("legation-controller-3", "b"),
    lease("legation-controller-replica-01", "a"),
    lease("legation-controller-replica-02", "old", { count: 2 }),
    lease("someone-elses", "c"),
  ];
  await board.read(signal);
  expect(board.holders(4)).toEqual(["a", undefined, undefined, "b"]);
  expect(board.replicas(4)).toEqual(["a"]);
});

test("takes a Lease for free once it did not change for its duration, whatever time it names", async () => {
  items = [lease("legation-controller", "a")];
  await board.read(signal);
  await clock.advance(14_000);
  await board.read(signal);
  expect(board.holders(1)).toEqual(["a"]);
  await clock.advance(1_000);
  expect(board.holders(1)).toEqual([undefined]);
  items = [lease("legation-controller", "a", { version: "2" })];
  await board.read(signal);
  expect(board.holders(1)).toEqual(["a"]);
});

test.each([
  {
    what: "a single shard's holder",
    held: lease("legation-controller", "a", { count: 1 }),
    found: "legation-controller",
  },
  { what: "a shard of two", held: lease("legation-controller-1", "a", { count: 2 }), found: "legation-controller-1" },
  { what: "one of as many", held: lease("legation-controller-1", "a"), found: undefined },
  { what: "a released one", held: lease("legation-controller-1", "", { count: 2 }), found: undefined },
])("waits for another number of shards: $what", async ({ held, found }) => {
  items = [held];
  await board.read(signal);
  expect(board.heldByOtherCount(4)).toBe(found);
});

test("deletes Leases of a larger number of shards, and of replicas that stopped, or were killed an hour ago", async () => {
  items = [
    lease("legation-controller", "a", { count: 2 }),
    lease("legation-controller-1", "a", { count: 2 }),
    lease("legation-controller-2", ""),
    lease("legation-controller-replica-01", "a", { renewed: clock.wall() }),
    lease("legation-controller-replica-02", "b", { renewed: clock.wall() - 3_600_001 }),
    lease("legation-controller-replica-03", "", { renewed: clock.wall() }),
    lease("someone-elses", ""),
  ];
  await board.read(signal);
  await board.clean(2, signal);
  expect(deleted).toEqual([
    "legation-controller-2",
    "legation-controller-replica-02",
    "legation-controller-replica-03",
  ]);
});

test("a shard knows the times without a leader from before its Lease was made", async () => {
  const at = (hour: number): string => new Date(hour * 3_600_000).toISOString();
  const unled = `${at(1)}/${at(2)},${at(8)}/${at(9)}`;
  items = [
    lease("legation-controller", "a", { annotations: { [LEADERLESS_ANNOTATION]: unled } }),
    lease("legation-controller-1", "b", { made: 5 * 3_600_000 }),
  ];
  await board.read(signal);
  expect(board.earlier({ index: 1, count: 4 })).toEqual([[3_600_000, 7_200_000]]);
  expect(board.earlier({ index: 0, count: 4 })).toEqual([]);
});
