import type { ObjectKey } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { isOfNamespace } from "../copying/writer.ts";
import { CREATE_ENDS_MS } from "../delegation/model/memory.ts";
import { leavesDoubt } from "../refusal.ts";

/** The host's claim of this uid, and a member. */
interface Given {
  readonly uid: string;
  readonly member: string;
}

interface Known extends Given {
  /** It was seen there, which its watch may have yet to show. */
  readonly isThere: boolean;
}

interface Doubt extends Given {
  /** When the last of them failed; epoch ms. */
  readonly lastAt: number;
}

/**
 * Claims that a member may have made, or be about to, since a request of before left that open. What later requests come to says
 * nothing of it: admission, which fails or refuses them, comes before the name that is taken. What an earlier leader asked of the member to
 * which it gave a claim, nobody knows any more: that is in doubt until the member has shown the claim or denied it.
 */
export class DoubtfulClaims {
  readonly #clock: Pick<Clock, "now">;
  /** When this leader began: every request of an earlier one was sent before. */
  readonly #begunAt: number;
  readonly #doubts = new Map<ObjectKey, Doubt>();
  /** Of which claim of that name, and of which member, every request is known. */
  readonly #known = new Map<ObjectKey, Known>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#begunAt = clock.now();
  }

  /** This leader gives the host's claim of this uid, which no member had, to the member. */
  noteGiven(key: ObjectKey, uid: string, member: string): void {
    this.#known.set(key, { uid, member, isThere: false });
  }

  /** The member failed to make the host's claim of this uid, or to say whether it has one. */
  note(key: ObjectKey, uid: string, member: string, error: unknown): void {
    if (!isKubeError(error) || isOfNamespace(error)) return;
    if (error.verb === "create" && !leavesDoubt(error)) return;
    this.#doubts.set(key, { uid, member, lastAt: this.#clock.now() });
  }

  /** Whether the member may have it, or make it yet; a member that has been seen to have it still may. */
  mayHave(key: ObjectKey, uid: string, member: string): boolean {
    const known = this.#known.get(key);
    return (known?.isThere === true && isOf(known, uid, member)) || this.#lastAt(key, uid, member) !== undefined;
  }

  /** The same, when the member shows none: what was asked of it before is over after a while. */
  hasThoughUnseen(key: ObjectKey, uid: string, member: string): boolean {
    const lastAt = this.#lastAt(key, uid, member);
    return lastAt !== undefined && this.#clock.now() < lastAt + CREATE_ENDS_MS;
  }

  /** The member has the host's claim of this uid, or has not. */
  settle(key: ObjectKey, uid: string, member: string, isThere: boolean): void {
    this.#doubts.delete(key);
    this.#known.set(key, { uid, member, isThere });
  }

  /** Nothing is left of the claim. */
  forget(key: ObjectKey): void {
    this.#doubts.delete(key);
    this.#known.delete(key);
  }

  /** When the last of the requests that left it open failed, at the latest; epoch ms. Undefined: none did. */
  #lastAt(key: ObjectKey, uid: string, member: string): number | undefined {
    const doubt = this.#doubts.get(key);
    if (isOf(doubt, uid, member)) return doubt?.lastAt;
    return isOf(this.#known.get(key), uid, member) ? undefined : this.#begunAt;
  }
}

function isOf(given: Given | undefined, uid: string, member: string): boolean {
  return given?.uid === uid && given.member === member;
}
