import type { Pod } from "../api/kubernetes.ts";
import { allStatuses } from "../pods/pod-state.ts";
import type { RunningPods } from "../telemetry/kubelet.ts";

export interface Usage {
  /** Time of the measurement; epoch ms. */
  readonly at: number;
  /** Average cores in the window before. */
  readonly cores: number;
  /** Core seconds since counting began. Never 0, which readers take for "not measured". */
  readonly coreSeconds: number;
  readonly memoryBytes: number;
}

export interface ContainerUsage {
  readonly name: string;
  /** Epoch ms. */
  readonly startedAt: number;
  readonly usage: Usage;
}

export interface NodeUsage {
  readonly failed: boolean;
  /** Sum over the member's nodes; undefined when unknown. */
  readonly node?: Usage;
  readonly pods: readonly { readonly pod: Pod; readonly containers: readonly ContainerUsage[] }[];
}

/** One measurement from a member's metrics API, which reports rates only. */
export type Measured = Omit<Usage, "coreSeconds">;

type Count = Pick<Usage, "at" | "coreSeconds">;

const LEAST_CORE_SECONDS = 1e-6;
// metrics-server assumes a counter of 0 at the start of a container younger than its scrape interval, by default this long.
const YOUNG_MS = 60_000;

/** Converts rates to counters, as readers of a kubelet expect. A round that does not ask for one drops it. */
export class CpuCounters {
  #counts = new Map<string, Count>();
  #kept = new Map<string, Count>();

  begin(): void {
    this.#counts = this.#kept;
    this.#kept = new Map();
  }

  /** Keeps the counter as it is without a measurement. */
  count(key: string, measured: Measured | undefined, startedAt?: number): Usage | undefined {
    const before = this.#counts.get(key);
    if (measured === undefined) {
      if (before !== undefined) this.#kept.set(key, before);
      return undefined;
    }
    const now = next(before, measured, startedAt ?? measured.at);
    this.#kept.set(key, now);
    return { ...measured, ...now };
  }
}

/** A young container's counter starts with rate times age, any other near zero: readers take a drop for a restart. */
function next(before: Count | undefined, { at, cores }: Measured, startedAt: number): Count {
  const since = before?.at ?? (at - startedAt <= YOUNG_MS ? startedAt : at);
  const soFar = before?.coreSeconds ?? LEAST_CORE_SECONDS;
  return { at: Math.max(at, since), coreSeconds: soFar + (Math.max(0, at - since) / 1000) * cores };
}

/** Returns epoch ms by name. Ignores containers that the proxy does not have: the member's status is not trusted. */
export function runningSince({ spec }: Pod, delegate: Pod): Map<string, number> {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec ?? {};
  const own = new Set([...containers, ...initContainers, ...ephemeralContainers].map(({ name }) => name));
  const started = new Map<string, number>();
  for (const { name, state } of allStatuses(delegate)) {
    const at = Date.parse(state?.running?.startedAt ?? "");
    if (own.has(name) && !Number.isNaN(at)) started.set(name, at);
  }
  return started;
}

/** Counts the pods that have a running container, and the containers by state. */
export function podsOfNode(pods: readonly Pod[]): RunningPods {
  let running = 0;
  const containers = { running: 0, exited: 0 };
  for (const pod of pods) {
    const states = allStatuses(pod).map(({ state }) => state);
    const runningHere = states.filter((state) => state?.running !== undefined).length;
    if (runningHere > 0) running += 1;
    containers.running += runningHere;
    containers.exited += states.filter((state) => state?.terminated !== undefined).length;
  }
  return { running, containers };
}

/** Returns undefined when none was measured. */
export function sumOf(containers: readonly ContainerUsage[]): Usage | undefined {
  if (containers.length === 0) return undefined;
  const sum = { at: 0, cores: 0, coreSeconds: 0, memoryBytes: 0 };
  for (const { usage } of containers) {
    sum.at = Math.max(sum.at, usage.at);
    sum.cores += usage.cores;
    sum.coreSeconds += usage.coreSeconds;
    sum.memoryBytes += usage.memoryBytes;
  }
  return sum;
}
