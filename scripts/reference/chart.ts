import { chartDefaults } from "../chart/files.ts";
import { valueRows } from "../chart/values.ts";
import { code, heading, plain, table } from "./markdown.ts";

/** Returns the page of the chart's values. */
export function chartPage(read: (path: string) => string): string {
  const intro =
    "This page lists every value of the Helm chart with its default. Helm refuses a value that does not fit, and names\n" +
    "its field. [install.md](../install.md#helm) says how to use the chart.";
  const rows = valueRows(chartDefaults(read)).map(({ path, value, description }) => [
    code(path),
    code(JSON.stringify(value)),
    plain(description),
  ]);
  return `${heading("Values of the chart", intro, "`scripts/chart` and `manifests`")}\n${table(["value", "default", "meaning"], rows)}`;
}
