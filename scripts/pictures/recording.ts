import { spawn } from "node:child_process";
import { styleText } from "node:util";
import { wrapAnsi } from "fast-wrap-ansi";
import { withoutFlags } from "../demo/shell.ts";
import type { Frame } from "./animation.ts";

/** Columns of the recorded terminal. */
export const COLUMNS = 100;
// A reader sees the command before its answer.
const TYPED_SECONDS = 0.5;
// Lines of progress, which commands erase.
const ERASED = /[^\n]*\r\p{Control}\[2K/gu;

/** Settings of a recording. */
export interface RecordingOptions {
  /** Working directory of the commands. */
  readonly cwd: string;
  /** Folder of `kubectl` and `legation`. */
  readonly bin: string;
  readonly kubeconfig: string;
  readonly signal: AbortSignal;
  /** Keeps a command and its output for those who look for a fault. */
  readonly note: (text: string) => void;
}

/** Settings of one command. */
export interface CommandOptions {
  /** How long its output is shown. */
  readonly seconds: number;
  /** Exit code that is expected; default 0. */
  readonly exitCode?: number;
}

/** Records commands and what they print, as a terminal shows it. */
export class Recording {
  readonly #options: RecordingOptions;
  readonly #frames: Frame[] = [];
  #screen: string[] = [];

  constructor(options: RecordingOptions) {
    this.#options = options;
  }

  get frames(): readonly Frame[] {
    return this.#frames;
  }

  clear(): void {
    this.#screen = [];
  }

  /** Says in a shell's comment what comes, below what is on the screen. */
  say(comment: string): void {
    if (this.#screen.length > 0) this.#screen.push("");
    this.#screen.push(paint("dim", `# ${comment}`));
  }

  /** Runs a command line on the screen as it is. Rejects if it ends with another exit code. */
  async run(command: string, { seconds, exitCode = 0 }: CommandOptions): Promise<void> {
    this.#screen.push(`${paint("green", "$")} ${paint("bold", command)}`);
    this.#show(TYPED_SECONDS);
    const output = await this.#execute(command, exitCode);
    this.#options.note(`${command}\n${output}`);
    this.#screen.push(...output.trimEnd().split(/\r?\n/).flatMap(rowsOf));
    this.#show(seconds);
  }

  #show(seconds: number): void {
    this.#frames.push({ lines: [...this.#screen], seconds });
  }

  /** Runs a command in a terminal of its own, by `script` of util-linux: without one, there are no colours and no columns. */
  async #execute(command: string, exitCode: number): Promise<string> {
    const { cwd, bin, kubeconfig, signal } = this.#options;
    const inTerminal = `stty cols ${COLUMNS} rows 40; ${command}`;
    const child = spawn("script", ["--quiet", "--return", "--flush", "--command", inTerminal, "/dev/null"], {
      cwd,
      env: {
        ...withoutFlags(process.env),
        SHELL: "/bin/sh",
        TERM: "xterm-256color",
        NO_COLOR: "",
        PATH: `${bin}:${process.env.PATH}`,
        KUBECONFIG: kubeconfig,
      },
      stdio: ["ignore", "pipe", "inherit"],
      signal,
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    if (code !== exitCode) throw new Error(`${command}: exit ${code}: ${output}`);
    return output.replaceAll(ERASED, "");
  }
}

/** Breaks a line where the terminal does: at its last column. */
function rowsOf(line: string): string[] {
  return wrapAnsi(line, COLUMNS, { hard: true, wordWrap: false, trim: false }).split("\n");
}

function paint(style: Parameters<typeof styleText>[0], text: string): string {
  return styleText(style, text, { validateStream: false });
}
