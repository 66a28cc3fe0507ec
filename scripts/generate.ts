import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { chartFiles } from "./chart/files.ts";
import { clusterDefinition } from "./crds/cluster-definition.ts";
import { delegatedTypeDefinition } from "./crds/delegated-type-definition.ts";
import { placementDefaultsDefinition } from "./crds/placement-defaults-definition.ts";
import { readOptions } from "./options.ts";
import { chartPage } from "./reference/chart.ts";
import { commandsPage } from "./reference/commands.ts";
import { CUSTOM_RESOURCE_PAGES } from "./reference/custom-resources.ts";
import { keysPage } from "./reference/keys.ts";
import { metricsPage } from "./reference/metrics.ts";
import { reasonsPage } from "./reference/reasons.ts";
import { linterConfiguration } from "./rooms/linter.ts";
import { withTables } from "./rooms/page.ts";
import { ROOMS } from "./rooms/table.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const HEADER = "# Generated from src/api by `npm run generate`: change the schemas there, not this file.\n";

// The chart is made of files that may have been generated before it.
const written = new Map<string, string>();
const read = (file: string): string => written.get(file) ?? readFileSync(root + file, "utf8");

/** Generated files and their contents. */
const FILES: Readonly<Record<string, () => string | Promise<string>>> = {
  "manifests/crds/legation.dev_clusters.yaml": () => HEADER + stringify(clusterDefinition(), { lineWidth: 120 }),
  "manifests/crds/legation.dev_delegatedtypes.yaml": () =>
    HEADER + stringify(delegatedTypeDefinition(), { lineWidth: 120 }),
  "manifests/crds/legation.dev_placementdefaults.yaml": () =>
    HEADER + stringify(placementDefaultsDefinition(), { lineWidth: 120 }),
  ...Object.fromEntries(Object.entries(CUSTOM_RESOURCE_PAGES).map(([name, page]) => [`docs/reference/${name}`, page])),
  "scripts/rooms/linter.json": () => linterConfiguration(ROOMS, root),
  "docs/architecture.md": () => withTables(read("docs/architecture.md"), ROOMS, read("manifests/policies.yaml")),
  "docs/reference/chart.md": () => chartPage(read),
  "docs/reference/commands.md": commandsPage,
  "docs/reference/keys.md": keysPage,
  "docs/reference/metrics.md": metricsPage,
  "docs/reference/reasons.md": reasonsPage,
};

const USAGE = `Writes the custom resource definitions and the pages of docs/reference from the schemas and the code, the linter's rules of
imports from scripts/rooms/table.ts, and the Helm chart from the manifests.

  npm run generate -- [--check]

  --check  only says which are out of date, and exits with 1 when any is`;
const { values } = readOptions(USAGE, { check: { type: "boolean", default: false } });
for (const [file, text] of Object.entries(FILES)) written.set(file, await text());
const chart = chartFiles(read);
for (const [file, text] of Object.entries(chart)) written.set(file, text);

const stale = [...written].filter(([file, text]) => existing(file) !== text).map(([file]) => file);
const left = globSync("charts/legation/**/*.*", { cwd: root }).filter((file) => chart[file] === undefined);
if (values.check && stale.length + left.length > 0) {
  console.error(`out of date: ${[...stale, ...left].join(", ")}; run npm run generate`);
  process.exitCode = 1;
} else {
  for (const file of stale) {
    mkdirSync(dirname(root + file), { recursive: true });
    writeFileSync(root + file, written.get(file) ?? "");
    console.log(`${file} written`);
  }
  for (const file of left) {
    rmSync(root + file);
    console.log(`${file} removed`);
  }
}

function existing(file: string): string | undefined {
  return existsSync(root + file) ? readFileSync(root + file, "utf8") : undefined;
}
