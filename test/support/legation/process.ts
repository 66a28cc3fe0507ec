import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { DEATH_SIGNAL } from "../clusters/death-signal.ts";
import type { Cluster } from "../clusters/types.ts";
import { type CliResult, MAIN, runCli, runProcess } from "./cli.ts";

/** Runs `legation ARGS` with an administrator's kubeconfig of the host; resolves with any exit code. */
export function legationOn(host: Cluster, ...args: string[]): Promise<CliResult> {
  return runCli([...args, `--kubeconfig=${host.kubeconfig}`]);
}

/** Runs the command in a process of its own, for tests of `main.ts` and of exits. */
export function legationProcessOn(host: Cluster, ...args: string[]): Promise<CliResult> {
  return runProcess([...args, `--kubeconfig=${host.kubeconfig}`]);
}

const PASSED_ON_MS = 2;

/** A run of `legation` that a test can observe and interrupt. */
export class LegationRun {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #stderr = "";
  #stdout = "";

  constructor(host: Pick<Cluster, "kubeconfig">, args: readonly string[]) {
    const [command = "", ...rest] = [...DEATH_SIGNAL, process.execPath, MAIN, ...args];
    this.#child = spawn(command, [...rest, `--kubeconfig=${host.kubeconfig}`], { stdio: ["ignore", "pipe", "pipe"] });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      this.#stdout += chunk.toString();
    });
    this.#ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", resolve);
    });
  }

  /** Standard error so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Standard output so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** Waits until standard error has the text. Rejects if the run ends without it. */
  async untilStderr(text: string): Promise<void> {
    while (!this.#stderr.includes(text)) {
      const { stderr } = this.#child;
      if (stderr?.readable !== true) throw new Error(`it ended without ${JSON.stringify(text)}: ${this.#stderr}`);
      await Promise.race([once(stderr, "data"), this.#ended]);
    }
  }

  /** Sends signals a moment apart, as npm passes on a Ctrl-C that was there already; resolves to the exit code. */
  async interrupt(...signals: readonly ("SIGTERM" | "SIGINT")[]): Promise<number | null> {
    for (const signal of signals) {
      this.#child.kill(signal);
      await sleep(PASSED_ON_MS);
    }
    return await this.#ended;
  }
}
