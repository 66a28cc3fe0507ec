import { spawn } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
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
  /** File with every command and all that it printed, made anew. */
  readonly transcript: string;
  /** Aborts the running command. */
  readonly signal: AbortSignal;
}

/** Runs commands as a user types them. Prints those that show something with their output, and writes all of them to a file. */
export class Shell {
  readonly #options: ShellOptions;
  #steps = 0;

  constructor(options: ShellOptions) {
    this.#options = options;
    writeFileSync(options.transcript, "");
  }

  /** Starts the next numbered step. */
  step(title: string): void {
    const { terminal } = this.#options;
    this.#steps += 1;
    this.#keep(`\n${this.#steps}. ${title}`);
    terminal.print(`\n${terminal.paint("bold", `${this.#steps}. ${title}`)}`);
  }

  /** Prints an explanation. */
  say(...lines: readonly string[]): void {
    for (const line of lines) {
      this.#keep(line);
      this.#options.terminal.print(line === "" ? "" : `   ${line}`);
    }
  }

  /** Writes a command to the file without running it. */
  note(command: string): void {
    this.#keep(`\n$ ${command}`);
  }

  /** Runs a command for its effect: command and output are in the file alone. Rejects if it fails. */
  async run(program: Program, ...args: readonly string[]): Promise<string> {
    this.note(this.#asTyped([program, ...args]));
    return this.#execute(program, args, (line) => this.#keep(line));
  }

  /** Prints and runs a command, and prints its output. Rejects if it fails. */
  async look(program: Program, ...args: readonly string[]): Promise<string> {
    const { terminal } = this.#options;
    const command = this.#asTyped([program, ...args]);
    this.note(command);
    terminal.print(`   ${terminal.paint("cyan", `$ ${command}`)}`);
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

  #keep(line: string): void {
    appendFileSync(this.#options.transcript, `${line}\n`);
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
