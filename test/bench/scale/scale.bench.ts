import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuMs, rssMb } from "../process-usage.ts";
import { type Fleet, fleetOf, kubeconfigOf } from "./fleet.ts";

/** How the controller does with one number of members and proxies. */
export interface ScaleResult {
  readonly members: number;
  readonly proxies: number;
  /** From the start of the process to the binding of a pod that was waiting. */
  readonly firstPlacementMs: number;
  /** Processor time until then. */
  readonly startCpuMs: number;
  /** Resident, after it has come to rest. */
  readonly rssMb: number;
  /** Share of a core while nothing happens. */
  readonly idleCpuPercent: number;
  /** Requests a second while nothing happens, to all API servers together. */
  readonly idleRequests: number;
  /** For each pod that is created, runs and is deleted. */
  readonly podCpuMs: number;
  readonly podWatchKb: number;
  readonly podRequests: number;
}

export interface ScaleOptions {
  readonly sizes: readonly { readonly members: number; readonly proxies: number }[];
  /** The program, and options of Node for it. */
  readonly main: string;
  readonly nodeFlags: readonly string[];
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

async function measure(
  fleet: Fleet,
  { members, proxies }: { readonly members: number; readonly proxies: number },
  { main, nodeFlags }: ScaleOptions,
): Promise<ScaleResult> {
  const directory = mkdtempSync(join(tmpdir(), "legation-scale-"));
  const kubeconfig = join(directory, "host.yaml");
  writeFileSync(kubeconfig, kubeconfigOf("host", fleet.host.url), { mode: 0o600 });
  const all = [fleet.host, ...fleet.members];
  const total = (of: (cluster: Fleet["host"]) => number): number => all.reduce((sum, one) => sum + of(one), 0);
  let boundCount = 0;
  const bound = Promise.withResolvers<void>();
  fleet.host.onWrite = (_method, { subresource }) => {
    if (subresource !== "binding") return;
    boundCount += 1;
    bound.resolve();
  };
  fleet.host.put("pods", fleet.pod("first"));
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    [...nodeFlags, main, "controller", "--kubeconfig", kubeconfig, "--lease-duration=60s"],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let log = "";
  child.stdout.on("data", (chunk: Buffer) => {
    log = (log + chunk.toString("utf8")).slice(-5_000);
  });
  const ended = once(child, "exit").then(() => {
    throw new Error(`the controller ended by itself:\n${log}`);
  });
  ended.catch(() => {});
  const { pid } = child;
  if (pid === undefined) throw new Error("the controller did not start");
  const run = async (): Promise<ScaleResult> => {
    await bound.promise;
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
    await churnPods(fleet, () => boundCount);
    // What goes on anyway is taken off.
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
  };
  try {
    const late = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => {
      throw new Error(`not done within ${PATIENCE_MS / 1000} s; the controller's last lines:\n${log}`);
    });
    return await Promise.race([run(), ended, late]);
  } finally {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Creates pods at a steady pace, and deletes them when all run. */
async function churnPods({ host, pod }: Fleet, bound: () => number): Promise<void> {
  const already = { bound: bound(), pods: host.count("pods") };
  for (let index = 0; index < CHURN_PODS; index += 1) {
    host.put("pods", pod(`churn-${index}`));
    await sleep(1000 / CHURN_PER_SECOND);
  }
  await until(() => bound() - already.bound === CHURN_PODS);
  // The status follows the binding.
  await sleep(1_000);
  for (let index = 0; index < CHURN_PODS; index += 1) {
    host.erase("pods", "load", `churn-${index}`);
    await sleep(1000 / CHURN_PER_SECOND / 2);
  }
  await until(() => host.count("pods") === already.pods);
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(20);
}
