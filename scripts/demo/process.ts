import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { LEGATION, withoutFlags } from "./shell.ts";

/** A process of Legation, as the demo runs it. */
export interface ProcessSpec {
  readonly name: "webhook" | "controller";
  readonly args: readonly string[];
  /** Folder for its log and its process id. */
  readonly directory: string;
  /** Text in its log that says it works. */
  readonly readyText: string;
  readonly signal: AbortSignal;
}

const READY_MS = 60_000;
// All that they could still do is thrown away after them.
const STOP_MS = 5_000;
const LOG_TAIL_LINES = 15;
const PROCESSES = "processes.json";

const recorded = z.array(z.object({ name: z.string(), pid: z.int() }));

/**
 * Starts a process of its own session, so that it can outlive the demo and Ctrl-C is for the demo alone to handle, and
 * waits until it is ready. Its id is recorded in the folder before anything can go wrong.
 */
export async function startProcess({ name, args, directory, readyText, signal }: ProcessSpec): Promise<void> {
  const file = logFile(directory, name);
  const log = openSync(file, "a");
  const child = spawn(process.execPath, [LEGATION, name, ...args], {
    detached: true,
    env: withoutFlags(process.env),
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  child.unref();
  if (child.pid !== undefined) record(directory, name, child.pid);
  const deadline = performance.now() + READY_MS;
  while (!readFileSync(file, "utf8").includes(readyText)) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) {
      throw new Error(`legation ${name} ended before it was ready`);
    }
    if (performance.now() > deadline) throw new Error(`legation ${name} was not ready in ${READY_MS / 1000} s`);
    await sleep(100, undefined, { signal });
  }
}

/** Ends the processes that are recorded in the folder, also those of a demo that ran before. */
export async function stopProcesses(directory: string): Promise<void> {
  const running = (): number[] =>
    read(directory)
      .filter(({ name, pid }) => isOurs(pid, name))
      .map(({ pid }) => pid);
  for (const pid of running()) process.kill(pid, "SIGTERM");
  const deadline = performance.now() + STOP_MS;
  while (running().length > 0 && performance.now() < deadline) await sleep(50);
  for (const pid of running()) process.kill(pid, "SIGKILL");
}

/** The ends of both logs, for when something went wrong. */
export function logTails(directory: string): string {
  return ["webhook", "controller"]
    .map((name) => logFile(directory, name))
    .filter(existsSync)
    .map((file) => `--- end of ${file}\n${lastLines(file)}`)
    .join("\n");
}

function logFile(directory: string, name: string): string {
  return join(directory, `${name}.log`);
}

function lastLines(file: string): string {
  return readFileSync(file, "utf8").trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n");
}

function record(directory: string, name: string, pid: number): void {
  writeFileSync(join(directory, PROCESSES), JSON.stringify([...read(directory), { name, pid }]));
}

function read(directory: string): z.output<typeof recorded> {
  const file = join(directory, PROCESSES);
  return existsSync(file) ? recorded.parse(JSON.parse(readFileSync(file, "utf8"))) : [];
}

/** Reports whether the id still belongs to that process, since ids are reused, above all after a reboot. */
function isOurs(pid: number, name: string): boolean {
  const { stdout } = spawnSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
  return stdout?.includes(`${LEGATION} ${name}`) ?? false;
}
