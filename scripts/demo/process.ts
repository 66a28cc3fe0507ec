import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { LEGATION, withoutFlags } from "./shell.ts";

/** A process of Legation in the demo. */
export interface ProcessSpec {
  readonly name: "webhook" | "controller" | "access" | "agent";
  readonly args: readonly string[];
  /** Folder for its log and process id. */
  readonly directory: string;
  /** Text in its log once it is ready. */
  readonly readyText: string;
  readonly signal: AbortSignal;
}

const READY_MS = 60_000;
// Ends processes at once: their state is discarded.
const STOP_MS = 5_000;
// A process that cannot start is not tried for ever.
const MOST_RESTARTS = 3;
const RESTARTING = join(import.meta.dirname, "restarting.sh");
const LOG_TAIL_LINES = 15;
const PROCESSES = "processes.json";

const recorded = z.array(z.object({ name: z.string(), pid: z.int() }));

/**
 * Starts a process in its own session, so that Ctrl-C reaches the demo alone, and waits until it is ready. It is started again
 * whenever it ends. Records the id of what restarts it first.
 */
export async function startProcess({ name, args, directory, readyText, signal }: ProcessSpec): Promise<void> {
  const file = logFile(directory, name);
  const log = openSync(file, "a");
  const child = spawn(RESTARTING, [directory, process.execPath, LEGATION, name, ...args], {
    detached: true,
    env: withoutFlags(process.env),
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  child.unref();
  child.on("error", () => {});
  if (child.pid !== undefined) record(directory, name, child.pid);
  const deadline = performance.now() + READY_MS;
  for (let text = ""; !text.includes(readyText); text = readFileSync(file, "utf8")) {
    if (child.pid === undefined || restartsIn(text) >= MOST_RESTARTS) {
      throw new Error(`legation ${name} ended before it was ready`);
    }
    if (performance.now() > deadline) throw new Error(`legation ${name} was not ready in ${READY_MS / 1000} s`);
    await sleep(100, undefined, { signal });
  }
}

/** Counts how often a process has been started again, by its log. */
export function restartsIn(log: string): number {
  return log.match(/^restarting: exit \d+$/gm)?.length ?? 0;
}

/** Ends the recorded processes, also of an earlier demo. */
export async function stopProcesses(directory: string): Promise<void> {
  for (const pid of running(directory)) process.kill(pid, "SIGTERM");
  const deadline = performance.now() + STOP_MS;
  while (running(directory).length > 0 && performance.now() < deadline) await sleep(50);
  killProcesses(directory);
}

/** Ends the recorded processes at once, with those that they have started. */
export function killProcesses(directory: string): void {
  for (const pid of running(directory)) process.kill(-pid, "SIGKILL");
}

function running(directory: string): number[] {
  return read(directory)
    .filter(({ name, pid }) => isOurs(pid, directory, name))
    .map(({ pid }) => pid);
}

/** Returns the last lines of the logs. */
export function logTails(directory: string): string {
  return ["webhook", "controller", "access", "agent"]
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

/** Reports whether the id still belongs to the process: ids are reused. */
function isOurs(pid: number, directory: string, name: string): boolean {
  const { stdout } = spawnSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
  return stdout?.includes(`${RESTARTING} ${directory} ${process.execPath} ${LEGATION} ${name}`) ?? false;
}
