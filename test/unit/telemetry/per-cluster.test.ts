import { Histogram, Registry } from "prom-client";
import { expect, test } from "vitest";
import { dropCluster, metricsPerCluster } from "../../../src/telemetry/per-cluster.ts";

const help = "Help.";

test("a scrape has a sample of each cluster that is there then and has a value", async () => {
  const registry = new Registry();
  let states: { readonly name: string; readonly value: number | undefined }[] = [];
  const read = ({ value }: (typeof states)[number]) => value;
  const { gauge, counter } = metricsPerCluster(registry, () => states);
  gauge("lag", help, read);
  counter("sent_total", help, read);
  states = [
    { name: "west", value: 3 },
    { name: "east", value: undefined },
  ];
  expect(await registry.metrics()).toContain('lag{cluster="west"} 3');
  expect(await registry.metrics()).not.toContain('lag{cluster="east"}');
  // A total is not added to that of the last scrape.
  expect(await registry.metrics()).toContain('sent_total{cluster="west"} 3');
  states = [];
  expect(await registry.metrics()).not.toContain("west");
});

test("a cluster that left takes all its series with it, each bucket of a histogram among them", async () => {
  const registry = new Registry();
  const seconds = new Histogram({ name: "seconds", help, labelNames: ["cluster", "verb"], registers: [registry] });
  for (const cluster of ["west", "east"]) seconds.observe({ cluster, verb: "get" }, 1);
  await dropCluster(registry, "west");
  const text = await registry.metrics();
  expect([text.includes("west"), text.includes("east")]).toEqual([false, true]);
});
