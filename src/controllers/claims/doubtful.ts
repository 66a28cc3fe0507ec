import type { ObjectKey } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { isOfNamespace } from "../copying/failures.ts";
import { CREATE_ENDS_MS } from "../delegation/decisions/model.ts";
import { leavesDoubt } from "../refusal.ts";

interface Doubt {
  readonly uid: string;
  readonly member: string;
  /** When the last of them failed; epoch ms. */
  readonly lastAt: number;
}

/**
 * Claims that a member may have made, or be about to, since a request of before left that open. What later requests come to says
 * nothing of it: admission, which fails or refuses them, comes before the name that is taken.
 */
export class DoubtfulClaims {
  readonly #clock: Pick<Clock, "now">;
  readonly #doubts = new Map<ObjectKey, Doubt>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** The member failed to make the host's claim of this uid, or to say whether it has one. */
  note(key: ObjectKey, uid: string, member: string, error: unknown): void {
    if (!isKubeError(error) || isOfNamespace(error)) return;
    if (error.verb === "create" && !leavesDoubt(error)) return;
    this.#doubts.set(key, { uid, member, lastAt: this.#clock.now() });
  }

  /** Whether the member may have it, or make it yet. */
  has(key: ObjectKey, uid: string, member: string): boolean {
    const doubt = this.#doubts.get(key);
    return doubt?.uid === uid && doubt.member === member;
  }

  /** The same, when the member shows none: what was asked of it before is over after a while. */
  hasThoughUnseen(key: ObjectKey, uid: string, member: string): boolean {
    const { lastAt = 0 } = this.#doubts.get(key) ?? {};
    return this.has(key, uid, member) && this.#clock.now() < lastAt + CREATE_ENDS_MS;
  }

  /** The member has it, or has not; or nothing is left of the claim. */
  settle(key: ObjectKey): void {
    this.#doubts.delete(key);
  }
}
