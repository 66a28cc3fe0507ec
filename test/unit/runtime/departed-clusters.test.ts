import { expect, test } from "vitest";
import { DepartedClusters } from "../../../src/runtime/departed-clusters.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";

const LONG_MS = 10 * 60_000;

function scene() {
  const clock = new FakeClock();
  const metrics = new Metrics();
  const joined = new Set(["west", "east"]);
  const departed = new DepartedClusters({ exists: (name) => joined.has(name), metrics, clock });
  for (const cluster of ["host", "west", "east"]) {
    metrics.observeRequest(cluster, "create", "pods", "201", 0.1);
    metrics.countWatch(cluster, "pods");
    metrics.countWatchEvents(cluster, "pods", 1, 100);
    metrics.members.observeStage("bind", cluster, 0.1);
    metrics.members.countOrphan(cluster);
    metrics.members.countHeld(cluster);
    metrics.members.countStream(cluster, 1);
    metrics.access.count(cluster, 200);
    const { responded, ended } = metrics.access.begin(cluster);
    responded();
    ended();
  }
  const clusters = async (): Promise<string[]> => {
    const found = (await metrics.registry.metrics()).matchAll(/cluster="([^"]+)"/g);
    return [...new Set([...found].map(([, name = ""]) => name))].sort();
  };
  return { clock, joined, departed, clusters };
}

test("drops all series of a Cluster that left, and no others", async () => {
  const { clock, joined, departed, clusters } = scene();
  departed.noteChange("west");
  joined.delete("east");
  departed.noteChange("east");
  expect(await clusters()).toEqual(["east", "host", "west"]);
  await clock.advance(LONG_MS);
  await settle();
  expect(await clusters()).toEqual(["host", "west"]);
});

test("keeps the series of a Cluster that joined again at once", async () => {
  const { clock, joined, departed, clusters } = scene();
  joined.delete("west");
  departed.noteChange("west");
  joined.add("west");
  departed.noteChange("west");
  await clock.advance(LONG_MS);
  await settle();
  expect(await clusters()).toEqual(["east", "host", "west"]);
});

test("drops nothing after it was stopped", async () => {
  const { clock, joined, departed, clusters } = scene();
  joined.delete("west");
  departed.noteChange("west");
  departed.stop();
  await clock.advance(LONG_MS);
  await settle();
  expect(await clusters()).toContain("west");
});
