import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Terminal } from "../../src/cli/shared/terminal.ts";

/** Script behind the `legation` command of a clone. */
export const LEGATION: string = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
// Root of the checkout, where commands run.
const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

export type Program = "kubectl" | "legation";

export interface ShellOptions {
  readonly terminal: Terminal;
  readonly kubectl: string;
  /** Kubeconfig of the host, the default of both programs. */
  readonly kubeconfig: string;
  /** Folder of the demo; shown as `$DEMO`. */
  readonly directory: string;
  /** Aborts the running command. */
  readonly signal: AbortSignal;
}

/** Runs commands as a user types them, and prints both commands and output. */
export class Shell {
  readonly #options: ShellOptions;
  #steps = 0;

  constructor(options: ShellOptions) {
    this.#options = options;
  }

  /** Starts the next numbered step. */
  step(title: string): void {
    const { terminal } = this.#options;
    this.#steps += 1;
    terminal.print(`\n${terminal.paint("bold", `${this.#steps}. ${title}`)}`);
  }

  /** Prints an explanation. */
  say(...lines: readonly string[]): void {
    for (const line of lines) this.#options.terminal.print(line === "" ? "" : `   ${line}`);
  }

  /** Prints a command without running it. */
  show(command: string): void {
    const { terminal } = this.#options;
    terminal.print(`\n   ${terminal.paint("cyan", `$ ${command}`)}`);
  }

  /** Prints and runs a command, and prints its output. Rejects if it fails. */
  async run(program: Program, ...args: readonly string[]): Promise<string> {
    this.show(this.#asTyped([program, ...args]));
    return this.#execute(program, args, (line) => this.say(line));
  }

  /** Runs a command silently and returns its output. */
  read(program: Program, ...args: readonly string[]): Promise<string> {
    return this.#execute(program, args, () => {});
  }

  async #execute(program: Program, args: readonly string[], onLine: (line: string) => void): Promise<string> {
    const { kubectl, kubeconfig, signal } = this.#options;
    const [file, before] = program === "kubectl" ? [kubectl, []] : [process.execPath, [LEGATION]];
    const child = spawn(file, [...before, ...args], {
      cwd: ROOT,
      env: { ...withoutFlags(process.env), KUBECONFIG: kubeconfig },
      stdio: ["ignore", "pipe", "pipe"],
      signal,
    });
    let output = "";
    const errors: string[] = [];
    const lines = { out: new Lines(onLine), err: new Lines((line) => errors.push(line) && onLine(line)) };
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
      lines.out.add(chunk);
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => lines.err.add(chunk));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    lines.out.end();
    lines.err.end();
    signal.throwIfAborted();
    if (code !== 0) throw new Error(`${this.#asTyped([program, ...args])}: exit ${code}: ${errors.join("\n")}`);
    return output;
  }

  #asTyped(words: readonly string[]): string {
    return words
      .map((word) => word.replaceAll(this.#options.directory, "$DEMO"))
      .map((word) => (/^[\w@%+=:,./$-]+$/.test(word) ? word : `'${word}'`))
      .join(" ");
  }
}

/** Splits chunks into lines. */
class Lines {
  readonly #onLine: (line: string) => void;
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  add(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#onLine(line);
  }

  end(): void {
    if (this.#rest !== "") this.#onLine(this.#rest);
    this.#rest = "";
  }
}

/** Returns the environment without Legation's variables, which count as flags. */
export function withoutFlags(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("LEGATION_")));
}
