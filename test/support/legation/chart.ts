import { spawn } from "node:child_process";
import { join } from "node:path";
import { type Manifest, parseManifests } from "../../../src/cli/shared/manifests.ts";
import type { Cluster } from "../clusters/types.ts";
import { ensurePrograms } from "../engines/programs.ts";
import { type CliResult, ROOT, resultOf } from "./cli.ts";
import { LEGATION_IMAGE } from "./image.ts";

const [repository = "", tag = ""] = LEGATION_IMAGE.split(/:(?=[^:]*$)/);

/** Folder of the chart. */
export const CHART: string = join(ROOT, "charts", "legation");

/** Values by which pods run from the image of these tests. */
export const IMAGE_VALUES: { readonly image: object } = { image: { repository, tag } };

/** A version of Helm. */
export type Helm = "helm" | "helm3";

/** Settings of a call of Helm. */
export interface HelmOptions {
  /** Values of the chart: the standard input, which is the file `-` of `--values`. */
  readonly values?: object;
  /** Default: Helm 4. */
  readonly program?: Helm;
}

/** Builds Helm, which takes minutes the first time. Returns its folder. */
export function ensureHelm(program: Helm = "helm"): Promise<string> {
  return ensurePrograms(program, (line) => process.stderr.write(`${program}: ${line}\n`));
}

/** Runs `helm ARGS`. Resolves with any exit code. */
export async function helm(
  args: readonly string[],
  { values = {}, program = "helm" }: HelmOptions = {},
): Promise<CliResult> {
  return resultOf(spawn(join(await ensureHelm(program), "helm"), args, { timeout: 300_000 }), JSON.stringify(values));
}

/** Runs `helm ARGS` on a host for the release in `legation-system`. Rejects with its standard error. */
export async function helmOn(host: Cluster, args: readonly string[], options: HelmOptions = {}): Promise<string> {
  const all = [...args, `--kubeconfig=${host.kubeconfig}`, "--namespace=legation-system"];
  return outputOf(all, options);
}

/** Runs `helm template ARGS`. Rejects with its standard error. */
export function templateChart(args: readonly string[], options: HelmOptions = {}): Promise<string> {
  return outputOf(["template", ...args], options);
}

/** Returns the objects of the chart with these values. */
export async function renderChart(values: object = {}, namespace = "default"): Promise<Manifest[]> {
  const args = ["legation", CHART, `--namespace=${namespace}`, "--values=-"];
  return parseManifests(await templateChart(args, { values }), "helm template");
}

async function outputOf(args: readonly string[], options: HelmOptions): Promise<string> {
  const { code, stdout, stderr } = await helm(args, options);
  if (code !== 0) throw new Error(`helm ${args.join(" ")}: exit ${code}: ${stderr.trim()}`);
  return stdout;
}
