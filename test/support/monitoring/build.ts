import { join } from "node:path";
import { ensureBuilt, type GoPrograms, moduleFolder, moduleIn } from "../clusters/build.ts";

const COMMANDS = "github.com/prometheus/prometheus/cmd";
const PROMETHEUS: GoPrograms = {
  ...moduleIn(moduleFolder("../monitoring/prometheus")),
  name: "prometheus",
  packages: { promtool: `${COMMANDS}/promtool`, prometheus: `${COMMANDS}/prometheus` },
  ldflags: "-s -w",
  // Targets are listed in a file here: without the SDKs of a dozen clouds it is built in minutes.
  tags: "remove_all_sd",
};

/** Builds what is not cached yet; resolves to the program's path. */
export async function ensurePrometheus(
  program: "promtool" | "prometheus",
  onProgress: (line: string) => void,
): Promise<string> {
  return join(await ensureBuilt(PROMETHEUS, [program], onProgress), program);
}
