import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { digestOf, writeTar } from "./archive.ts";
import { buildDist, copyDependencies, copyTo, ROOT } from "./contents.ts";
import { ARCHITECTURE, writeImage } from "./image.ts";
import { krewManifest, PLUGIN_FOLDER } from "./krew.ts";

/** Name of the file with the checksums of all others, as `sha256sum --check` reads it. */
export const CHECKSUMS = "SHA256SUMS";

/** Where artefacts come to. */
export interface ArtefactOptions {
  /** Folder, which is made anew. */
  readonly folder: string;
  /** Address at which users will find the files of the folder. Default: the release on GitHub. */
  readonly url?: string | undefined;
  readonly onProgress?: (line: string) => void;
}

const packageFile = z.object({
  name: z.string(),
  version: z.string(),
  engines: z.object({ node: z.string() }),
});

/** Writes all files of a release of this tree. Resolves to their names. */
export async function writeArtefacts({ folder, url, onProgress = () => {} }: ArtefactOptions): Promise<string[]> {
  const { version, engines } = packageFile.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
  const base = (url ?? `https://github.com/legation/legation/releases/download/v${version}`).replace(/\/+$/, "");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const file = (name: string): string => join(folder, name);

  onProgress("the package");
  rmSync(join(ROOT, "dist"), { recursive: true, force: true });
  execFileSync("npm", ["pack", `--pack-destination=${folder}`], { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });

  onProgress("the chart");
  writeTar(file(`legation-chart-${version}.tgz`), join(ROOT, "charts"), ["legation"]);

  onProgress("the plugin of kubectl");
  const plugin = `kubectl-legation-${version}.tar.gz`;
  writePlugin(file(plugin));
  const { sha256 } = await digestOf(file(plugin));
  const manifest = krewManifest({ version, uri: `${base}/${plugin}`, sha256, node: engines.node });
  writeFileSync(file("legation.yaml"), manifest);

  onProgress("the image");
  const image = `legation-image-${version}-linux-${ARCHITECTURE}`;
  const digest = await writeImage(file(`${image}.tar`), { name: `ghcr.io/legation/legation:${version}` });
  writeFileSync(file(`${image}.digest`), `${digest}\n`);

  onProgress("the bill of materials");
  writeFileSync(file(`legation-${version}.cdx.json`), billOfMaterials());

  const names = readdirSync(folder).sort();
  const sums = await Promise.all(names.map(async (name) => `${(await digestOf(file(name))).sha256}  ${name}\n`));
  writeFileSync(file(CHECKSUMS), sums.join(""));
  return [...names, CHECKSUMS];
}

/** Writes the plugin with its dependencies: krew only unpacks it. */
function writePlugin(archive: string): void {
  const directory = mkdtempSync(join(tmpdir(), "legation-plugin-"));
  try {
    const plugin = join(directory, PLUGIN_FOLDER);
    buildDist(join(plugin, "dist"));
    copyDependencies(join(plugin, "node_modules"));
    copyTo(join(ROOT, "manifests"), join(plugin, "manifests"));
    for (const name of ["package.json", "LICENSE"]) copyFileSync(join(ROOT, name), join(plugin, name));
    writeTar(archive, directory, [PLUGIN_FOLDER]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const bill = z.looseObject({
  metadata: z.looseObject({ component: z.looseObject({ name: z.string() }) }),
  components: z.array(
    z.looseObject({
      "bom-ref": z.string(),
      name: z.string(),
      properties: z.array(z.looseObject({ name: z.string(), value: z.string() })).default([]),
    }),
  ),
  dependencies: z.array(z.looseObject({ ref: z.string(), dependsOn: z.array(z.string()).default([]) })),
});

// Packages for building of which parts are in the program: the page has preact.
const BUNDLED: ReadonlySet<string> = new Set(["preact"]);
const DEVELOPMENT = "cdx:npm:package:development";

/** Returns the packages that Legation is made of, in CycloneDX. */
function billOfMaterials(): string {
  const args = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
  const {
    metadata,
    components: all,
    dependencies: edges,
    ...rest
  } = bill.parse(JSON.parse(execFileSync("npm", args, { cwd: ROOT, encoding: "utf8" })));
  // npm names the application after its folder.
  const component = { ...metadata.component, name: "legation" };
  // With --omit=dev npm also leaves out packages that tools share with the program.
  const tools = all.filter(
    ({ name, properties }) => properties.some((each) => each.name === DEVELOPMENT) && !BUNDLED.has(name),
  );
  const components = all
    .filter((each) => !tools.includes(each))
    .map((each) => (BUNDLED.has(each.name) ? { ...each, scope: "required", properties: [] } : each));
  const gone = new Set(tools.map((each) => each["bom-ref"]));
  const dependencies = edges
    .filter(({ ref }) => !gone.has(ref))
    .map((edge) => ({ ...edge, dependsOn: edge.dependsOn.filter((ref) => !gone.has(ref)) }));
  return `${JSON.stringify({ ...rest, metadata: { ...metadata, component }, components, dependencies }, null, 2)}\n`;
}
