import type { Member } from "./member.ts";

/** A watch of one member, such as a reflector. */
export interface MemberWatch {
  start(): void;
  /** Ends its backoff, because the member answers again. */
  retry(): void;
  /** Resolves when it delivers no more events. */
  stop(): Promise<void>;
}

/**
 * A watch for each of some members. A watch starts when its member is followed, is retried by the member when that answers
 * again, and ends when its member is no longer followed.
 */
export class MemberWatches<Watch extends MemberWatch> {
  readonly #open: (member: Member) => Watch;
  readonly #watches = new Map<Member, Watch>();
  #stopped = false;

  /** Takes a function that creates, but does not start, a member's watch. */
  constructor(open: (member: Member) => Watch) {
    this.#open = open;
  }

  /** Follows exactly these members. */
  follow(members: readonly Member[]): void {
    this.keep(members);
    for (const member of members) this.add(member);
  }

  /** Follows this member too, unless it was disconnected. */
  add(member: Member): void {
    if (this.#stopped || member.stopped || this.#watches.has(member)) return;
    const watch = this.#open(member);
    this.#watches.set(member, watch);
    member.watches.add(watch);
    watch.start();
  }

  /** Ends the watches of all other members. Returns the ended watches, whose stores stay readable. */
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

  /** Returns the member's watch; undefined when it is not followed. */
  of(member: Member): Watch | undefined {
    return this.#watches.get(member);
  }

  /** Iterates over the followed members and their watches. */
  [Symbol.iterator](): Iterator<readonly [Member, Watch]> {
    return this.#watches.entries();
  }

  /** Ends all watches and starts no more. Their stores stay readable. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#watches].map(([member, watch]) => this.#end(member, watch)));
  }

  #end(member: Member, watch: Watch): Promise<void> {
    member.watches.delete(watch);
    return watch.stop();
  }
}
