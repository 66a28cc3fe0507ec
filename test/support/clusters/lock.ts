import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

// A poll reads files, and several processes wait at a time, for minutes.
const POLL_MS = 250;
// Number of a ticket before the first that is taken.
const RESERVED = "0";

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** Reports whether a process with this id exists. */
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
  if (!isLeft(path)) return undefined;
  rmSync(path, { force: true });
  return tryLock(path) ? lock : undefined;
}

/** Reports whether the lock or ticket is a dead process's. */
function isLeft(path: string): boolean {
  const holder = holderOf(path);
  return holder !== undefined && !isAlive(holder);
}

/** The tickets of those who wait for `path`, the first in line first, without those of processes that died. */
function ticketsFor(path: string): string[] {
  const queue = `${path}.queue`;
  mkdirSync(queue, { recursive: true });
  const tickets = readdirSync(queue)
    .sort((a, b) => Number(a) - Number(b))
    .map((number) => join(queue, number));
  const left = tickets.filter(isLeft);
  for (const ticket of left) rmSync(ticket, { force: true });
  return tickets.filter((ticket) => !left.includes(ticket));
}

/** Queues up for `path` behind all who wait for it. */
function takeTicket(path: string): string {
  while (true) {
    const last = Number(basename(ticketsFor(path).at(-1) ?? RESERVED));
    const ticket = join(`${path}.queue`, String(last + 1));
    if (tryLock(ticket)) return ticket;
  }
}

/** Reserves `path` until `acquireReserved` takes it. It must have no waiters yet. */
export function reserve(path: string): void {
  mkdirSync(`${path}.queue`, { recursive: true });
  tryLock(join(`${path}.queue`, RESERVED));
}

/** Takes a reserved lock ahead of its waiters. Undefined if it was not reserved. */
export function acquireReserved(path: string): Lock | undefined {
  const reservation = join(`${path}.queue`, RESERVED);
  if (!existsSync(reservation)) return undefined;
  const lock = acquireNow(path);
  rmSync(reservation, { force: true });
  return lock;
}

/**
 * Waits for one of the paths and takes its lock, first come first served. Locks and places of dead processes are
 * free.
 */
export async function acquireFirst(paths: readonly string[], onProgress: (line: string) => void): Promise<Lock> {
  const tickets = new Map(paths.map((path) => [path, takeTicket(path)]));
  try {
    let told = false;
    while (true) {
      for (const [path, ticket] of tickets) {
        if (ticketsFor(path)[0] !== ticket) continue;
        const lock = acquireNow(path);
        if (lock !== undefined) return lock;
      }
      if (!told) onProgress(`waiting for the holder of ${paths.join(" or ")}`);
      told = true;
      await sleep(POLL_MS);
    }
  } finally {
    for (const ticket of tickets.values()) rmSync(ticket, { force: true });
  }
}

/** Runs `work` while no other process does so under the same path. */
export async function withLock<T>(
  path: string,
  onProgress: (line: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  const { release } = await acquireFirst([path], onProgress);
  try {
    return await work();
  } finally {
    release();
  }
}
