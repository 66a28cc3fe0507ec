import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { ROOT, SOURCE } from "./cli.ts";

/** Bundles the sources and their packages, which halves the load time. Resolves to the script `legation`. */
export async function bundleSources(folder: string): Promise<string> {
  const build = await rolldown({ input: SOURCE, platform: "node", external: /^node:/ });
  await build.write({ dir: folder, format: "esm", entryFileNames: "main.js", chunkFileNames: "[name]-[hash].js" });
  await build.close();
  // Files that Legation looks up in its package's folder.
  for (const name of ["package.json", "manifests", "scripts", "src"]) symlinkSync(join(ROOT, name), join(folder, name));
  return join(folder, "main.js");
}
