import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
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

test("a manifest that is not of the installation is no part of the chart", () => {
  const names = Object.keys(files).map((file) => file.split("/").at(-1));
  expect(names).toContain("access-rbac.yaml");
  expect(names).not.toContain("member-role.yaml");
});
