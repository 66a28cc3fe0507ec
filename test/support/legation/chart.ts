import { spawn } from "node:child_process";
import { join } from "node:path";
import { type Manifest, parseManifests } from "../../../src/cli/shared/manifests.ts";
import { ensurePrograms } from "../engines/programs.ts";
import { type CliResult, ROOT } from "./cli.ts";

/** Folder of the chart. */
export const CHART: string = join(ROOT, "charts", "legation");

/** Runs `helm ARGS`. Resolves with any exit code. `values` is the standard input: the file `-` of `--values`. */
export async function helm(args: readonly string[], values: object = {}): Promise<CliResult> {
  const folder = await ensurePrograms("helm", (line) => process.stderr.write(`helm: ${line}\n`));
  const child = spawn(join(folder, "helm"), args, { timeout: 300_000 });
  child.stdin.on("error", () => {
    // Helm ended before it read all input; its exit code tells the result.
  });
  child.stdin.end(JSON.stringify(values));
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? -1, stdout, stderr }));
  });
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
