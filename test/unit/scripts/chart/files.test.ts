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
  expect(rows.filter((row) => row.startsWith("| `controller."))).toHaveLength(14);
});

test.each<[string, object, boolean]>([
  ["a label of the author's", { "example.com/team": "a" }, true],
  ["a label by which Services find pods", { "app.kubernetes.io/component": "mine" }, false],
  ["the chart's own label", { "helm.sh/chart": "mine" }, false],
  ["a label that delegates a namespace", { "legation.dev/delegation": "all" }, false],
  ["a level of Pod Security", { "pod-security.kubernetes.io/enforce": "privileged" }, false],
])("the schema knows whether labels may have %s", (_what, labels, fits) => {
  const values: { controller: object } = parse(files["charts/legation/values.yaml"] ?? "");
  expect(valuesSchema.safeParse({ ...values, commonLabels: labels }).success).toBe(fits);
  const controller = { ...values.controller, podLabels: labels };
  expect(valuesSchema.safeParse({ ...values, controller }).success).toBe(fits);
  const { properties } = JSON.parse(files["charts/legation/values.schema.json"] ?? "");
  const [pattern = ""] = Object.keys(properties.commonLabels.patternProperties);
  expect(Object.keys(labels).some((key) => new RegExp(pattern).test(key))).toBe(!fits);
});

test("has what Artifact Hub shows: an icon that is in the tree, a home, maintainers, definitions and the image", () => {
  const { icon, home, sources, maintainers, annotations } = parse(files["charts/legation/Chart.yaml"] ?? "");
  const { homepage, repository, version } = JSON.parse(read("package.json"));
  expect(repository.url).toBe(`git+${homepage}.git`);
  expect({ home, sources }).toEqual({ home: homepage, sources: [homepage] });
  expect(read(icon.replace(/^https:\/\/raw\.githubusercontent\.com\/[^/]+\/[^/]+\/main\//, ""))).toContain("<svg");
  expect(maintainers).toEqual([{ name: "Legation maintainers", url: homepage }]);
  const definitions: { name: string }[] = parse(annotations["artifacthub.io/crds"]);
  expect(definitions.map(({ name }) => name)).toEqual([
    "clusters.legation.dev",
    "delegatedtypes.legation.dev",
    "placementdefaults.legation.dev",
  ]);
  expect(parse(annotations["artifacthub.io/images"])).toEqual([
    { name: "legation", image: `ghcr.io/legation/legation:${version}` },
  ]);
});

test("the readme has every value, and absolute links only", () => {
  const readme = files["charts/legation/README.md"] ?? "";
  for (const row of chartPage(read).split("\n")) if (row.startsWith("| `")) expect(readme).toContain(row);
  const links = [...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link);
  expect(links.length).toBeGreaterThan(2);
  for (const link of links) expect(link).toMatch(/^https:/);
});

test("notes and readme say that the default image has to be built", () => {
  for (const file of ["README.md", "templates/NOTES.txt"]) {
    expect(files[`charts/legation/${file}`]).toContain("No image is published as");
  }
});

test("every object has the chart's label and the labels of all", () => {
  const templates = Object.entries(files).filter(([file]) => file.endsWith(".yaml") && file.includes("/templates/"));
  for (const [file, text] of templates) {
    const of = (wanted: string): number => text.split("\n").filter((line) => line.includes(wanted)).length;
    const objects = text.split("\n").filter((line) => /^kind: /.test(line)).length;
    expect(of('helm.sh/chart: {{ include "legation.chart" $ }}'), file).toBe(objects);
    expect(of("$.Values.commonLabels"), file).toBe(objects);
  }
});

test("`helm test` runs doctor without rights on Secrets, and without a right to change anything that exists", () => {
  const text = files["charts/legation/templates/tests/doctor.yaml"] ?? "";
  expect(text).toContain("helm.sh/hook: test\n");
  expect(text).not.toContain("- secrets");
  for (const verb of ["update", "patch", "delete", '"*"']) expect(text).not.toContain(`- ${verb}\n`);
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
  expect(text.match(/maxUnavailable: 1/g)).toHaveLength(4);
});

test("a manifest that is not of the installation is no part of the chart", () => {
  const names = Object.keys(files).map((file) => file.split("/").at(-1));
  expect(names).toContain("access-rbac.yaml");
  expect(names).not.toContain("member-role.yaml");
});
