import type { Failure } from "./failure.ts";

/** Tells on standard error what a result of many clusters lacks, each thing once. */
export class Gaps {
  readonly #tell: (line: string) => void;
  readonly #told = new Set<string>();
  readonly #lacking = new Set<string>();

  constructor(tell: (line: string) => void) {
    this.#tell = tell;
  }

  /** The clusters and pods of which something is missing. */
  get lacking(): readonly string[] {
    return [...this.#lacking];
  }

  add(subject: string, problem: string, remedy?: string): void {
    this.#lacking.add(subject);
    this.note(`${subject}: ${problem}${remedy === undefined ? "" : `\n  ${remedy}`}`);
  }

  /** Tells of a cluster that could not be opened. The failure's message names it. */
  addFailure(cluster: string, { message, remedy }: Failure): void {
    this.#lacking.add(cluster);
    this.note(remedy === undefined ? message : `${message}\n  ${remedy}`);
  }

  note(line: string): void {
    if (this.#told.has(line)) return;
    this.#told.add(line);
    this.#tell(line);
  }
}
