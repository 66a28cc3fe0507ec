import { z } from "zod";
import { KubeletMetrics } from "../../src/telemetry/kubelet.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { code, heading, plain, table } from "./markdown.ts";

const metric = z.object({
  name: z.string(),
  help: z.string(),
  labelNames: z.array(z.string()),
  get: z.custom<() => Promise<unknown>>((value) => typeof value === "function"),
});

/** A metric as its process registers it. */
interface Registered {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
}

/** Returns Legation's own metrics, without those of Node.js. */
async function registeredMetrics(): Promise<Registered[]> {
  const all = await read(new Metrics().registry.getMetricsAsArray());
  return all.filter(({ name }) => /^(?:legation|workqueue)_/.test(name));
}

async function read(metrics: readonly object[]): Promise<Registered[]> {
  const found = metrics.map(async (each): Promise<Registered> => {
    const { name, help, labelNames } = metric.parse(each);
    const { type } = z.object({ type: z.string() }).parse(await metric.parse(each).get.call(each));
    return { name, type, labels: labelNames, help };
  });
  return (await Promise.all(found)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the page of all metrics. */
export async function metricsPage(): Promise<string> {
  const node = new KubeletMetrics("legation-west", () => ({ running: 0, containers: { running: 0, exited: 0 } }));
  const rows = (metrics: readonly Registered[]): string =>
    table(
      ["metric", "type", "labels", "meaning"],
      metrics.map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(", "), plain(help)]),
    );
  return [
    heading(
      "Metrics",
      "This page lists every metric with its labels. No label names a pod or a namespace.\n[operations.md](../operations.md#watch) says where they are served and what to watch; each process\nalso has the `process_*` and `nodejs_*` metrics of Node.js.",
      "`src/telemetry`",
    ),
    `\n## Metrics of Legation's processes\n\n${rows(await registeredMetrics())}`,
    `\n## Metrics of a virtual node\n\nThe kubelet API of each virtual node serves these under a kubelet's names.\n\n${rows(await read(node.registry.getMetricsAsArray()))}`,
  ].join("");
}
