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
  const isVersion1 = existsSync(join(VERSION_1, "cpu.cfs_quota_us"));
  const root = isVersion1 ? VERSION_1 : VERSION_2;
  const quota = Math.round(cores * PERIOD_US);
  const made: string[] = [];
  const undo = (): void => {
    for (const folder of made.splice(0)) {
      for (const pid of readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n")) {
        if (pid !== "") move(pid, root);
      }
      rmdirSync(folder);
    }
  };
  try {
    for (const { name, pids } of groups) {
      const folder = join(root, `legation-bench-${process.pid}-${name}`);
      mkdirSync(folder);
      made.push(folder);
      if (isVersion1) {
        writeFileSync(join(folder, "cpu.cfs_period_us"), String(PERIOD_US));
        writeFileSync(join(folder, "cpu.cfs_quota_us"), String(quota));
      } else writeFileSync(join(folder, "cpu.max"), `${quota} ${PERIOD_US}`);
      for (const pid of pids) move(String(pid), folder);
    }
  } catch (error) {
    undo();
    throw error;
  }
  return undo;
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
