import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Cluster } from "../support/clusters/types.ts";
import type { Legation } from "../support/legation/start.ts";
import { processesOf } from "./shares.ts";

// The kernel counts in ticks of 1/100 s (sysconf _SC_CLK_TCK is 100 on Linux).
const TICK_MS = 10;

/** Processor time of a process so far, in milliseconds. Source: proc(5), fields 14 and 15 of stat. */
export function cpuMs(pid: number): number {
  const fields = afterName(readFileSync(`/proc/${pid}/stat`, "utf8"));
  // `afterName` starts at field 3.
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Resident memory of a process, in megabytes (10^6 bytes). */
export function rssMb(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kilobytes) * 1024) / 1e6;
}

/** Resident memory of a process without the files that it maps, such as Node.js itself, in megabytes (10^6 bytes). */
export function ownMb(pid: number): number {
  const kilobytes = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kilobytes) * 1024) / 1e6;
}

/** Returns how many files and sockets a process has open. */
export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Processor time of processes so far, in milliseconds. A process that has ended counts no more. */
function cpuMsOf(pids: readonly number[]): number {
  return pids.reduce((total, pid) => total + (existsSync(`/proc/${pid}`) ? cpuMs(pid) : 0), 0);
}

/** Processor time by group of processes, in milliseconds. */
export type Usage = Readonly<Record<string, number>>;

/** Returns a function that returns the processor time of each group of processes so far. */
export function usageOf({
  host,
  members,
  legation,
}: {
  readonly host: Cluster;
  readonly members: readonly Cluster[];
  readonly legation: Pick<Legation, "controller" | "webhook">;
}): () => Usage {
  const groups = {
    "the host's control plane": processesOf(host.directory),
    "the members' control planes": members.flatMap(({ directory }) => processesOf(directory)),
    "Legation's controller": [legation.controller.pid ?? 0],
    "Legation's webhook": [legation.webhook.pid ?? 0],
    "the load generator": [process.pid],
  };
  return () => Object.fromEntries(Object.entries(groups).map(([name, pids]) => [name, cpuMsOf(pids)]));
}

export function differenceOf(after: Usage, before: Usage): Usage {
  return Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, ms - (before[name] ?? 0)]));
}

function afterName(stat: string): string[] {
  // The name stands in brackets and may hold spaces.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}
