import fc from "fast-check";
import { expect, test } from "vitest";
import { planShards } from "../../../src/controllers/shard-plan.ts";

const FREE = undefined;

test.each([
  { name: "the only replica takes all", me: "a", replicas: ["a"], holders: [FREE, FREE], take: [0, 1], give: [] },
  { name: "two take a half each", me: "b", replicas: ["a", "b"], holders: [FREE, FREE], take: [1], give: [] },
  {
    name: "the fullest gives to a replica without any",
    me: "b",
    replicas: ["a", "b", "c"],
    holders: ["a", "b", "b", "a"],
    take: [],
    give: [2],
  },
  {
    name: "a replica keeps the first shard longest",
    me: "a",
    replicas: ["a", "b"],
    holders: ["a", "a", "a", "a"],
    take: [],
    give: [2, 3],
  },
  {
    name: "the shards of a lost replica go to those that have fewer",
    me: "b",
    replicas: ["a", "b"],
    holders: ["a", FREE, "b", FREE],
    take: [3],
    give: [],
  },
  { name: "a replica too many gets none", me: "b", replicas: ["a", "b"], holders: ["a"], take: [], give: [] },
])("$name", ({ me, replicas, holders, take, give }) => {
  expect(planShards({ me, replicas, holders })).toMatchObject({ take, give });
});

const NAMES = ["a", "b", "c", "d"];

test("replicas that come and go share the shards evenly within a few rounds, and a settled plan moves nothing", () => {
  const scene = fc.record({
    holders: fc.array(fc.option(fc.constantFrom(...NAMES), { nil: undefined }), { minLength: 1, maxLength: 16 }),
    replicas: fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1 }),
  });
  fc.assert(
    fc.property(scene, ({ holders: before, replicas }) => {
      // The Leases of replicas that are gone end.
      const holders = before.map((holder) => (holder !== undefined && replicas.includes(holder) ? holder : undefined));
      for (let round = 0; round < holders.length + 2; round += 1) {
        const seen = [...holders];
        for (const me of replicas) {
          const { take, give } = planShards({ me, replicas, holders: seen });
          for (const index of give) holders[index] = undefined;
          // Of two that want a Lease, the API server gives it to one.
          for (const index of take) holders[index] ??= me;
        }
      }
      const counts = replicas.map((replica) => holders.filter((holder) => holder === replica).length);
      expect(holders).not.toContain(undefined);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      for (const me of replicas) expect(planShards({ me, replicas, holders })).toMatchObject({ take: [], give: [] });
    }),
  );
});
