import type { ContainerStatus, Pod } from "../api/kubernetes.ts";

/** What something uses, as a kubelet tells it. */
export interface Usage {
  /** When it was measured; epoch ms. */
  readonly at: number;
  /** Cores, in the while before. */
  readonly cores: number;
  /** Cores times seconds, since the counting began; never 0, which readers take for not measured. */
  readonly coreSeconds: number;
  readonly memoryBytes: number;
}

/** What one container of a proxy uses. */
export interface ContainerUsage {
  readonly name: string;
  /** Epoch ms. */
  readonly startedAt: number;
  readonly usage: Usage;
}

/** What a virtual node uses, and its proxies. */
export interface NodeUsage {
  /** Something could not be measured. */
  readonly failed: boolean;
  /** All nodes of the member; absent when that is not known. */
  readonly node?: Usage;
  readonly pods: readonly { readonly pod: Pod; readonly containers: readonly ContainerUsage[] }[];
}

/** One measurement of a member's metrics API, which tells rates only. */
export type Measured = Omit<Usage, "coreSeconds">;

type Count = Pick<Usage, "at" | "coreSeconds">;

const LEAST_CORE_SECONDS = 1e-6;
// metrics-server reckons the rate of a container that is younger than its round as if the counter had been 0 at the start. By
// default its round is as long as this.
const YOUNG_MS = 60_000;

/**
 * Makes counters of rates: readers of a kubelet reckon rates from counters themselves. A counter lasts as long as it is
 * asked for in each round.
 */
export class CpuCounters {
  #counts = new Map<string, Count>();
  #kept = new Map<string, Count>();

  /** Begins a round; what was not asked for in the one before is forgotten. */
  begin(): void {
    this.#counts = this.#kept;
    this.#kept = new Map();
  }

  /** Counts what was measured, or keeps the counter of what was not measured this time. */
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

/**
 * The counter of a young container begins with what it would have used had it always been as much: its rate is then right.
 * Any other begins with next to nothing, below where another leader's has come to: readers take a fall for a counter that began
 * anew, and what is above the last figure for usage.
 */
function next(before: Count | undefined, { at, cores }: Measured, startedAt: number): Count {
  const since = before?.at ?? (at - startedAt <= YOUNG_MS ? startedAt : at);
  const soFar = before?.coreSeconds ?? LEAST_CORE_SECONDS;
  return { at: Math.max(at, since), coreSeconds: soFar + (Math.max(0, at - since) / 1000) * cores };
}

/**
 * When each container of a proxy's delegate that runs was started; epoch ms by name. The delegate's status is the member's word:
 * a container that the proxy does not have, whatever its name, is none of the host's.
 */
export function runningSince({ spec }: Pod, { status }: Pod): Map<string, number> {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec ?? {};
  const own = new Set([...containers, ...initContainers, ...ephemeralContainers].map(({ name }) => name));
  const all: readonly ContainerStatus[] = [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  const started = new Map<string, number>();
  for (const { name, state } of all) {
    const at = Date.parse(state?.running?.startedAt ?? "");
    if (own.has(name) && !Number.isNaN(at)) started.set(name, at);
  }
  return started;
}

/** The sum over a pod's containers; undefined when none was measured. */
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
