import { readFileSync } from "node:fs";
import { availableMemory } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { CONTROLLER_LEASE, SYSTEM_NAMESPACE } from "../../../src/api/keys.ts";
import type { Figure } from "../figures.ts";
import { cpuMs, openFiles, rssMb } from "../process-usage.ts";
import { churnPods, type Program, until, withController } from "./controller-process.ts";
import { type Fleet, fleetOf } from "./fleet.ts";

/** Figures of the controller for one number of members and proxies. */
export interface ScaleResult {
  readonly members: number;
  readonly proxies: number;
  /** Time from the start of the process, after another one, to the binding of a pod that was waiting. */
  readonly firstPlacementMs: number;
  /** Processor time until then. */
  readonly startCpuMs: number;
  /** Resident, after it has come to rest. */
  readonly rssMb: number;
  /** Share of a core while nothing happens. */
  readonly idleCpuPercent: number;
  /** Requests a second while nothing happens, to all API servers together. */
  readonly idleRequests: number;
  /** Processor time for each pod that is created, runs and is deleted. */
  readonly podCpuMs: number;
  readonly podWatchKb: number;
  readonly podRequests: number;
  /** Open files of the controller while nothing happens, connections among them. */
  readonly openFiles: number;
}

interface Size {
  readonly members: number;
  readonly proxies: number;
}

export interface ScaleOptions extends Program {
  readonly sizes: readonly Size[];
  readonly onProgress: (line: string) => void;
  /** Called with each result as soon as it is there. */
  readonly onResult: (result: ScaleResult) => void;
}

// Lists that begin with the start go on: each kind of copies is listed twice within 90 s, the members' turns come one after another.
const REST_MS = 5_000;
const REST_OF_MANY_MS = 90_000;
const MANY = 100;
const REST_PER_MEMBER_MS = 60;
// On a busy machine those lists take longer: it is calm when three times in a row no more comes than an idle member's two requests
// in ten seconds, and seldom a third.
const CALM = { everyMs: 10_000, perMember: 0.23, others: 5, inARow: 3, most: 30 };
const LEASES = "leases";
// A controller that has not written for so long has nothing left to do.
const QUIET_MS = 3_000;
// Probes come every 10 s, and Leases every 12.
const IDLE_MS = 30_000;
const CHURN_PODS = 500;
const CHURN_PER_SECOND = 50;
const PATIENCE_MS = 600_000;
// Connections of the controller for requests and watches, while it starts: at rest there are five.
const FILES_PER_MEMBER = 8;
const OTHER_FILES = 200;
// The API servers and the controller together need this much.
const MB_PER_MEMBER = 1;
const MB_PER_PROXY = 0.06;

/**
 * Starts the controller on fleets that are not there: its API servers are one process that answers from memory, so the
 * figures are the controller's own. What real API servers need for the same is not in them.
 */
export async function benchScale(options: ScaleOptions): Promise<readonly ScaleResult[]> {
  const { sizes, onProgress, onResult } = options;
  const results: ScaleResult[] = [];
  const limits = { files: mostFiles(), mb: availableMemory() / 1e6 };
  onProgress(`at most ${limits.files} open files a process (ulimit -n), and ${limits.mb.toFixed(0)} MB of memory`);
  for (const size of sizes) {
    const name = `${size.members} members, ${size.proxies} proxies`;
    const needed = {
      files: size.members * FILES_PER_MEMBER + OTHER_FILES,
      mb: size.members * MB_PER_MEMBER + size.proxies * MB_PER_PROXY,
    };
    onProgress(`${name}: about ${needed.files} open files a process, and ${needed.mb.toFixed(0)} MB`);
    if (needed.files > limits.files || needed.mb > limits.mb) {
      onProgress(`${name}: left out, since this is more than there is`);
      continue;
    }
    const fleet = await fleetOf(size.members, size.proxies);
    try {
      const result = await measure(fleet, size, options);
      results.push(result);
      onResult(result);
    } catch (error) {
      onProgress(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      await fleet.close();
    }
  }
  return results;
}

const FLEETS: readonly { readonly holds: (size: Size) => boolean; readonly goals: readonly Goal[] }[] = [
  {
    holds: ({ members, proxies }) => members === 1000 && proxies <= 20_000,
    goals: [
      ["first placement", "s", ({ firstPlacementMs }) => firstPlacementMs / 1000, 10],
      ["memory", "MB", ({ rssMb: mb }) => mb, 600],
      ["idle", "% of a core", ({ idleCpuPercent }) => idleCpuPercent, 10],
      ["idle requests", "/s", ({ idleRequests }) => idleRequests, 200],
    ],
  },
  {
    holds: ({ members }) => members === 3500,
    goals: [
      ["memory", "MB", ({ rssMb: mb }) => mb, 2000],
      ["idle", "% of a core", ({ idleCpuPercent }) => idleCpuPercent, 25],
    ],
  },
  { holds: ({ proxies }) => proxies === 100_000, goals: [["memory", "MB", ({ rssMb: mb }) => mb, 1500]] },
];
type Goal = readonly [name: string, unit: string, of: (result: ScaleResult) => number, atMost: number];

/** Returns the figures that have targets. A pod is to cost the same with a thousand members as with one, within a fifth. */
export function goalsOf(results: readonly ScaleResult[]): Figure[] {
  return results.flatMap((result) => {
    const { members, proxies, podCpuMs } = result;
    const fleet = `${members} members, ${proxies} proxies: `;
    const goals = FLEETS.filter(({ holds }) => holds(result)).flatMap((one) => one.goals);
    const withOne = results.find((other) => other.members === 1 && other.proxies === proxies);
    const ofPod = { name: `${fleet}a pod: processor / with one member`, unit: "", target: { atMost: 1.2 } };
    return [
      ...goals.map(([name, unit, of, atMost]) => ({ name: fleet + name, value: of(result), unit, target: { atMost } })),
      ...(members === 1000 && withOne !== undefined ? [{ ...ofPod, value: podCpuMs / withOne.podCpuMs }] : []),
    ];
  });
}

/** Returns how many files a process may have open. Node.js raises the soft limit to the hard one when it starts. */
function mostFiles(): number {
  const [, limit = ""] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  return limit === "" ? Number.POSITIVE_INFINITY : Number(limit);
}

/** Runs a controller that makes the nodes, their Leases and what else an earlier one leaves behind, and ends it. */
async function precede(fleet: Fleet, program: Program): Promise<void> {
  const { host, members } = fleet;
  let wroteAt = performance.now();
  host.onChange = (_method, { collection }) => {
    if (collection !== LEASES) wroteAt = performance.now();
  };
  await withController(fleet, program, PATIENCE_MS, () =>
    until(() => host.count("nodes") === members.length && performance.now() > wroteAt + QUIET_MS),
  );
  host.onChange = undefined;
  // The first controller was killed, and the next one would wait for the end of its Lease.
  host.erase(LEASES, SYSTEM_NAMESPACE, CONTROLLER_LEASE);
}

async function measure(fleet: Fleet, { members, proxies }: Size, program: Program): Promise<ScaleResult> {
  const all = [fleet.host, ...fleet.members];
  const total = (of: (cluster: Fleet["host"]) => number): number => all.reduce((sum, one) => sum + of(one), 0);
  await precede(fleet, program);
  fleet.host.put("pods", fleet.pod("first"));
  return withController(fleet, program, PATIENCE_MS, async (controller) => {
    const { pid, startedAt, firstBound } = controller;
    await firstBound;
    const firstPlacementMs = performance.now() - startedAt;
    const startCpuMs = cpuMs(pid);
    const ofMany = (REST_OF_MANY_MS * Math.min(members, MANY)) / MANY;
    await sleep(REST_MS + ofMany + members * REST_PER_MEMBER_MS);
    for (let [turn, calm] = [0, 0]; turn < CALM.most && calm < CALM.inARow; turn += 1) {
      const before = total(({ requests }) => requests);
      await sleep(CALM.everyMs);
      const perSecond = ((total(({ requests }) => requests) - before) * 1000) / CALM.everyMs;
      calm = perSecond <= members * CALM.perMember + CALM.others ? calm + 1 : 0;
    }
    const [resident, files] = [rssMb(pid), openFiles(pid)];
    const before = { cpu: cpuMs(pid), requests: total(({ requests }) => requests) };
    await sleep(IDLE_MS);
    const idleCpuPercent = (100 * (cpuMs(pid) - before.cpu)) / IDLE_MS;
    const idleRequests = (total(({ requests }) => requests) - before.requests) / (IDLE_MS / 1000);
    const churn = {
      cpu: cpuMs(pid),
      requests: total(({ requests }) => requests),
      bytes: total(({ watchBytes }) => watchBytes),
    };
    const begun = performance.now();
    await churnPods(fleet, controller, { prefix: "churn", count: CHURN_PODS, perSecond: CHURN_PER_SECOND });
    // Subtracts the idle load.
    const seconds = (performance.now() - begun) / 1000;
    const cpu = cpuMs(pid) - churn.cpu - (idleCpuPercent / 100) * seconds * 1000;
    return {
      members,
      proxies,
      firstPlacementMs,
      startCpuMs,
      rssMb: resident,
      idleCpuPercent,
      idleRequests,
      podCpuMs: cpu / CHURN_PODS,
      podWatchKb: (total(({ watchBytes }) => watchBytes) - churn.bytes) / 1000 / CHURN_PODS,
      podRequests: (total(({ requests }) => requests) - churn.requests - idleRequests * seconds) / CHURN_PODS,
      openFiles: files,
    };
  });
}
