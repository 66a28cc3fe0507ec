import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { chartFiles } from "../../../../scripts/chart/files.ts";
import { valuesSchema } from "../../../../scripts/chart/values.ts";
import { chartPage } from "../../../../scripts/reference/chart.ts";
import { ROOT } from "../../../support/legation/cli.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const files = chartFiles(read);

test("the chart's default values fit its own schema", () => {
  const values: unknown = parse(files["charts/legation/values.yaml"] ?? "");
  expect(valuesSchema.safeParse(values).error).toBeUndefined();
  expect(values).toMatchObject({ clusterName: "host", controller: { replicas: 2 }, access: { enabled: false } });
});

test("the chart has the package's version", () => {
  const { version }: { version: string } = JSON.parse(read("package.json"));
  expect(parse(files["charts/legation/Chart.yaml"] ?? "")).toMatchObject({ version, appVersion: version });
});

test("the table names each value with its default", () => {
  const rows = chartPage(read).split("\n");
  expect(rows).toContain(
    "| `crds.install` | `true` | Render the custom resource definitions. They stay when the release is uninstalled. |",
  );
  expect(rows.filter((row) => row.startsWith("| `controller."))).toHaveLength(7);
});

test("every object names its installer as Helm does, also where the chart is only rendered", () => {
  const templates = Object.entries(files).filter(([file]) => file.endsWith(".yaml") && file.includes("/templates/"));
  const lines = templates.flatMap(([, text]) => text.split("\n").filter((line) => line.includes("managed-by: ")));
  expect(lines.length).toBeGreaterThan(40);
  expect(new Set(lines)).toEqual(new Set(["    app.kubernetes.io/managed-by: {{ $.Release.Service }}"]));
});

test("the notes name every label of the namespace that `legation install` makes", () => {
  const [namespace] = parseAllDocuments(read("manifests/namespace.yaml"));
  const labels: Record<string, string> = namespace?.toJS().metadata.labels ?? {};
  expect(Object.keys(labels)).toHaveLength(5);
  const notes = files["charts/legation/templates/NOTES.txt"];
  for (const [key, value] of Object.entries(labels)) expect(notes).toContain(` ${key}=${value} `);
});

test("a budget lets the only replica go", () => {
  const text = Object.values(files).join("\n");
  expect(text).not.toContain("minAvailable");
  expect(text.match(/maxUnavailable: 1/g)).toHaveLength(3);
});

test("a manifest that is not of the installation is no part of the chart", () => {
  const names = Object.keys(files).map((file) => file.split("/").at(-1));
  expect(names).toContain("access-rbac.yaml");
  expect(names).not.toContain("member-role.yaml");
});
