import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Failure } from "./failure.ts";

/** Returns the folder of package.json and manifests/, in a clone and in an installed package. */
export function packageRoot(from: string = import.meta.url): string {
  for (let folder = dirname(fileURLToPath(from)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json")) && existsSync(join(folder, "manifests"))) return folder;
    if (folder === dirname(folder)) {
      throw new Failure("failure", {
        object: "manifests",
        problem: `no folder above ${fileURLToPath(from)} holds them`,
        remedy: "install the package again: manifests/ is part of it",
      });
    }
  }
}

export function packageVersion(): string {
  const text = readFileSync(join(packageRoot(), "package.json"), "utf8");
  return /^ {2}"version": "([^"]+)"/m.exec(text)?.[1] ?? "unknown";
}
