/** A figure of a run, and its target. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Undefined: told for its own sake. */
  readonly target?: { readonly atLeast: number } | { readonly atMost: number };
}

/** Reports whether the figure meets its target. Undefined without a target. */
export function meets({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined;
  return "atLeast" in target ? value >= target.atLeast : value <= target.atMost;
}

/** A figure as a line of a table. */
export function lineOf(figure: Figure): string {
  const { name, value, unit, target } = figure;
  const shown = value >= 100 ? value.toFixed(0) : value.toPrecision(3);
  const wanted =
    target === undefined ? "" : "atLeast" in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`;
  const verdict = { true: "met", false: "MISSED", undefined: "" }[String(meets(figure))] ?? "";
  return `${name.padEnd(58)} ${`${shown} ${unit}`.padStart(16)}   ${wanted.padEnd(16)} ${verdict}`.trimEnd();
}

/** The value below which this share of the values lies; NaN when there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
