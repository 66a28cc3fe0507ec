import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { inject } from "vitest";
import type {} from "../harness/global-setup.ts";
import { eventually } from "../harness/wait.ts";

/** A stream protocol of kubectl, chosen by two environment variables. */
export type Transport = "SPDY" | "WebSocket";

/** The arguments of a kubectl that opens a stream. */
export interface StreamingOptions {
  readonly kubeconfig: string;
  readonly transport: Transport;
  /** Written to its standard input, which is then closed. */
  readonly input?: Buffer | string;
  /** Killed after this long; default 60 s. */
  readonly timeoutMs?: number;
  /** Runs it with a terminal of its own, of this size at first. */
  readonly terminal?: { readonly rows: number; readonly columns: number };
}

/** The result of a kubectl run. */
export interface Ran {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
  readonly seconds: number;
}

/** A kubectl that runs, with a conversation on its standard streams. */
export class StreamingKubectl implements Disposable {
  readonly child: ChildProcess;
  readonly ended: Promise<Ran>;
  readonly #stdout: Buffer[] = [];
  #stderr = "";

  constructor(args: readonly string[], options: StreamingOptions) {
    const { kubeconfig, transport, input, timeoutMs = 60_000, terminal } = options;
    const startedAt = performance.now();
    const sockets = String(transport === "WebSocket");
    const env = {
      ...process.env,
      KUBECTL_REMOTE_COMMAND_WEBSOCKETS: sockets,
      KUBECTL_PORT_FORWARD_WEBSOCKETS: sockets,
    };
    const command = [inject("kubectl"), `--kubeconfig=${kubeconfig}`, ...args];
    const [program = "", ...rest] = terminal === undefined ? command : inTerminal(command, terminal);
    this.child = spawn(program, rest, { env, timeout: timeoutMs, killSignal: "SIGKILL" });
    this.child.stdout?.on("data", (chunk: Buffer) => this.#stdout.push(chunk));
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    // kubectl may end before it has read everything; its exit code is the result.
    this.child.stdin?.on("error", () => {});
    if (input !== undefined) this.child.stdin?.end(input);
    this.ended = new Promise((resolve, reject) => {
      this.child.once("error", reject);
      this.child.once("close", (code, signal) => {
        const seconds = (performance.now() - startedAt) / 1000;
        // kubectl ended by itself, or by the test.
        if (signal === "SIGKILL" && seconds * 1000 >= timeoutMs) {
          reject(new Error(`kubectl ${args.join(" ")} did not end within ${timeoutMs} ms: ${this.#stderr}`));
          return;
        }
        resolve({ code, stdout: Buffer.concat(this.#stdout), stderr: this.#stderr, seconds });
      });
    });
    // The rejection reaches the waiting caller.
    this.ended.catch(() => {});
  }

  /** Output so far on both streams. */
  get said(): string {
    return `${Buffer.concat(this.#stdout)}${this.#stderr}`;
  }

  /** Bytes of its output so far. */
  get received(): number {
    return this.#stdout.reduce((sum, { length }) => sum + length, 0);
  }

  write(text: string): void {
    this.child.stdin?.write(text);
  }

  /** Resolves to the match once it has said so. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    return eventually(() => pattern.exec(this.said), { what: `${pattern} in "${this.said}"`, timeoutMs: 30_000 });
  }

  /** Changes the size of its terminal, as the person who drags a window's corner. */
  async resize(rows: number, columns: number): Promise<void> {
    const inner = await eventually(() => kubectlUnder(this.child.pid), { what: "kubectl in its terminal" });
    const terminal = readlinkSync(`/proc/${inner}/fd/0`);
    execFileSync("stty", ["-F", terminal, "rows", String(rows), "cols", String(columns)]);
  }

  [Symbol.dispose](): void {
    this.child.kill("SIGKILL");
  }
}

/** Runs kubectl to its end; resolves with any exit code. */
export function runStreaming(args: readonly string[], options: StreamingOptions): Promise<Ran> {
  return new StreamingKubectl(args, { input: "", ...options }).ended;
}

/** The child of `script`, which has become kubectl. */
function kubectlUnder(pid: number | undefined): string | undefined {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  return children.find((child) => child !== "");
}

/** `script` gives a command a terminal; its size is set from within, as its owner would. */
function inTerminal(command: readonly string[], { rows, columns }: { rows: number; columns: number }): string[] {
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  return ["script", "-qec", `stty rows ${rows} cols ${columns}; exec ${quoted}`, "/dev/null"];
}
