import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { inject } from "vitest";
import { findBinaries } from "../clusters/binaries.ts";
import type { Cluster } from "../clusters/types.ts";
import type {} from "./global-setup.ts";

/** Options of `kubectl`. */
export interface KubectlOptions {
  /** Written to its standard input, e.g. a manifest for `apply -f -`. */
  readonly input?: string;
  /** Another kubeconfig than the cluster's own. */
  readonly kubeconfig?: string;
  /** The program; default: the one that fits the shared clusters. */
  readonly program?: string;
  /** Goes before the command, e.g. to run it in a network namespace. */
  readonly within?: readonly string[];
  /** Killed after this long; default 60 s. */
  readonly timeoutMs?: number;
}

let found: Promise<string> | undefined;

/** Resolves to the kubectl of scripts, which run clusters without a test. */
function ofScripts(): Promise<string> {
  found ??= findBinaries().then(({ kubectl: path }) => path);
  return found;
}

/** Runs kubectl against a cluster as admin and returns its standard output; rejects with its standard error. */
export async function kubectl(
  cluster: Cluster,
  args: readonly string[],
  options: KubectlOptions = {},
): Promise<string> {
  for (;;) {
    try {
      return await runKubectl(cluster, args, options);
    } catch (error) {
      // kubectl's `wait` fails for an object that is so new that its status has no list of conditions.
      if (!args.includes("wait") || !String(error).includes("conditions accessor error")) throw error;
      await sleep(100);
    }
  }
}

async function runKubectl(cluster: Cluster, args: readonly string[], options: KubectlOptions): Promise<string> {
  const { input, kubeconfig = cluster.kubeconfig, within = [], timeoutMs = 120_000 } = options;
  const { program = process.env.VITEST === undefined ? await ofScripts() : inject("kubectl") } = options;
  const [command = "", ...all] = [...within, program, `--kubeconfig=${kubeconfig}`, ...args];
  const child = spawn(command, all, { timeout: timeoutMs });
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  // kubectl may end before it has read everything; its exit code is the result.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) resolve(output);
      else
        reject(new Error(`${cluster.name}: kubectl ${args.join(" ")}: ${errors.trim() || (signal ?? `exit ${code}`)}`));
    });
  });
}

/** Applies some objects in one call; `args` are further ones of `kubectl apply`, e.g. `-n` with a namespace. */
export async function applyAll(
  cluster: Cluster,
  items: readonly object[],
  args: readonly string[] = [],
): Promise<void> {
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await kubectl(cluster, ["apply", ...args, "-f", "-"], { input });
}

/** Returns "no" for the rejection of a denied `kubectl auth can-i`. Rethrows any other error. */
export function saidNo(error: unknown): "no" {
  const said = error instanceof Error ? error.message : String(error);
  if (/: (exit 1|Warning: [^\n]*)$/.test(said)) return "no";
  throw error;
}
