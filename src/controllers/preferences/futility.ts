// A scheduler found no node for what was moved, or a Secret there is somebody else's: either may be otherwise by then.
const FIRST_MS = 10 * 60_000;
// Each attempt ends a replica that runs.
const LONGEST_MS = 24 * 60 * 60_000;

interface Pause {
  /** Epoch ms. */
  readonly until: number;
  readonly ms: number;
}

/** Towards which members nothing of an owner is moved for a while, since they did not get what was: twice as long each time. */
export class Futility {
  readonly #owners = new Map<string, Map<string, Pause>>();

  /** The member did not get what was moved for it. */
  note(owner: string, member: string, now: number): void {
    const members = this.#owners.get(owner) ?? new Map<string, Pause>();
    this.#owners.set(owner, members);
    const before = members.get(member);
    const ms = before === undefined ? FIRST_MS : Math.min(LONGEST_MS, before.ms * 2);
    members.set(member, { until: now + ms, ms });
  }

  /** A replica that was moved for the member has stayed there. */
  clear(owner: string, member: string): void {
    this.#owners.get(owner)?.delete(member);
  }

  /** The owner is divided no more. */
  forget(owner: string): void {
    this.#owners.delete(owner);
  }

  /** Until when nothing is moved towards each member; epoch ms. */
  of(owner: string): ReadonlyMap<string, number> {
    return new Map([...(this.#owners.get(owner) ?? [])].map(([member, { until }]) => [member, until]));
  }
}
