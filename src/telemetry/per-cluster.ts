import { Counter, Gauge, type Registry } from "prom-client";

/** Registers a metric that is read at each scrape. Undefined: the cluster has no sample. */
type Register<State> = (name: string, help: string, read: (state: State) => number | undefined) => void;

/** Returns how to register metrics with one series for each cluster that is there at a scrape. */
export function metricsPerCluster<State extends { readonly name: string }>(
  registry: Registry,
  states: () => Iterable<State>,
): { readonly gauge: Register<State>; readonly counter: Register<State> } {
  const settings = (name: string, help: string, read: Parameters<Register<State>>[2]) => ({
    name,
    help,
    labelNames: ["cluster"],
    registers: [registry],
    collect(this: Pick<Gauge, "reset" | "inc">): void {
      this.reset();
      for (const state of states()) {
        const value = read(state);
        if (value !== undefined) this.inc({ cluster: state.name }, value);
      }
    },
  });
  return {
    gauge: (...metric) => void new Gauge(settings(...metric)),
    counter: (...metric) => void new Counter(settings(...metric)),
  };
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
