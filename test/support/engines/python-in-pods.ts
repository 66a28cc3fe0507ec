import { spawnSync } from "node:child_process";
import type { Cluster } from "../clusters/types.ts";
import { type GivenFile, giveFiles } from "./given-files.ts";
import type { EngineFolder } from "./python.ts";

/** The machine's Python with an engine's packages, and bash. */
export function pythonFiles({ folder, python }: EngineFolder): GivenFile[] {
  const { stdout } = spawnSync(python, ["-c", "import sys; print(sys.base_prefix)"], { encoding: "utf8" });
  const prefix = stdout.trim();
  const paths = ["/usr", "/lib", "/lib64", "/bin/bash", folder, ...(prefix.startsWith("/usr") ? [] : [prefix])];
  return paths.map((path) => ({ from: path, to: path }));
}

/** Gives every container of a namespace in a member the machine's Python with an engine's packages, and bash. */
export async function givePython(member: Cluster, namespace: string, engine: EngineFolder): Promise<void> {
  await giveFiles(member, namespace, pythonFiles(engine));
}
