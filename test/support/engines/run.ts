import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { DEATH_SIGNAL } from "../clusters/death-signal.ts";

/** The result of an engine's program. */
export interface EngineRun {
  readonly code: number | null;
  /** Both output streams, interleaved. */
  readonly output: string;
}

/** A program of an engine that runs. */
export interface EngineProgram {
  output(): string;
  readonly ended: Promise<EngineRun>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts a program of an engine; what it says also goes to `logFile`. */
export function startProgram(
  program: string,
  args: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd: string; readonly logFile: string },
): EngineProgram {
  const [command = "", ...rest] = [...DEATH_SIGNAL, program, ...args];
  const child = spawn(command, rest, { env: options.env, cwd: options.cwd, stdio: ["ignore", "pipe", "pipe"] });
  const log = createWriteStream(options.logFile);
  let output = "";
  const keep = (chunk: Buffer): void => {
    output += chunk.toString();
    log.write(chunk);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const ended = new Promise<EngineRun>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      log.end();
      resolve({ code, output });
    });
  });
  return { output: () => output, ended, kill: (signal) => child.kill(signal) };
}
