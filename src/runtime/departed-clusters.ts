import type { Clock } from "./clock.ts";
import { KeyedTimers } from "./keyed-timers.ts";

export interface DepartedClustersOptions {
  readonly exists: (name: string) => boolean;
  readonly metrics: { forgetCluster(name: string): Promise<void> };
  readonly clock: Pick<Clock, "after">;
}

// The last requests to the member have ended by then, and count no more.
const FORGET_AFTER_MS = 2 * 60_000;

/** Drops the series of Clusters that left, so that metrics do not grow with each name that was ever joined. */
export class DepartedClusters {
  readonly #options: DepartedClustersOptions;
  readonly #timers: KeyedTimers<string>;

  constructor(options: DepartedClustersOptions) {
    this.#options = options;
    this.#timers = new KeyedTimers(options.clock);
  }

  /** To be called whenever a Cluster has changed. */
  noteChange(name: string): void {
    const { exists, metrics } = this.#options;
    if (exists(name)) this.#timers.cancel(name);
    else this.#timers.restart(name, FORGET_AFTER_MS, () => void metrics.forgetCluster(name));
  }

  stop(): void {
    this.#timers.stop();
  }
}
