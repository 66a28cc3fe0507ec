/** The limits of requests in flight: watches and streams are among them, which each hold two connections. */
export interface InFlightLimits {
  readonly ofUser: number;
  readonly ofAll: number;
}

// A user interface watches some dozens of types, a controller some dozens in each member.
const IN_FLIGHT_LIMITS: InFlightLimits = { ofUser: 400, ofAll: 2_000 };

/** Counts requests in flight, so that one user takes neither all memory nor all connections. */
export class InFlight {
  readonly #limits: InFlightLimits;
  readonly #users = new Map<string, number>();
  #all = 0;

  constructor(limits: InFlightLimits = IN_FLIGHT_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#all;
  }

  /** Returns how to tell the end of a request. Undefined when there are too many. */
  begin(user: string): (() => void) | undefined {
    const ofUser = this.#users.get(user) ?? 0;
    if (ofUser >= this.#limits.ofUser || this.#all >= this.#limits.ofAll) return undefined;
    this.#users.set(user, ofUser + 1);
    this.#all += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#all -= 1;
      const left = (this.#users.get(user) ?? 1) - 1;
      if (left === 0) this.#users.delete(user);
      else this.#users.set(user, left);
    };
  }
}
