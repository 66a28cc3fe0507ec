import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { Cluster } from "../clusters/types.ts";
import { type CliResult, ROOT, runCli } from "./cli.ts";

/** Runs `legation ARGS` with an administrator's kubeconfig of the host; resolves whatever its exit code. */
export function legationOn(host: Cluster, ...args: string[]): Promise<CliResult> {
  return runCli([...args, `--kubeconfig=${host.kubeconfig}`]);
}

/** One run of `legation` that a test can watch and interrupt. */
export class LegationRun {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #stderr = "";

  constructor(host: Cluster, args: readonly string[]) {
    const main = join(ROOT, "src", "cli", "main.ts");
    this.#child = spawn(process.execPath, [main, ...args, `--kubeconfig=${host.kubeconfig}`], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    this.#ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", resolve);
    });
  }

  /** What it has written to standard error so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Sends a signal; resolves to the exit code. */
  interrupt(signal: "SIGTERM" | "SIGINT"): Promise<number | null> {
    this.#child.kill(signal);
    return this.#ended;
  }
}
