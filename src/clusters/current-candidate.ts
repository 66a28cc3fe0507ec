import type { Candidate } from "../placement/candidate.ts";

/** The candidate of one member: another object whenever something of it changes, so that nobody has to look into it for that. */
export class CurrentCandidate {
  readonly #make: () => Candidate;
  readonly #onChange: () => void;
  #candidate: Candidate | undefined;
  #areAmountsNew = false;

  constructor(make: () => Candidate, onChange: () => void) {
    this.#make = make;
    this.#onChange = onChange;
  }

  get(): Candidate {
    if (this.#candidate === undefined) this.#candidate = this.#make();
    else if (this.#areAmountsNew) this.#candidate = { ...this.#candidate };
    this.#areAmountsNew = false;
    return this.#candidate;
  }

  /** Notes that the candidate's amounts were updated in place. */
  noteAmounts(): void {
    this.#areAmountsNew = true;
    this.#onChange();
  }

  /** Has the candidate made anew. */
  forget(): void {
    this.#candidate = undefined;
    this.#onChange();
  }
}
