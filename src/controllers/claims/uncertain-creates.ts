import type { ObjectKey } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import { CREATE_ENDS_MS } from "../../kube/request-ends.ts";
import type { Clock } from "../../runtime/clock.ts";
import { leavesUncertain } from "../api-refusal.ts";
import { isOfNamespace } from "../copying/writer.ts";

interface Given {
  readonly uid: string;
  readonly member: string;
}

interface Known extends Given {
  /** A read found the claim; the watch may not show it yet. */
  readonly isThere: boolean;
}

interface FailedRequest extends Given {
  /** Epoch ms. */
  readonly lastAt: number;
}

/**
 * Creates of claims with an unknown result: a member may have the claim. Later failures prove nothing, as admission
 * comes first. Unlike `UnsettledCreates` they end by a read, not by time: no other member may get a claim that holds data.
 */
export class UncertainCreates {
  readonly #clock: Pick<Clock, "now">;
  /** When this leader began; requests of earlier leaders were sent before. */
  readonly #begunAt: number;
  readonly #failed = new Map<ObjectKey, FailedRequest>();
  readonly #known = new Map<ObjectKey, Known>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#begunAt = clock.now();
  }

  noteGiven(key: ObjectKey, uid: string, member: string): void {
    this.#known.set(key, { uid, member, isThere: false });
  }

  note(key: ObjectKey, uid: string, member: string, error: unknown): void {
    if (!isKubeError(error) || isOfNamespace(error)) return;
    if (error.verb === "create" && !leavesUncertain(error)) return;
    this.#failed.set(key, { uid, member, lastAt: this.#clock.now() });
  }

  mayHave(key: ObjectKey, uid: string, member: string): boolean {
    const known = this.#known.get(key);
    return (known?.isThere === true && isOf(known, uid, member)) || this.#lastAt(key, uid, member) !== undefined;
  }

  /** Reports the same for a member that shows none: earlier requests have ended after a while. */
  mayHaveUnseen(key: ObjectKey, uid: string, member: string): boolean {
    const lastAt = this.#lastAt(key, uid, member);
    return lastAt !== undefined && this.#clock.now() < lastAt + CREATE_ENDS_MS;
  }

  resolve(key: ObjectKey, uid: string, member: string, isThere: boolean): void {
    this.#failed.delete(key);
    this.#known.set(key, { uid, member, isThere });
  }

  forget(key: ObjectKey): void {
    this.#failed.delete(key);
    this.#known.delete(key);
  }

  /** Returns when the last uncertain request failed, at the latest; epoch ms. Undefined if there is none. */
  #lastAt(key: ObjectKey, uid: string, member: string): number | undefined {
    const failed = this.#failed.get(key);
    if (isOf(failed, uid, member)) return failed?.lastAt;
    return isOf(this.#known.get(key), uid, member) ? undefined : this.#begunAt;
  }
}

function isOf(given: Given | undefined, uid: string, member: string): boolean {
  return given?.uid === uid && given.member === member;
}
