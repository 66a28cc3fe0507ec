import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DEATH_SIGNAL } from "./death-signal.ts";

const STOP_MS = 15_000;
const LOG_TAIL_LINES = 15;

/** The command of a process. */
export interface PlaneSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Variables beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** File to which both outputs are appended. */
  readonly logFile: string;
  /** Done before each start. */
  readonly prepare?: () => Promise<void>;
  /** Resolves to true when the process is ready for use; asked again and again until then. */
  readonly ready: () => Promise<boolean>;
  readonly readyTimeoutMs: number;
  /** Called with the last lines of the log each time the process ends by itself. */
  readonly onEnded?: (tail: string) => void;
}

/** Reports whether a thread runs, by its `stat` in /proc: the state follows the name in brackets. */
function mayRun(stat: string): boolean {
  try {
    const text = readFileSync(stat, "utf8");
    return !/^[TtZX]/.test(text.slice(text.lastIndexOf(")") + 2));
  } catch {
    // The process has just ended.
    return false;
  }
}

/** A child process that can be stopped, frozen and started again. */
export class PlaneProcess {
  readonly spec: PlaneSpec;
  #child: ChildProcess | undefined;
  #wanted = false;
  #gone: Promise<void> = Promise.resolve();
  #stopping = false;
  /** The start in progress, so that two never run at once. */
  #starting: Promise<void> | undefined;
  /** Resolves when this start, or the next one, has ended. */
  #ended = Promise.withResolvers<string>();
  #hasEnded = false;

  constructor(spec: PlaneSpec) {
    this.spec = spec;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  /** Reports whether the process was ever started. */
  get wanted(): boolean {
    return this.#wanted;
  }

  /** Resolves to the last lines of the log if the process ends by itself. */
  whenEnded(): Promise<string> {
    return this.#ended.promise;
  }

  /** Starts or thaws the process, and waits until it is ready; ends it when that takes too long. */
  async start(): Promise<void> {
    this.#wanted = true;
    if (this.#child === undefined) {
      this.#starting ??= this.#launch();
      await this.#starting;
    } else this.#child.kill("SIGCONT");
    const deadline = performance.now() + this.spec.readyTimeoutMs;
    for (;;) {
      if (await this.spec.ready()) return;
      if (!this.running) throw new Error(`${this.spec.name} ended before it was ready:\n${this.logTail()}`);
      if (performance.now() > deadline) {
        await this.stop("SIGKILL");
        throw new Error(`${this.spec.name} was not ready in ${this.spec.readyTimeoutMs} ms:\n${this.logTail()}`);
      }
      await sleep(50);
    }
  }

  /** Sends the signal and waits for the end; SIGKILL follows after a while. */
  async stop(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#stopping = true;
    child.kill(signal);
    // A frozen process would keep any other signal than SIGKILL waiting.
    child.kill("SIGCONT");
    const killer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await this.#gone;
    clearTimeout(killer);
  }

  /** Resolves when none of its threads runs any more, which is a little after the signal where processors are busy. */
  async freeze(): Promise<void> {
    const { pid } = this.#signal("SIGSTOP");
    const threads = `/proc/${pid}/task`;
    while (existsSync(threads) && readdirSync(threads).some((thread) => mayRun(join(threads, thread, "stat")))) {
      await sleep(5);
    }
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  #signal(signal: "SIGSTOP" | "SIGCONT"): ChildProcess {
    if (this.#child === undefined) throw new Error(`${this.spec.name} is not running.`);
    this.#child.kill(signal);
    return this.#child;
  }

  /** The last lines of the log. */
  logTail(): string {
    if (!existsSync(this.spec.logFile)) return "(no output)";
    return readFileSync(this.spec.logFile, "utf8").trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n");
  }

  async #launch(): Promise<void> {
    try {
      await this.spec.prepare?.();
      this.#spawn();
    } finally {
      this.#starting = undefined;
    }
  }

  #spawn(): void {
    const log = openSync(this.spec.logFile, "a");
    const [command = "", ...args] = [...DEATH_SIGNAL, this.spec.command, ...this.spec.args];
    const env = { ...process.env, ...this.spec.env };
    const child = spawn(command, args, { stdio: ["ignore", log, log], env });
    closeSync(log);
    this.#child = child;
    this.#stopping = false;
    if (this.#hasEnded) this.#ended = Promise.withResolvers<string>();
    this.#hasEnded = false;
    this.#gone = new Promise((resolve) => {
      const gone = (how: number | string | Error): void => {
        this.#child = undefined;
        if (!this.#stopping) {
          const tail = `${this.logTail()}\n(${typeof how === "number" ? `exit code ${how}` : how})`;
          this.#hasEnded = true;
          this.#ended.resolve(tail);
          this.spec.onEnded?.(tail);
        }
        resolve();
      };
      child.once("exit", (code, signal) => gone(code ?? signal ?? "no exit code"));
      child.once("error", gone);
    });
  }
}
