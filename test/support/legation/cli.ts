import { spawn } from "node:child_process";
import { join } from "node:path";

/** Root of the checkout: where package.json is. */
export const ROOT: string = join(import.meta.dirname, "..", "..", "..");

/** What one run of the command line gave. */
export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Script that is `legation`, from the sources. */
export const MAIN: string = join(ROOT, "src", "cli", "main.ts");

/** How the command line is run. */
interface RunOptions {
  readonly timeoutMs?: number;
  readonly input?: string;
  /** Script to run in place of the sources. */
  readonly main?: string;
}

/** Runs `legation ARGS` from the sources, as a user does; resolves whatever its exit code. */
export function runCli(args: readonly string[], options: RunOptions = {}): Promise<CliResult> {
  const { timeoutMs = 120_000, input = "", main = MAIN } = options;
  const child = spawn(process.execPath, [main, ...args], { timeout: timeoutMs });
  child.stdin.on("error", () => {
    // It has ended without reading all of it: its exit code tells.
  });
  child.stdin.end(input);
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

/** Runs `legation ARGS` and returns its standard output; rejects with its standard error when it fails. */
export async function legation(args: readonly string[], options: Omit<RunOptions, "input"> = {}): Promise<string> {
  const { code, stdout, stderr } = await runCli(args, options);
  if (code !== 0) throw new Error(`legation ${args.join(" ")}: exit ${code}: ${stderr.trim()}`);
  return stdout;
}
