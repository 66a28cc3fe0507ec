import { expect, test } from "vitest";
import { key, observing, waiting } from "./observing.ts";
import { delegateOf } from "./world.ts";

test("remembers the remaining one of two delegates of a proxy without a node", () => {
  const stays = delegateOf(waiting, { spec: {} });
  const ends = { ...stays, metadata: { ...stays.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  const { tracker, found } = observing({ proxy: waiting, delegates: { west: ends, east: stays } });
  tracker.update(key);
  expect(found).toEqual(["east"]);
});
