import { chartDefaults } from "../chart/files.ts";
import { valueTable } from "../chart/readme.ts";
import { valueRows } from "../chart/values.ts";
import { heading } from "./markdown.ts";

/** Returns the page of the chart's values. */
export function chartPage(read: (path: string) => string): string {
  const intro =
    "This page lists every value of the Helm chart with its default. Helm refuses a value that does not fit, and names\n" +
    "its field. [install.md](../install.md#helm) says how to use the chart.";
  const values = valueTable(valueRows(chartDefaults(read)));
  return `${heading("Values of the chart", intro, "`scripts/chart` and `manifests`")}\n${values}`;
}
