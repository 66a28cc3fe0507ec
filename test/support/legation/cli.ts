import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { join } from "node:path";
import { Readable } from "node:stream";
import { DEATH_SIGNAL } from "../clusters/death-signal.ts";

/** Root of the checkout: where package.json is. */
export const ROOT: string = join(import.meta.dirname, "..", "..", "..");

/** The result of a command. */
export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Script that is `legation`, among the sources. */
export const SOURCE: string = join(ROOT, "src", "cli", "main.ts");

/** Variable with the script to run instead, made of the same sources. */
export const MAIN_VARIABLE = "LEGATION_TEST_MAIN";

/** Script that is `legation`, in a process of its own. */
export const MAIN: string = process.env[MAIN_VARIABLE] ?? SOURCE;

/** Standard input of the command. */
interface Input {
  readonly input?: string;
  /** Milliseconds after which the command is interrupted. Default: two minutes. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 240_000;

/**
 * Runs `legation ARGS` from the sources within this process, which costs a fraction of another one; resolves with any exit
 * code. The code of `main.ts` itself is not run.
 */
export async function runCli(
  args: readonly string[],
  { input = "", timeoutMs = TIMEOUT_MS }: Input = {},
): Promise<CliResult> {
  // Most files run no command: they need not load this.
  const [{ runProgram }, { CommandConnections }, { Interruption }, { packageVersion }, { Terminal }] =
    await Promise.all([
      import("../../../src/cli/program.ts"),
      import("../../../src/cli/shared/connections.ts"),
      import("../../../src/cli/shared/failure.ts"),
      import("../../../src/cli/shared/package-root.ts"),
      import("../../../src/cli/shared/terminal.ts"),
    ]);
  const env = { ...process.env };
  const version = packageVersion();
  const interruption = new AbortController();
  const timeout = setTimeout(() => interruption.abort(new Interruption("SIGTERM")), timeoutMs);
  const out = new Written();
  const err = new Written();
  const { signal } = interruption;
  const onPluginStderr = (text: string): void => err.write(text);
  const connections = new CommandConnections(env, `legation/${version}`, { signal, onPluginStderr });
  try {
    const code = await runProgram(
      args,
      {
        env,
        stdin: Readable.from([input]),
        terminal: new Terminal(out, err, env),
        signal,
        connect: (choice, as) => connections.open(choice, as),
        connectText: (kubeconfig, as) => connections.openText(kubeconfig, as),
        openReading: (host, member) => connections.openReading(host, member),
      },
      version,
    );
    return { code, stdout: out.text, stderr: err.text };
  } finally {
    clearTimeout(timeout);
    await connections.close();
  }
}

/** Runs `legation ARGS` as a user does, in a process of its own, from the sources or from another `main`. */
export function runProcess(
  args: readonly string[],
  { input = "", timeoutMs = TIMEOUT_MS, main = MAIN }: Input & { readonly main?: string } = {},
): Promise<CliResult> {
  const [command = "", ...rest] = [...DEATH_SIGNAL, process.execPath, main, ...args];
  return resultOf(spawn(command, rest, { timeout: timeoutMs }), input);
}

/** Gives a program its standard input, and resolves with any exit code once it has ended. */
export function resultOf(child: ChildProcessWithoutNullStreams, input: string): Promise<CliResult> {
  child.stdin.on("error", () => {
    // The program ended before it read all input; its exit code tells the result.
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
export async function legation(
  args: readonly string[],
  { main = MAIN, ...input }: Input & { readonly main?: string } = {},
): Promise<string> {
  const { code, stdout, stderr } = await (main === MAIN ? runCli(args, input) : runProcess(args, { ...input, main }));
  if (code !== 0) throw new Error(`legation ${args.join(" ")}: exit ${code}: ${stderr.trim()}`);
  return stdout;
}

/** A stream that keeps what is written. */
class Written {
  text = "";

  write(text: string | Buffer): void {
    this.text += text;
  }
}
