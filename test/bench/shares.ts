import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// A short period: a process that has used up its share soon gets the next one.
const PERIOD_US = 10_000;
const VERSION_1 = "/sys/fs/cgroup/cpu";
const VERSION_2 = "/sys/fs/cgroup";

/** Processes that share what one machine of a size would have. */
export interface Sharers {
  readonly name: string;
  readonly pids: readonly number[];
}

/** Returns why no shares can be given here; undefined when they can. */
export function sharesImpossible(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "that needs Linux, root and cgroups";
  return existsSync(join(VERSION_1, "cpu.cfs_quota_us")) || existsSync(join(VERSION_2, "cgroup.controllers"))
    ? undefined
    : "there is no cgroup tree for the processor";
}

/**
 * Gives each group of processes, and what they start from now on, no more than so many cores together, until the result is called.
 * Source: the kernel's cgroup-v1/../sched-bwc and cgroup-v2 (cpu.max).
 */
export function giveShares(groups: readonly Sharers[], cores: number): () => void {
  const quota = String(Math.round(cores * PERIOD_US));
  return putInCgroups(groups, {
    version1: { "cpu.cfs_period_us": String(PERIOD_US), "cpu.cfs_quota_us": quota },
    version2: { "cpu.max": `${quota} ${PERIOD_US}` },
  });
}

/** Gives processes together a tenth of the weight of another one, until the result is called: as if they ran on other machines. */
export function giveRest(pids: readonly number[]): () => void {
  const settings = { version1: { "cpu.shares": "102" }, version2: { "cpu.weight": "10" } };
  return putInCgroups([{ name: "rest", pids }], settings);
}

interface CpuSettings {
  /** Values by file. */
  readonly version1: Readonly<Record<string, string>>;
  readonly version2: Readonly<Record<string, string>>;
}

function putInCgroups(groups: readonly Sharers[], { version1, version2 }: CpuSettings): () => void {
  const isVersion1 = existsSync(join(VERSION_1, "cpu.cfs_quota_us"));
  const root = isVersion1 ? VERSION_1 : VERSION_2;
  const made: string[] = [];
  const undo = (): void => {
    for (const folder of made.splice(0)) remove(folder, root);
  };
  try {
    for (const { name, pids } of groups) {
      const folder = join(root, `legation-bench-${process.pid}-${name}`);
      mkdirSync(folder);
      made.push(folder);
      for (const [file, value] of Object.entries(isVersion1 ? version1 : version2)) {
        writeFileSync(join(folder, file), value);
      }
      for (const pid of pids) move(String(pid), folder);
    }
  } catch (error) {
    undo();
    throw error;
  }
  return undo;
}

// A process that ends, or was just moved, is in its group for a moment longer.
const REMOVE_ATTEMPTS = 100;
const REMOVE_AGAIN_MS = 20;

/** Moves the processes of a group to another one, and removes it. */
function remove(folder: string, to: string): void {
  for (let attempt = 1; ; attempt += 1) {
    for (const pid of readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n")) {
      if (pid !== "") move(pid, to);
    }
    try {
      rmdirSync(folder);
      return;
    } catch (error) {
      if (attempt === REMOVE_ATTEMPTS) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVE_AGAIN_MS);
    }
  }
}

/** The processes whose command line names the folder. */
export function processesOf(folder: string): number[] {
  return readdirSync("/proc").flatMap((entry) => {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) return [];
    try {
      return readFileSync(join("/proc", entry, "cmdline"), "utf8").includes(`${folder}/`) ? [Number(entry)] : [];
    } catch {
      // The process has ended meanwhile.
      return [];
    }
  });
}

function move(pid: string, folder: string): void {
  try {
    writeFileSync(join(folder, "cgroup.procs"), pid);
  } catch (error) {
    // The process has ended meanwhile.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
