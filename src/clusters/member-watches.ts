import type { Member } from "./member.ts";

/** What follows something of one member by a watch: a reflector, say. */
export interface MemberWatch {
  start(): void;
  /** Ends a wait between attempts: the member is known to answer again. */
  retry(): void;
  /** Resolves when nothing is told any more. */
  stop(): Promise<void>;
}

/**
 * One watch of a kind for each of some members. It begins when the member is followed, is tried again at once when the member answers
 * again (which the member sees to), and ends when the member is not followed any more.
 */
export class MemberWatches<Watch extends MemberWatch> {
  readonly #open: (member: Member) => Watch;
  readonly #watches = new Map<Member, Watch>();
  #stopped = false;

  /** `open` makes the watch of a member, and leaves it to be started. */
  constructor(open: (member: Member) => Watch) {
    this.#open = open;
  }

  /** Watches these members and no others. */
  follow(members: readonly Member[]): void {
    this.keep(members);
    for (const member of members) this.add(member);
  }

  /** Watches this member, too, unless it has left meanwhile. */
  add(member: Member): void {
    if (this.#stopped || member.stopped || this.#watches.has(member)) return;
    const watch = this.#open(member);
    this.#watches.set(member, watch);
    member.watches.add(watch);
    watch.start();
  }

  /** Ends the watches of all members but these; returns them, with what they have shown. */
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

  /** The member's watch; undefined when it is not followed. */
  of(member: Member): Watch | undefined {
    return this.#watches.get(member);
  }

  /** Each member that is followed, with its watch. */
  [Symbol.iterator](): Iterator<readonly [Member, Watch]> {
    return this.#watches.entries();
  }

  /** Ends all watches, and begins none any more. What they have shown can still be read. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#watches].map(([member, watch]) => this.#end(member, watch)));
  }

  #end(member: Member, watch: Watch): Promise<void> {
    member.watches.delete(watch);
    return watch.stop();
  }
}
