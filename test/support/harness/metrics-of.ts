/** Reads the metrics that a process of Legation serves on a port of this machine, by series: `name{label="value"}`. */
export async function metricsOf(port: number): Promise<(series: string) => number | undefined> {
  const signal = AbortSignal.timeout(10_000);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { signal })).text();
  const values = new Map(
    text.split("\n").flatMap((line): [string, number][] => {
      const at = line.lastIndexOf(" ");
      return line.startsWith("#") || at < 0 ? [] : [[line.slice(0, at), Number(line.slice(at + 1))]];
    }),
  );
  return (series) => values.get(series);
}
