import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 100;

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** True while a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, "EPERM");
  }
}

function tryLock(path: string): boolean {
  try {
    writeFileSync(path, `${process.pid}\n`, { flag: "wx" });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** The lock's holder; undefined when it is gone or has not written its id yet. */
function holderOf(path: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(path, "utf8"), 10);
    return Number.isNaN(pid) ? undefined : pid;
  } catch {
    return undefined;
  }
}

/** A lock that this process holds. */
export interface Lock {
  readonly path: string;
  release(): void;
}

/** Holds `path` if no other process does; the lock of a process that died is taken over. */
export function acquireNow(path: string): Lock | undefined {
  const lock: Lock = { path, release: () => rmSync(path, { force: true }) };
  if (tryLock(path)) return lock;
  const holder = holderOf(path);
  if (holder === undefined || isAlive(holder)) return undefined;
  rmSync(path, { force: true });
  return tryLock(path) ? lock : undefined;
}

/**
 * Waits until one of the paths, which may change meanwhile, is held by no other process, and holds it; the lock of a process
 * that died is taken over.
 */
export async function acquireFirst(paths: () => readonly string[], onProgress: (line: string) => void): Promise<Lock> {
  let told = false;
  while (true) {
    for (const path of paths()) {
      const lock = acquireNow(path);
      if (lock !== undefined) return lock;
    }
    if (!told) onProgress(`waiting for the holder of ${paths().join(" or ")}`);
    told = true;
    await sleep(POLL_MS);
  }
}

/** Runs `work` while no other process does so under the same path. */
export async function withLock<T>(
  path: string,
  onProgress: (line: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  const { release } = await acquireFirst(() => [path], onProgress);
  try {
    return await work();
  } finally {
    release();
  }
}
