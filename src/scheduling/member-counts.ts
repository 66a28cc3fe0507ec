/** Counts pods by member. A pod, by uid, counts in one member at a time. */
export class MemberCounts {
  readonly #members = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  /** The number of counted pods. */
  get size(): number {
    return this.#members.size;
  }

  /** Members without a pod are left out. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  memberOf(uid: string): string | undefined {
    return this.#members.get(uid);
  }

  /** Counts the pod in the member, and no more in another; undefined: in none. */
  move(uid: string, member: string | undefined): void {
    const before = this.#members.get(uid);
    if (before === member) return;
    if (before !== undefined) this.#add(before, -1);
    if (member === undefined) this.#members.delete(uid);
    else {
      this.#members.set(uid, member);
      this.#add(member, 1);
    }
  }

  /** Returns the counts without this pod. */
  without(uid: string): Map<string, number> {
    const counts = new Map(this.#counts);
    const own = this.#members.get(uid);
    if (own !== undefined) counts.set(own, (counts.get(own) ?? 0) - 1);
    return counts;
  }

  #add(member: string, by: number): void {
    const count = (this.#counts.get(member) ?? 0) + by;
    if (count === 0) this.#counts.delete(member);
    else this.#counts.set(member, count);
  }
}
