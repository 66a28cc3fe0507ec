import type { Clock, Timer } from "../runtime/clock.ts";
import type { Events } from "../runtime/event-bus.ts";
import type { ControllerEvents } from "./events.ts";

export interface DepartedClustersOptions {
  readonly registry: { cluster(name: string): unknown };
  readonly events: Events<ControllerEvents>;
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
    options.events.on("cluster", (name) => this.#onCluster(name));
  }

  stop(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  #onCluster(name: string): void {
    const { registry, metrics, clock } = this.#options;
    this.#timers.get(name)?.cancel();
    this.#timers.delete(name);
    if (registry.cluster(name) !== undefined) return;
    const timer = clock.after(FORGET_AFTER_MS, () => {
      this.#timers.delete(name);
      void metrics.forgetCluster(name);
    });
    this.#timers.set(name, timer);
  }
}
