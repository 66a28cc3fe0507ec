import { expect, test } from "vitest";
import { DepartedClusters } from "../../../src/controllers/departed-clusters.ts";
import type { ControllerEvents } from "../../../src/controllers/events.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";

const LONG_MS = 10 * 60_000;

function scene() {
  const clock = new FakeClock();
  const metrics = new Metrics();
  const events = new Events<ControllerEvents>();
  const joined = new Set(["west", "east"]);
  const registry = { cluster: (name: string) => (joined.has(name) ? {} : undefined) };
  const departed = new DepartedClusters({ registry, events, metrics, clock });
  for (const cluster of ["host", "west", "east"]) {
    metrics.observeRequest(cluster, "create", "pods", "201", 0.1);
    metrics.countWatch(cluster, "pods");
    metrics.countWatchEvents(cluster, "pods", 1, 100);
    metrics.members.observeStage("bind", cluster, 0.1);
    metrics.members.countOrphan(cluster);
    metrics.members.countHeld(cluster);
    metrics.members.countStream(cluster, 1);
  }
  const clusters = async (): Promise<string[]> => {
    const found = (await metrics.registry.metrics()).matchAll(/cluster="([^"]+)"/g);
    return [...new Set([...found].map(([, name = ""]) => name))].sort();
  };
  return { clock, events, joined, departed, clusters };
}

test("drops all series of a Cluster that left, and no others", async () => {
  const { clock, events, joined, clusters } = scene();
  events.emit("cluster", "west");
  joined.delete("east");
  events.emit("cluster", "east");
  expect(await clusters()).toEqual(["east", "host", "west"]);
  await clock.advance(LONG_MS);
  await settle();
  expect(await clusters()).toEqual(["host", "west"]);
});

test("keeps the series of a Cluster that joined again at once", async () => {
  const { clock, events, joined, clusters } = scene();
  joined.delete("west");
  events.emit("cluster", "west");
  joined.add("west");
  events.emit("cluster", "west");
  await clock.advance(LONG_MS);
  await settle();
  expect(await clusters()).toEqual(["east", "host", "west"]);
});

test("drops nothing after it was stopped", async () => {
  const { clock, events, joined, departed, clusters } = scene();
  joined.delete("west");
  events.emit("cluster", "west");
  departed.stop();
  await clock.advance(LONG_MS);
  await settle();
  expect(await clusters()).toContain("west");
});
