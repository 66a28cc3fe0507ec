import { setTimeout as sleep } from "node:timers/promises";
import { cpuMs, rssMb } from "../process-usage.ts";
import { churnPods, type Program, withController } from "./controller-process.ts";
import { type Fleet, fleetOf } from "./fleet.ts";

/** Figures of the controller for one number of members and proxies. */
export interface ScaleResult {
  readonly members: number;
  readonly proxies: number;
  /** Time from the start of the process to the binding of a pod that was waiting. */
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
}

export interface ScaleOptions extends Program {
  readonly sizes: readonly { readonly members: number; readonly proxies: number }[];
  readonly onProgress: (line: string) => void;
}

const REST_MS = 5_000;
const IDLE_MS = 10_000;
const CHURN_PODS = 500;
const CHURN_PER_SECOND = 50;
const PATIENCE_MS = 180_000;

/**
 * Starts the controller on fleets that are not there: its API servers are one process that answers from memory, so the
 * figures are the controller's own. What real API servers need for the same is not in them.
 */
export async function benchScale(options: ScaleOptions): Promise<readonly ScaleResult[]> {
  const results: ScaleResult[] = [];
  for (const size of options.sizes) {
    options.onProgress(`${size.members} members, ${size.proxies} proxies`);
    const fleet = await fleetOf(size.members, size.proxies);
    try {
      results.push(await measure(fleet, size, options));
    } finally {
      await fleet.close();
    }
  }
  return results;
}

function measure(
  fleet: Fleet,
  { members, proxies }: { readonly members: number; readonly proxies: number },
  program: Program,
): Promise<ScaleResult> {
  const all = [fleet.host, ...fleet.members];
  const total = (of: (cluster: Fleet["host"]) => number): number => all.reduce((sum, one) => sum + of(one), 0);
  fleet.host.put("pods", fleet.pod("first"));
  return withController(fleet, program, PATIENCE_MS, async (controller) => {
    const { pid, startedAt, firstBound } = controller;
    await firstBound;
    const firstPlacementMs = performance.now() - startedAt;
    const startCpuMs = cpuMs(pid);
    await sleep(REST_MS);
    const resident = rssMb(pid);
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
    };
  });
}
