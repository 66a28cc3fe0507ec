import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { Metrics } from "../../../src/telemetry/metrics.ts";

const ROOT = new URL("../../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");

const rules = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          for: z.string(),
          labels: z.object({ severity: z.enum(["critical", "warning", "info"]) }),
          annotations: z.object({ summary: z.string(), description: z.string(), runbook_url: z.string() }),
        }),
      ),
    }),
  ),
});
const dashboard = z.object({
  panels: z.array(
    z.object({ title: z.string(), id: z.number(), targets: z.array(z.object({ expr: z.string() })).optional() }),
  ),
  templating: z.object({ list: z.array(z.looseObject({ query: z.unknown() })) }),
});

const alerts = rules.parse(parse(read("examples/monitoring/alerts.yaml"))).groups.flatMap((group) => group.rules);
const panels = dashboard.parse(JSON.parse(read("examples/monitoring/dashboard.json"))).panels;
const metrics = new Metrics();

/** Names of metrics in an expression or a text, with the labels that are selected by. */
function named(text: string): { name: string; labels: string[] }[] {
  const found = text.matchAll(/\b((?:legation|workqueue|process|nodejs)_[a-z_0-9]+[a-z])\b(?:\{([^}]*)\})?/g);
  return [...found].map(([, name = "", selector = ""]) => ({
    name,
    labels: [...selector.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
  }));
}

/** The labels of what the registry has under a series' name; undefined when it has nothing. */
async function labelsOf(series: string): Promise<readonly string[] | undefined> {
  for (const name of [series, series.replace(/_(bucket|count|sum)$/, "")]) {
    const metric = metrics.registry.getSingleMetric(name);
    if (metric === undefined) continue;
    const histogram = String((await metric.get()).type) === "histogram";
    if ((name !== series) !== histogram) continue;
    return z.object({ labelNames: z.array(z.string()) }).parse(metric).labelNames;
  }
  return undefined;
}

/** Texts call a histogram by its own name, too. */
async function isNamed(name: string): Promise<boolean> {
  return metrics.registry.getSingleMetric(name) !== undefined || (await labelsOf(name)) !== undefined;
}

const EXPRESSIONS: readonly (readonly [string, string])[] = [
  ...alerts.map(({ alert, expr }) => [`alert ${alert}`, expr] as const),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [`panel ${title}`, expr] as const)),
];

test.each(EXPRESSIONS)("%s asks for series and labels that there are", async (_, expr) => {
  const asked = named(expr);
  expect(asked).not.toHaveLength(0);
  for (const { name, labels } of asked) {
    const there = await labelsOf(name);
    expect(there, name).toBeDefined();
    for (const label of labels) expect(there, name).toContain(label);
  }
});

test("every metric of Legation's own is in docs/operations.md, and nothing there is made up", async () => {
  const text = read("docs/operations.md");
  const own = metrics.registry.getMetricsAsArray().filter(({ name }) => name.startsWith("legation_"));
  expect(own.length).toBeGreaterThan(15);
  for (const { name } of own) {
    // Two that belong together share a line.
    expect(text, name).toContain(name === "legation_proxies_waiting_oldest_seconds" ? "…_oldest_seconds" : name);
  }
  for (const { name } of named(text)) expect(await isNamed(name), name).toBe(true);
});

test("every alert has its section in the runbook, every section its alert, and the link leads there", () => {
  const text = read("docs/runbook.md");
  const sections = [...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title);
  expect(sections).toEqual(alerts.map(({ alert }) => alert));
  for (const { alert, annotations } of alerts) {
    expect(annotations.runbook_url.endsWith(`/docs/runbook.md#${alert.toLowerCase()}`)).toBe(true);
  }
});

test("every metric that the runbook names exists", async () => {
  for (const { name } of named(read("docs/runbook.md"))) expect(await isNamed(name), name).toBe(true);
});

test("the Prometheus operator gets the same rules, and scrapes ports that the manifests have", () => {
  const objects = parseAllDocuments(read("examples/monitoring/prometheus-operator.yaml")).map((document) =>
    document.toJS(),
  );
  const rule = objects.find(({ kind }) => kind === "PrometheusRule");
  expect(rule.spec).toEqual(parse(read("examples/monitoring/alerts.yaml")));
  for (const component of ["controller", "webhook"]) {
    const monitor = objects.find(({ metadata }) => metadata.name === `legation-${component}`);
    const [workload] = parseAllDocuments(read(`manifests/${component}.yaml`))
      .map((document) => document.toJS())
      .filter((object) => object?.kind === "Deployment");
    const { labels } = workload.spec.template.metadata;
    expect(labels).toMatchObject(monitor.spec.selector.matchLabels);
    const [container] = workload.spec.template.spec.containers;
    const port = container.ports.find((one: { name: string }) => one.name === monitor.spec.podMetricsEndpoints[0].port);
    expect(container.args.some((arg: string) => arg.endsWith(`-listen=:${port.containerPort}`))).toBe(true);
  }
});

test("the dashboard's panels have ids of their own", () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
});
