import { spawn } from "node:child_process";
import { join } from "node:path";
import { type Manifest, parseManifests } from "../../../src/cli/shared/manifests.ts";
import { ensurePrograms } from "../engines/programs.ts";
import { type CliResult, ROOT, resultOf } from "./cli.ts";

/** Folder of the chart. */
export const CHART: string = join(ROOT, "charts", "legation");

/** Runs `helm ARGS`. Resolves with any exit code. `values` is the standard input: the file `-` of `--values`. */
export async function helm(args: readonly string[], values: object = {}): Promise<CliResult> {
  const folder = await ensurePrograms("helm", (line) => process.stderr.write(`helm: ${line}\n`));
  return resultOf(spawn(join(folder, "helm"), args, { timeout: 300_000 }), JSON.stringify(values));
}

/** Returns the objects of the chart with these values. */
export async function renderChart(values: object = {}, namespace = "default"): Promise<Manifest[]> {
  const { code, stdout, stderr } = await helm(
    ["template", "legation", CHART, `--namespace=${namespace}`, "--values=-"],
    values,
  );
  if (code !== 0) throw new Error(`helm template: exit ${code}: ${stderr.trim()}`);
  return parseManifests(stdout, "helm template");
}
