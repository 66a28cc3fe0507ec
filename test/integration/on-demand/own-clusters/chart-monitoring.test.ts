import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { type Manifest, parseManifests } from "../../../../src/cli/shared/manifests.ts";
import { startClusters } from "../../../support/clusters/start.ts";
import type { Cluster, Clusters } from "../../../support/clusters/types.ts";
import { installPrometheusOperator } from "../../../support/engines/prometheus-operator.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { renderChart } from "../../../support/legation/chart.ts";
import { ROOT } from "../../../support/legation/cli.ts";

// Objects for the Prometheus operator, on an API server that has its definitions.
const EXAMPLE = "examples/monitoring/prometheus-operator.yaml";
const VALUES = {
  access: { enabled: true },
  relay: { enabled: true },
  monitoring: { podMonitors: true, rules: true, labels: { release: "kube" } },
};
const NAMES = ["legation-controller", "legation-webhook", "legation-access", "legation-relay", "legation"];

let clusters: Clusters | undefined;
let host: Cluster;

beforeAll(async () => {
  clusters = await startClusters({ names: ["host"], clusters: { host: { nodes: [] } } });
  host = clusters.get("host");
  await installPrometheusOperator(host);
  for (const name of ["legation-system", "legation-access", "legation-relay"])
    await kubectl(host, ["create", "namespace", name]);
});
afterAll(() => clusters?.stop());

/** Applies objects, and has the API server refuse unknown fields. Returns them as they are stored. */
async function apply(objects: readonly object[]): Promise<Manifest[]> {
  const args = ["apply", "--server-side", "--force-conflicts", "--validate=strict", "-o", "yaml", "-f", "-"];
  // A List would be validated by kubectl itself.
  const input = objects.map((object) => JSON.stringify(object)).join("\n---\n");
  const { items } = parse(await kubectl(host, args, { input }));
  return items;
}

async function monitors(source: "the example" | "the chart"): Promise<Manifest[]> {
  if (source === "the example") return parseManifests(readFileSync(join(ROOT, EXAMPLE), "utf8"), EXAMPLE);
  return (await renderChart(VALUES)).filter(({ apiVersion }) => apiVersion === "monitoring.coreos.com/v1");
}

test.each(["the example", "the chart"] as const)(
  "the operator's definitions take every field of %s",
  async (source) => {
    const wanted = await monitors(source);
    expect(wanted.map(({ metadata }) => metadata.name)).toEqual(NAMES);
    expect(await apply(wanted)).toMatchObject(wanted);
  },
);

test("an unknown field is refused", async () => {
  const [monitor] = await monitors("the example");
  const wrong = { ...monitor, spec: { ...(monitor?.spec as object), podMetricsEndpoint: [] } };
  await expect(apply([wrong])).rejects.toThrow(".spec.podMetricsEndpoint: field not declared in schema");
});

test("each PodMonitor of the chart selects the pods of a Deployment with that port", async () => {
  const rendered = await renderChart(VALUES);
  const podMonitors = rendered.filter(({ kind }) => kind === "PodMonitor") as (Manifest & { spec: Monitor })[];
  const workloads = rendered.filter(({ kind }) => kind === "Deployment") as (Manifest & { spec: Workload })[];
  expect(podMonitors).toHaveLength(4);
  for (const { metadata, spec } of podMonitors) {
    const selected = workloads.filter((workload) => workload.metadata.namespace === metadata.namespace);
    const matching = selected.filter(({ spec: { template } }) =>
      Object.entries(spec.selector.matchLabels).every(([key, value]) => template.metadata.labels[key] === value),
    );
    expect(matching.map((workload) => workload.metadata.name)).toEqual([metadata.name]);
    const ports = matching.flatMap(({ spec: { template } }) => template.spec.containers.flatMap((each) => each.ports));
    expect(ports.map(({ name }) => name)).toEqual(
      expect.arrayContaining(spec.podMetricsEndpoints.map(({ port }) => port)),
    );
  }
});

interface Monitor {
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly podMetricsEndpoints: readonly { readonly port: string }[];
}

interface Workload {
  readonly template: {
    readonly metadata: { readonly labels: Readonly<Record<string, string>> };
    readonly spec: { readonly containers: readonly { readonly ports: readonly { readonly name: string }[] }[] };
  };
}
