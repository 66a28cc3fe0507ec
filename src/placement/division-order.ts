import { type DivisionShare, sequence } from "./division.ts";

/** The order in which clusters get a workload's replicas, computed as far as asked. */
export class DivisionOrder {
  readonly #sequence: Iterator<string, void>;
  readonly #positions = new Map<string, number[]>();
  #length = 0;
  #ended = false;

  constructor(shares: readonly DivisionShare[]) {
    this.#sequence = sequence(shares);
  }

  /** `nth` counts from 1. Undefined if not among the first `within`. */
  position(cluster: string, nth: number, within: number): number | undefined {
    this.#extend(within);
    const position = this.#positions.get(cluster)?.[nth - 1];
    return position !== undefined && position <= within ? position : undefined;
  }

  share(cluster: string, total: number): number {
    this.#extend(total);
    const positions = this.#positions.get(cluster) ?? [];
    let from = 0;
    let to = positions.length;
    while (from < to) {
      const middle = Math.floor((from + to) / 2);
      if ((positions[middle] ?? 0) <= total) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #extend(length: number): void {
    while (!this.#ended && this.#length < length) {
      const next = this.#sequence.next();
      if (next.done === true) {
        this.#ended = true;
        return;
      }
      this.#length += 1;
      const positions = this.#positions.get(next.value);
      if (positions === undefined) this.#positions.set(next.value, [this.#length]);
      else positions.push(this.#length);
    }
  }
}
