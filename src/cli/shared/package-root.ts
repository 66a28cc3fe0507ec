import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";

/** Returns the folder of package.json and manifests/, in a clone and in an installed package. */
export function packageRoot(): string {
  return dirname(findPackageJSON(import.meta.url) ?? "");
}

export function packageVersion(): string {
  const text = readFileSync(join(packageRoot(), "package.json"), "utf8");
  return /^ {2}"version": "([^"]+)"/m.exec(text)?.[1] ?? "unknown";
}
