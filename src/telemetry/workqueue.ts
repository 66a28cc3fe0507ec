import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export interface QueueMetrics {
  added(): void;
  taken(waitedSeconds: number): void;
  retried(): void;
  worked(outcome: string, seconds: number): void;
  /** Stops reading the queue's load. */
  ended(): void;
}

export interface QueueLoad {
  readonly depth: number;
  /** Duration of each running reconcile so far. */
  readonly runningSeconds: readonly number[];
}

// Seconds from a cached read, over a request's deadline, to a stuck queue.
const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];
// controller-runtime's dashboards use either label for the queue.
const LABELS = ["name", "controller"] as const;

/** Work queue metrics under the names that client-go and controller-runtime use. */
export class WorkqueueMetrics {
  /** Each DelegatedType has queues of its own under the names of all. */
  readonly #loads = new Map<string, Set<() => QueueLoad>>();
  readonly #adds: Counter<"name" | "controller">;
  readonly #waits: Histogram<"name" | "controller">;
  readonly #works: Histogram<"name" | "controller">;
  readonly #retries: Counter<"name" | "controller">;
  readonly #reconciles: Histogram<"controller" | "outcome">;

  constructor(registry: Registry) {
    const loads = this.#loads;
    const common = { labelNames: LABELS, registers: [registry] };
    const gauge = (name: string, help: string, read: (load: QueueLoad) => number): void => {
      new Gauge({
        ...common,
        name,
        help,
        collect(): void {
          for (const [queue, each] of loads) this.set({ name: queue, controller: queue }, read(together(each)));
        },
      });
    };
    gauge("workqueue_depth", "Keys that wait for their turn", ({ depth }) => depth);
    gauge("workqueue_unfinished_work_seconds", "Sum of the ages of reconciles under way", ({ runningSeconds }) =>
      runningSeconds.reduce((sum, seconds) => sum + seconds, 0),
    );
    gauge("workqueue_longest_running_processor_seconds", "Age of the oldest reconcile under way", (load) =>
      load.runningSeconds.reduce((longest, seconds) => Math.max(longest, seconds), 0),
    );
    this.#adds = new Counter({ ...common, name: "workqueue_adds_total", help: "Keys that were put in the queue" });
    this.#waits = new Histogram({
      ...common,
      name: "workqueue_queue_duration_seconds",
      help: "How long keys waited for their turn",
      buckets: BUCKETS,
    });
    this.#works = new Histogram({
      ...common,
      name: "workqueue_work_duration_seconds",
      help: "How long reconciles took",
      buckets: BUCKETS,
    });
    this.#retries = new Counter({
      ...common,
      name: "workqueue_retries_total",
      help: "Keys that were put back because an action failed",
    });
    this.#reconciles = new Histogram({
      name: "legation_reconcile_duration_seconds",
      help: "Reconciles by controller and outcome",
      labelNames: ["controller", "outcome"],
      buckets: BUCKETS,
      registers: [registry],
    });
  }

  /** Returns the metrics of one controller's queue. Calls `load` at each scrape, and adds up queues of one name. */
  of(controller: string, load: () => QueueLoad): QueueMetrics {
    const loads = this.#loads.get(controller) ?? new Set();
    this.#loads.set(controller, loads.add(load));
    const labels = { name: controller, controller };
    const adds = this.#adds.labels(labels);
    const waits = this.#waits.labels(labels);
    const works = this.#works.labels(labels);
    const retries = this.#retries.labels(labels);
    // `rate()` needs a sample before the first increment.
    retries.inc(0);
    // Labels are looked up once per outcome: reconciles are many.
    const reconciles = new Map<string, { observe(seconds: number): void }>();
    return {
      added: () => adds.inc(),
      taken: (seconds) => waits.observe(seconds),
      retried: () => retries.inc(),
      worked: (outcome, seconds) => {
        works.observe(seconds);
        const ofOutcome = reconciles.get(outcome) ?? this.#reconciles.labels({ controller, outcome });
        reconciles.set(outcome, ofOutcome);
        ofOutcome.observe(seconds);
      },
      ended: () => void loads.delete(load),
    };
  }
}

function together(loads: Iterable<() => QueueLoad>): QueueLoad {
  const each = [...loads].map((load) => load());
  return {
    depth: each.reduce((sum, { depth }) => sum + depth, 0),
    runningSeconds: each.flatMap(({ runningSeconds }) => runningSeconds),
  };
}
