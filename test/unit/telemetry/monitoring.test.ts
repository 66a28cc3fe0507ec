import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { Metrics } from "../../../src/telemetry/metrics.ts";

// Grafana's variable, not a template of ours.
const DATASOURCE = ["$", "{datasource}"].join("");
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
const position = z.object({ x: z.number(), y: z.number(), w: z.number().max(24), h: z.number() });
const datasource = z.strictObject({ type: z.literal("prometheus"), uid: z.literal(DATASOURCE) });
// Ids of Grafana's units that are used here; others are shown as they are written.
const unit = z.enum(["short", "s", "ops", "reqps", "Bps", "bytes", "percentunit"]);
const dashboard = z.object({
  uid: z.string().max(40),
  schemaVersion: z.number(),
  panels: z.array(
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("row"), title: z.string(), id: z.number(), gridPos: position, panels: z.tuple([]) }),
      z.object({
        type: z.enum(["stat", "timeseries"]),
        title: z.string(),
        id: z.number(),
        gridPos: position,
        datasource,
        fieldConfig: z.object({ defaults: z.object({ unit }), overrides: z.array(z.unknown()) }),
        targets: z
          .array(z.object({ refId: z.string().regex(/^[A-Z]$/), expr: z.string(), legendFormat: z.string() }))
          .nonempty(),
      }),
    ]),
  ),
  templating: z.object({
    list: z.tuple([
      z.looseObject({ name: z.literal("datasource"), type: z.literal("datasource"), query: z.literal("prometheus") }),
      z.looseObject({
        name: z.literal("cluster"),
        type: z.literal("query"),
        datasource,
        query: z.object({ query: z.string(), refId: z.string() }),
      }),
    ]),
  }),
});
const ruleTests = z.object({
  rule_files: z.tuple([z.literal("alerts.yaml")]),
  tests: z.array(
    z.object({
      name: z.string(),
      input_series: z.array(z.object({ series: z.string() })).nonempty(),
      alert_rule_test: z.tuple([z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()) })]),
    }),
  ),
});

const alerts = rules.parse(parse(read("examples/monitoring/alerts.yaml"))).groups.flatMap((group) => group.rules);
const shown = dashboard.parse(JSON.parse(read("examples/monitoring/dashboard.json")));
const panels = shown.panels.flatMap((panel) => (panel.type === "row" ? [] : [panel]));
const tested = ruleTests.parse(parse(read("examples/monitoring/alerts.test.yaml"))).tests;
const metrics = new Metrics();

/** Series of Kueue, with labels that panels use (pkg/metrics/metrics.go); kueue-quotas.test.ts asks Kueue for them. */
const OF_KUEUE: Readonly<Record<string, readonly string[]>> = {
  kueue_pending_workloads: ["cluster_queue", "status"],
  kueue_admitted_active_workloads: ["cluster_queue"],
  kueue_admission_wait_time_seconds_bucket: ["cluster_queue"],
  kueue_evicted_workloads_total: ["cluster_queue", "reason"],
  kueue_cluster_queue_nominal_quota: ["cluster_queue", "flavor", "resource"],
  kueue_cluster_queue_resource_usage: ["cluster_queue", "flavor", "resource"],
};

/** Returns the names of metrics in an expression or text, with the labels that are selected. */
function named(text: string): { name: string; labels: string[] }[] {
  const found = text.matchAll(/\b((?:legation|workqueue|process|nodejs|kueue)_[a-z_0-9]+[a-z])\b(?:\{([^}]*)\})?/g);
  return [...found].map(([, name = "", selector = ""]) => ({
    name,
    labels: [...selector.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
  }));
}

/** Returns the labels of a series in the registry; undefined if it has none. */
async function labelsOf(series: string): Promise<readonly string[] | undefined> {
  if (series in OF_KUEUE) return OF_KUEUE[series];
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
  ["variable cluster", shown.templating.list[1].query.query],
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [`panel ${title}`, expr] as const)),
];

test.each(EXPRESSIONS)("queries existing series and labels: %s", async (_, expr) => {
  const asked = named(expr);
  expect(asked).not.toHaveLength(0);
  for (const { name, labels } of asked) {
    const there = await labelsOf(name);
    expect(there, name).toBeDefined();
    for (const label of labels) expect(there, name).toContain(label);
  }
  for (const [, by = ""] of expr.matchAll(/\bby \(([^)]*)\)/g)) {
    const known = (await Promise.all(asked.map(({ name }) => labelsOf(name)))).flatMap((labels) => labels ?? []);
    // Buckets of histograms have `le`.
    for (const label of by.split(",")) expect([...known, "le"], by).toContain(label.trim());
  }
});

test("alerts on all queues of Legation's own controllers, and no others", () => {
  const sources = globSync("src/{clusters,controllers,copies,whole}/**/*.ts", { cwd: fileURLToPath(ROOT) }).map(
    (file) => read(file),
  );
  // A copier is named by its user or by its family of kinds.
  const names = [
    /new Controller<[^>]*>\(\s*\{\s*name: "([^"]+)"/g,
    /new Copier<[^>]*>\(\s*\{\s*\.\.\.options,\s*name: "([^"]+)"/g,
    /\bfamily\(\[[^\]]*\], \{\s*name: "([^"]+)"/g,
    /new TokenRenewal\(\{\s*\.\.\.options,\s*name: "([^"]+)"/g,
    /family: \{\s*name: "([^"]+)"/g,
    // Kueue's kinds of objects share a controller.
    /Kind<[^>]*>(?: = |\s*\{\s*return )\{(?:\s*on\w+[^,]*,)*\s*name: "([^"]+)"/g,
    // Each family of whole objects names the queues of its controller.
    /\{ objects: "([^"]+)", copies: "[^"]+" \}/g,
    /\{ objects: "[^"]+", copies: "([^"]+)" \}/g,
  ];
  const controllers = sources.flatMap((source) =>
    names.flatMap((pattern) => [...source.matchAll(pattern)].map(([, name]) => name)),
  );
  expect(controllers).toContain("delegation");
  const lists = alerts.flatMap(({ expr }) => [...expr.matchAll(/controller=~"([^"]*)"/g)].map(([, list]) => list));
  expect(lists).toHaveLength(2);
  for (const list of lists) expect(list?.split("|")).toEqual(controllers.toSorted());
});

test.each(alerts.map(({ alert }) => alert))("has a firing and a silent case for %s", (alert) => {
  const expected = tested
    .filter(({ alert_rule_test: [{ alertname }] }) => alertname === alert)
    .map(({ alert_rule_test: [{ exp_alerts }] }) => exp_alerts.length > 0);
  expect(expected).toContain(true);
  expect(expected).toContain(false);
});

test("uses existing series in the rules' tests", async () => {
  for (const { name, labels } of tested.flatMap(({ input_series }) =>
    input_series.flatMap(({ series }) => named(series)),
  )) {
    const there = await labelsOf(name);
    expect(there, name).toBeDefined();
    // Prometheus adds these to each.
    for (const label of labels) expect([...(there ?? []), "instance", "job", "le"], name).toContain(label);
  }
});

test("documents every metric of Legation in docs/operations.md, and no others", async () => {
  const text = read("docs/operations.md");
  const own = metrics.registry.getMetricsAsArray().filter(({ name }) => name.startsWith("legation_"));
  expect(own.length).toBeGreaterThan(15);
  for (const { name } of own) {
    // Two related metrics share a line.
    expect(text, name).toContain(name === "legation_proxies_waiting_oldest_seconds" ? "…_oldest_seconds" : name);
  }
  for (const { name } of named(text)) expect(await isNamed(name), name).toBe(true);
});

test("has a section of the runbook for every alert, and an alert and link for every section", () => {
  const text = read("docs/runbook.md");
  const sections = [...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title);
  expect(sections).toEqual(alerts.map(({ alert }) => alert));
  for (const { alert, annotations } of alerts) {
    expect(annotations.runbook_url.endsWith(`/docs/runbook.md#${alert.toLowerCase()}`)).toBe(true);
  }
});

test("names existing metrics in the runbook", async () => {
  for (const { name } of named(read("docs/runbook.md"))) expect(await isNamed(name), name).toBe(true);
});

test("gives the Prometheus operator the same rules, and scrapes ports of the manifests", () => {
  const objects = parseAllDocuments(read("examples/monitoring/prometheus-operator.yaml")).map((document) =>
    document.toJS(),
  );
  const rule = objects.find(({ kind }) => kind === "PrometheusRule");
  expect(rule.spec).toEqual(parse(read("examples/monitoring/alerts.yaml")));
  for (const [component, file] of [
    ["controller", "controller.yaml"],
    ["webhook", "webhook.yaml"],
    ["access", "access/deployment.yaml"],
    ["relay", "relay/deployment.yaml"],
  ]) {
    const monitor = objects.find(({ metadata }) => metadata.name === `legation-${component}`);
    const [workload] = parseAllDocuments(read(`manifests/${file}`))
      .map((document) => document.toJS())
      .filter((object) => object?.kind === "Deployment");
    const { labels } = workload.spec.template.metadata;
    expect(labels).toMatchObject(monitor.spec.selector.matchLabels);
    const [container] = workload.spec.template.spec.containers;
    const port = container.ports.find((one: { name: string }) => one.name === monitor.spec.podMetricsEndpoints[0].port);
    expect(container.args.some((arg: string) => arg.endsWith(`-listen=:${port.containerPort}`))).toBe(true);
  }
});

test("gives the dashboard's panels unique ids and places, and defined variables", () => {
  const all = shown.panels;
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  const cells = all.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { gridPos } of all) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  const variables = new Set(["__rate_interval", ...shown.templating.list.map(({ name }) => name)]);
  for (const { targets } of panels) {
    expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    for (const [, name = ""] of targets.flatMap(({ expr }) => [...expr.matchAll(/\$\{?(\w+)/g)])) {
      expect(variables).toContain(name);
    }
  }
});
