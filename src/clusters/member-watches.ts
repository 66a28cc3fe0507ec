import type { Rest } from "../runtime/reflector.ts";
import type { Member } from "./member.ts";

export interface MemberWatch {
  /** Plural of its resource. */
  readonly plural?: string;
  start(): void;
  retry(): void;
  need?(): void;
  stop(): Promise<void>;
}

// A member's first lists of what nobody needs take a fifth of this time of the process: what is needed comes between.
const SPREAD_PER_MEMBER_MS = 60;

/** A watch for each of some members. The member itself retries its watches when it answers again. */
export class MemberWatches<Watch extends MemberWatch> {
  readonly #open: (member: Member, rest: Rest) => Watch;
  readonly #watches = new Map<Member, Watch>();
  #followed: readonly Member[] | undefined;
  #stopped = false;

  /** Takes a function that creates, but does not start, a member's watch. */
  constructor(open: (member: Member, rest: Rest) => Watch) {
    this.#open = open;
  }

  follow(members: readonly Member[]): void {
    // The registry returns the same list until a member comes or goes.
    if (members === this.#followed) return;
    this.#followed = members;
    const followed = members.filter((member) => this.#watches.has(member)).length;
    // Each of a thousand Clusters that come at a start changes hardly anything.
    if (followed < this.#watches.size) this.keep(members);
    if (followed < members.length) for (const member of members) this.add(member);
  }

  /** Follows this member too, unless it was disconnected. */
  add(member: Member): void {
    if (this.#stopped || member.stopped || this.#watches.has(member)) return;
    const spreadMs = (): number => (this.#watches.size - 1) * SPREAD_PER_MEMBER_MS;
    const watch = this.#open(member, { ...member.rest, spreadMs });
    this.#watches.set(member, watch);
    member.watches.add(watch);
    watch.start();
  }

  /** Returns the ended watches, whose stores stay readable. */
  keep(members: readonly Member[]): Watch[] {
    const kept = new Set(members);
    const ended: Watch[] = [];
    for (const [member, watch] of this.#watches) {
      if (kept.has(member)) continue;
      this.#watches.delete(member);
      ended.push(watch);
      void this.#end(member, watch);
    }
    return ended;
  }

  of(member: Member): Watch | undefined {
    return this.#watches.get(member);
  }

  [Symbol.iterator](): Iterator<readonly [Member, Watch]> {
    return this.#watches.entries();
  }

  /** The stores stay readable. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#watches].map(([member, watch]) => this.#end(member, watch)));
  }

  #end(member: Member, watch: Watch): Promise<void> {
    member.watches.delete(watch);
    return watch.stop();
  }
}
