import { Counter, Gauge, type Registry } from "prom-client";

/** A metric with one series for each cluster that is there at a scrape. Series of clusters that left are dropped. */
export interface PerCluster<State> {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  readonly states: () => Iterable<State>;
  /** Undefined: the cluster has no sample. */
  readonly read: (state: State) => number | undefined;
}

/** Registers a gauge that is read at each scrape. */
export function gaugePerCluster<State extends { readonly name: string }>(options: PerCluster<State>): void {
  const { registry, name, help, states, read } = options;
  new Gauge({
    name,
    help,
    labelNames: ["cluster"],
    registers: [registry],
    collect(): void {
      this.reset();
      for (const state of states()) {
        const value = read(state);
        if (value !== undefined) this.set({ cluster: state.name }, value);
      }
    },
  });
}

/** Registers a counter whose totals are read at each scrape. */
export function counterPerCluster<State extends { readonly name: string }>(options: PerCluster<State>): void {
  const { registry, name, help, states, read } = options;
  new Counter({
    name,
    help,
    labelNames: ["cluster"],
    registers: [registry],
    collect(): void {
      this.reset();
      for (const state of states()) this.inc({ cluster: state.name }, read(state) ?? 0);
    },
  });
}

/** Drops all series of a cluster that left. */
export async function dropCluster(registry: Registry, cluster: string): Promise<void> {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    const { values = [] } = (await metric?.get()) ?? {};
    for (const { labels } of values) {
      if (labels.cluster !== cluster) continue;
      // A histogram has a value for each bucket.
      const { le: _, ...series } = labels;
      metric?.remove(series);
    }
  }
}
