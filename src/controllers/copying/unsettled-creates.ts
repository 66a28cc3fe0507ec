import { setUntilEnded } from "../../api/latest-entries.ts";
import { CREATE_ENDS_MS } from "../../kube/request-ends.ts";
import type { Clock } from "../../runtime/clock.ts";
import { leavesUncertain } from "../api-refusal.ts";

/** Creates without a plain answer, which may still be done for a while. */
export class UnsettledCreates<Key extends string> {
  readonly #clock: Pick<Clock, "now">;
  /** When the creates of each object have surely ended, the oldest first; epoch ms. */
  readonly #endAt = new Map<Key, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Records a failed request for an object. The answer to another create does not end this one. */
  note(key: Key, error: unknown): void {
    if (!leavesUncertain(error) || error.verb !== "create" || error.resource === "namespaces") return;
    const now = this.#clock.now();
    setUntilEnded(this.#endAt, key, now + CREATE_ENDS_MS, (endAt) => endAt <= now);
  }

  /** Returns when the creates of an object have surely ended; epoch ms. Undefined if they have. */
  endAt(key: Key): number | undefined {
    const endAt = this.#endAt.get(key);
    return endAt !== undefined && this.#clock.now() < endAt ? endAt : undefined;
  }
}
