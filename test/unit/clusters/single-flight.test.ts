import { expect, test, vi } from "vitest";
import { SingleFlight } from "../../../src/clusters/single-flight.ts";

const KEY = "west/team";

test("concurrent callers share one creation", async () => {
  const shared = new SingleFlight();
  const create = vi.fn(async () => {});
  await Promise.all([1, 2, 3].map(() => shared.make(KEY, shared.count, create)));
  expect(create).toHaveBeenCalledTimes(1);
});

test("does not repeat the attempt for a caller whose own began before the creation", async () => {
  const shared = new SingleFlight();
  const create = vi.fn(async () => {});
  const seen = shared.count;
  await shared.make(KEY, shared.count, create);
  await shared.make(KEY, seen, create);
  expect(create).toHaveBeenCalledTimes(1);
});

test("repeats the attempt for a caller whose own began after the creation", async () => {
  const shared = new SingleFlight();
  const create = vi.fn(async () => {});
  await shared.make(KEY, shared.count, create);
  await shared.make(KEY, shared.count, create);
  expect(create).toHaveBeenCalledTimes(2);
});

test("rejects all sharing callers after a failure, and tries again at the next call", async () => {
  const shared = new SingleFlight();
  const create = vi.fn(async () => {});
  create.mockRejectedValueOnce(new Error("no"));
  const seen = shared.count;
  const outcomes = await Promise.allSettled([1, 2].map(() => shared.make(KEY, seen, create)));
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await shared.make(KEY, seen, create);
  expect(create).toHaveBeenCalledTimes(2);
});

test("different keys do not wait for each other", async () => {
  const shared = new SingleFlight();
  const never = Promise.withResolvers<void>();
  void shared.make("west/team", 0, () => never.promise);
  await shared.make("east/team", 0, async () => {});
  expect(shared.count).toBe(1);
});

test("drops the oldest of ten thousand creations, and at worst repeats one", async () => {
  const shared = new SingleFlight();
  const create = vi.fn(async () => {});
  const seen = shared.count;
  await shared.make(KEY, seen, create);
  for (let other = 0; other < 9_999; other += 1) await shared.make(`west/${other}`, shared.count, async () => {});
  await shared.make(KEY, seen, create);
  expect(create).toHaveBeenCalledTimes(1);
  await shared.make("west/last", shared.count, async () => {});
  await shared.make(KEY, seen, create);
  expect(create).toHaveBeenCalledTimes(2);
});
