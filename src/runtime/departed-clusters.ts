import type { Clock, Timer } from "./clock.ts";

export interface DepartedClustersOptions {
  /** Reports whether there is a Cluster of the name. */
  readonly exists: (name: string) => boolean;
  readonly metrics: { forgetCluster(name: string): Promise<void> };
  readonly clock: Pick<Clock, "after">;
}

// The last requests to the member have ended by then, and count no more.
const FORGET_AFTER_MS = 2 * 60_000;

/** Drops the series of Clusters that left, so that metrics do not grow with each name that was ever joined. */
export class DepartedClusters {
  readonly #options: DepartedClustersOptions;
  readonly #timers = new Map<string, Timer>();

  constructor(options: DepartedClustersOptions) {
    this.#options = options;
  }

  /** To be called whenever a Cluster has changed. */
  noteChange(name: string): void {
    const { exists, metrics, clock } = this.#options;
    this.#timers.get(name)?.cancel();
    this.#timers.delete(name);
    if (exists(name)) return;
    const timer = clock.after(FORGET_AFTER_MS, () => {
      this.#timers.delete(name);
      void metrics.forgetCluster(name);
    });
    this.#timers.set(name, timer);
  }

  stop(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}
