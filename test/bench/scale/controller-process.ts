import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Fleet, kubeconfigOf } from "./fleet.ts";

/** The program, and its Node.js options. */
export interface Program {
  readonly main: string;
  readonly nodeFlags: readonly string[];
  /** Variables that the program's first line sets. */
  readonly env: Readonly<Record<string, string>>;
}

/** A controller that serves a fleet, in a process of its own. */
export interface ControllerProcess {
  readonly pid: number;
  /** Process ids of all replicas. */
  readonly pids: readonly number[];
  readonly startedAt: number;
  /** Proxies that it has bound so far. */
  readonly bound: () => number;
  /** Resolves with its first binding. */
  readonly firstBound: Promise<void>;
}

// Each figure is that of one leader.
const ALONE = [["--lease-duration=60s"]];

/**
 * Starts a controller on the fleet, or a replica for each list of flags; does the work, and ends them. Rejects when one
 * ends by itself, or when that takes too long.
 */
export async function withController<T>(
  fleet: Fleet,
  { main, nodeFlags, env }: Program,
  patienceMs: number,
  work: (controller: ControllerProcess) => Promise<T>,
  replicas: readonly (readonly string[])[] = ALONE,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "legation-scale-"));
  const kubeconfig = join(directory, "host.yaml");
  writeFileSync(kubeconfig, kubeconfigOf("host", fleet.host.url), { mode: 0o600 });
  let boundCount = 0;
  const first = Promise.withResolvers<void>();
  fleet.host.onWrite = (_method, { subresource }) => {
    if (subresource !== "binding") return;
    boundCount += 1;
    first.resolve();
  };
  const startedAt = performance.now();
  let log = "";
  const children = replicas.map((flags) => {
    const args = [...nodeFlags, main, "controller", "--kubeconfig", kubeconfig, ...flags];
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    child.stdout.on("data", (chunk: Buffer) => {
      log = (log + chunk.toString("utf8")).slice(-5_000);
    });
    return child;
  });
  const ended = Promise.race(children.map((child) => once(child, "exit"))).then(() => {
    throw new Error(`the controller ended by itself:\n${log}`);
  });
  ended.catch(() => {});
  try {
    const pids = children.flatMap(({ pid }) => pid ?? []);
    const [pid] = pids;
    if (pid === undefined || pids.length < replicas.length) throw new Error("the controller did not start");
    const late = sleep(patienceMs, undefined, { ref: false }).then(() => {
      throw new Error(`not done within ${patienceMs / 1000} s; the controller's last lines:\n${log}`);
    });
    const controller = { pid, pids, startedAt, bound: () => boundCount, firstBound: first.promise };
    return await Promise.race([work(controller), ended, late]);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Creates pods at a steady pace, waits until all are bound, and deletes them. */
export async function churnPods(
  { host, pod }: Fleet,
  controller: ControllerProcess,
  { prefix, count, perSecond }: { readonly prefix: string; readonly count: number; readonly perSecond: number },
): Promise<void> {
  const already = { bound: controller.bound(), pods: host.count("pods") };
  for (let index = 0; index < count; index += 1) {
    host.put("pods", pod(`${prefix}-${index}`));
    await sleep(1000 / perSecond);
  }
  await until(() => controller.bound() - already.bound === count);
  // The status follows the binding.
  await sleep(1_000);
  for (let index = 0; index < count; index += 1) {
    host.erase("pods", "load", `${prefix}-${index}`);
    await sleep(1000 / perSecond / 2);
  }
  await until(() => host.count("pods") === already.pods);
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(20);
}
