import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { clusterDefinition } from "./crds/cluster-definition.ts";
import { delegatedTypeDefinition } from "./crds/delegated-type-definition.ts";
import { placementDefaultsDefinition } from "./crds/placement-defaults-definition.ts";
import { readOptions } from "./options.ts";
import { commandsPage } from "./reference/commands.ts";
import { CUSTOM_RESOURCE_PAGES } from "./reference/custom-resources.ts";
import { keysPage } from "./reference/keys.ts";
import { metricsPage } from "./reference/metrics.ts";
import { reasonsPage } from "./reference/reasons.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const HEADER = "# Generated from src/api by `npm run generate`: change the schemas there, not this file.\n";

/** Generated files and their contents. */
const FILES: Readonly<Record<string, () => string | Promise<string>>> = {
  "manifests/crds/legation.dev_clusters.yaml": () => HEADER + stringify(clusterDefinition(), { lineWidth: 120 }),
  "manifests/crds/legation.dev_delegatedtypes.yaml": () =>
    HEADER + stringify(delegatedTypeDefinition(), { lineWidth: 120 }),
  "manifests/crds/legation.dev_placementdefaults.yaml": () =>
    HEADER + stringify(placementDefaultsDefinition(), { lineWidth: 120 }),
  ...Object.fromEntries(Object.entries(CUSTOM_RESOURCE_PAGES).map(([name, page]) => [`docs/reference/${name}`, page])),
  "docs/reference/commands.md": commandsPage,
  "docs/reference/keys.md": keysPage,
  "docs/reference/metrics.md": metricsPage,
  "docs/reference/reasons.md": reasonsPage,
};

const USAGE = `Writes the custom resource definitions and the pages of docs/reference from the schemas and the code.

  npm run generate -- [--check]

  --check  only says which are out of date, and exits with 1 when any is`;
const { values } = readOptions(USAGE, { check: { type: "boolean", default: false } });
const stale: string[] = [];
for (const [file, text] of Object.entries(FILES)) {
  const path = root + file;
  const wanted = await text();
  if ((await readFile(path, "utf8").catch(() => undefined)) === wanted) continue;
  stale.push(relative(root, path));
  if (values.check) continue;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, wanted);
}
if (values.check && stale.length > 0) {
  console.error(`out of date: ${stale.join(", ")}; run npm run generate`);
  process.exitCode = 1;
} else {
  for (const file of stale) console.log(`${file} written`);
}
