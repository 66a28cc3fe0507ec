/** The plain cluster, or the one with Legation. */
export type Side = "plain" | "legation";

/** A call of kubectl. */
export interface Call {
  /** Arguments as a shell's user writes them, e.g. `get pod web`; the namespace is added. Words in `'…'` stay together. */
  readonly kubectl: string;
  /** Standard input: a text, or objects that are written as JSON. */
  readonly input?: string | readonly object[];
  /** Called again until its output matches; only that last call is in the transcript. */
  readonly until?: RegExp | Readonly<Record<Side, RegExp>>;
  /** Lines of the output in any order are the same. */
  readonly unordered?: boolean;
}

/** A sequence of kubectl calls in one namespace. */
export interface Scenario {
  readonly name: string;
  readonly calls: readonly Call[];
}

/** A difference between a plain cluster and Legation that stays, and why; each side's lines that it explains. */
export interface KnownDifference extends Partial<Readonly<Record<Side, RegExp>>> {
  /** Name in docs/conformance.md. */
  readonly id: string;
}
