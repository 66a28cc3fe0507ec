import { spawnSync } from "node:child_process";
import type { Cluster } from "../clusters/types.ts";
import { giveFiles } from "./given-files.ts";
import type { EngineFolder } from "./python.ts";

/** Gives every container of a namespace in a member the machine's Python with an engine's packages, and bash. */
export async function givePython(member: Cluster, namespace: string, engine: EngineFolder): Promise<void> {
  const { folder, python } = engine;
  const { stdout } = spawnSync(python, ["-c", "import sys; print(sys.base_prefix)"], { encoding: "utf8" });
  const prefix = stdout.trim();
  const paths = ["/usr", "/lib", "/lib64", "/bin/bash", folder, ...(prefix.startsWith("/usr") ? [] : [prefix])];
  await giveFiles(
    member,
    namespace,
    paths.map((path) => ({ from: path, to: path })),
  );
}
