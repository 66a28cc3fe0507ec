import { expect, test } from "vitest";
import { Controller } from "../../../src/runtime/controller.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";

interface Scene {
  readonly clock: FakeClock;
  readonly metrics: Metrics;
  readonly lines: () => readonly Record<string, unknown>[];
  readonly heard: number[];
  readonly controller: Controller<string, { uid: string }, string>;
  value(metric: string, label?: string): Promise<number | undefined>;
}

/** A controller with one action for each key; `act` does it. */
function scene(act: () => Promise<void>): Scene {
  const clock = new FakeClock();
  const metrics = new Metrics();
  const heard: number[] = [];
  let text = "";
  const log = createLogger({
    level: "debug",
    destination: {
      write: (line) => {
        text += line;
      },
    },
  });
  const controller = new Controller<string, { uid: string }, string>(
    {
      name: "test",
      observe: () => ({ uid: "1234" }),
      identify: ({ uid }) => ({ proxy: uid }),
      decide: () => ({ actions: ["act"], outcome: "Done" }),
      execute: async (_action, context) => {
        heard.push(context.heardAt);
        context.log.info("acting");
        await act();
        return undefined;
      },
    },
    { clock, log, metrics },
  );
  return {
    clock,
    metrics,
    heard,
    controller,
    lines: () => text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)])),
    value: async (metric, label) => {
      const line = (await metrics.registry.metrics())
        .split("\n")
        .find((candidate) => candidate.startsWith(`${metric}{`) && candidate.includes(label ?? 'name="test"'));
      return line === undefined ? undefined : Number(line.split(" ").at(-1));
    },
  };
}

test("leaves low-priority keys out of the queue latency, unless an event enqueues them", async () => {
  const { clock, controller, heard, value } = scene(async () => {});
  const begunAt = clock.now();
  controller.enqueueBehind(["team/waits", "team/news"], () => {});
  clock.now = () => begunAt + 60_000;
  controller.enqueue("team/news");
  await settle();
  expect(heard).toEqual([begunAt + 60_000, begunAt]);
  expect(await value("workqueue_queue_duration_seconds_count")).toBe(1);
  expect(await value("workqueue_queue_duration_seconds_sum")).toBe(0);
  await controller.stop();
});

test("exports the queue's depth, latency and running reconciles", async () => {
  const release = Promise.withResolvers<void>();
  const { controller, clock, value } = scene(() => release.promise);
  controller.enqueue("a");
  controller.enqueue("a");
  controller.enqueue("b");
  expect(await value("workqueue_depth")).toBe(2);
  expect(await value("workqueue_adds_total")).toBe(2);
  await settle();
  await clock.advance(3_000);
  expect(await value("workqueue_depth")).toBe(0);
  expect(await value("workqueue_queue_duration_seconds_count")).toBe(2);
  expect(await value("workqueue_unfinished_work_seconds")).toBe(6);
  expect(await value("workqueue_longest_running_processor_seconds")).toBe(3);
  release.resolve();
  await settle();
  expect(await value("workqueue_unfinished_work_seconds")).toBe(0);
  expect(await value("workqueue_work_duration_seconds_sum")).toBe(6);
  expect(await value("workqueue_retries_total")).toBe(0);
  expect(await value("legation_reconcile_duration_seconds_count", 'outcome="Done"')).toBe(2);
  await controller.stop();
});

test("counts a failure as a retry, and keeps the time of the first event", async () => {
  let failures = 1;
  const { controller, clock, value, heard } = scene(async () => {
    failures -= 1;
    if (failures === 0) throw new Error("no");
  });
  const begun = clock.now();
  controller.enqueue("a");
  await settle();
  expect(await value("workqueue_retries_total")).toBe(1);
  await clock.advance(1_000);
  expect(heard).toEqual([begun, begun]);
  controller.enqueue("a");
  await settle();
  expect(heard.at(-1)).toBe(clock.now());
  await controller.stop();
});

test("keeps the time of an event that arrived during a reconcile", async () => {
  let release = Promise.withResolvers<void>();
  const { controller, clock, heard } = scene(() => release.promise);
  controller.enqueue("a");
  await settle();
  await clock.advance(500);
  const news = clock.now();
  controller.enqueue("a");
  await clock.advance(500);
  const before = release;
  release = Promise.withResolvers();
  before.resolve();
  await settle();
  expect(heard.at(-1)).toBe(news);
  release.resolve();
  await controller.stop();
});

test("names the object and its uid in every log line of a reconcile", async () => {
  const { controller, lines } = scene(async () => {
    throw new Error("no");
  });
  controller.enqueue("shop/web");
  await settle();
  expect(lines().map(({ msg }) => msg)).toEqual(["acting", "action failed", "reconciled"]);
  for (const line of lines()) expect(line).toMatchObject({ controller: "test", object: "shop/web", proxy: "1234" });
  await controller.stop();
});

test("adds up the queues of controllers of one name, as DelegatedTypes have them, and forgets those that stopped", async () => {
  const { clock, metrics } = scene(async () => {});
  const log = createLogger({ level: "silent" });
  const ends = Promise.withResolvers<undefined>();
  const controllers = ["configmaps", "gizmos"].map(
    (type) =>
      new Controller<string, string, string>(
        {
          name: "whole-objects",
          observe: () => type,
          decide: () => ({ actions: ["act"], outcome: "Done" }),
          execute: () => ends.promise,
        },
        { clock, log, metrics },
      ),
  );
  const sample = async (metric: string): Promise<string | undefined> => {
    const text = await metrics.registry.metrics();
    return new RegExp(`^workqueue_${metric}\\{name="whole-objects",[^}]*\\} (.*)$`, "m").exec(text)?.[1];
  };
  const [first, second] = controllers;
  first?.enqueue("team/a");
  first?.enqueue("team/b");
  second?.enqueue("team/c");
  expect(await sample("depth")).toBe("3");
  await settle();
  await clock.advance(5_000);
  expect(await sample("unfinished_work_seconds")).toBe("15");
  ends.resolve(undefined);
  await settle();
  await second?.stop();
  first?.enqueue("team/a");
  expect(await sample("depth")).toBe("1");
  await first?.stop();
  expect(await sample("depth")).toBe("0");
});
