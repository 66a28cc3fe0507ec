import type { Member } from "../../clusters/member.ts";
import { isKubeError, type KubeError, mayBeStarting } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { isNamespaceEnding, PASSES_MS } from "../refusal.ts";

/** The member has gone on failing to take a write that nothing is wrong with. */
export interface Failing {
  readonly type: "failing";
  /** How it failed last. */
  readonly error: KubeError;
  /** Its API server's words. */
  readonly detail: string;
  /** How long such a write rests. */
  readonly restMs: number;
}

/**
 * How long a member is not asked again for a copy that it refuses, or that somebody else's object is in the way of: whoever forbids it
 * there, or has that object, may think again, and a quota may be raised.
 */
export const REFUSED_FOR_MS = 60_000;

// As long as a delegate's. So does one whose namespace ends there: that may be over at any time.
const FAILING_FOR_MS = 30_000;
// Longer than any pause between two attempts: what failed before is over.
const FORGOTTEN_MS = 2 * 60_000;

/**
 * Since when members have been failing to take copies: a webhook of theirs does not answer, say, or they have too many requests, or have
 * just been started and know no roles.
 * Most such failures pass in a moment. Of one that lasts, those who wait for the copy have to hear.
 */
export class Failures<Key extends string> {
  readonly #clock: Pick<Clock, "now">;
  /** Epoch ms, by `member/key`; the one that failed last comes last. */
  readonly #failing = new Map<string, { readonly since: number; readonly lastAt: number }>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Writes. Rejects with KubeError as the write does, but for what may pass and has not for a while: that is noted on the member. */
  async outlast<T>(
    key: Key,
    member: Pick<Member, "name" | "reachableSince" | "noteFailure">,
    write: () => Promise<T>,
  ): Promise<T | Failing> {
    const place = `${member.name}/${key}`;
    try {
      const written = await write();
      this.#failing.delete(place);
      return written;
    } catch (error) {
      if (!mayPass(error)) throw error;
      // What it answered before it was lost says nothing of now.
      const since = Math.max(this.#note(mayBeStarting(error) ? rightOf(error) : place), member.reachableSince);
      if (this.#clock.now() < since + PASSES_MS) throw error;
      member.noteFailure(error);
      const restMs = Math.max(FAILING_FOR_MS, error.retryAfterMs ?? 0);
      const detail = isOfNamespace(error) ? `${error.verb} ${error.resource}: ${error.detail}` : error.detail;
      return { type: "failing", error, detail, restMs };
    }
  }

  /** Since when it has been failing; epoch ms. */
  #note(place: string): number {
    const now = this.#clock.now();
    for (const [other, { lastAt }] of this.#failing) {
      if (now - lastAt < FORGOTTEN_MS) break;
      this.#failing.delete(other);
    }
    const { since = now } = this.#failing.get(place) ?? {};
    this.#failing.delete(place);
    this.#failing.set(place, { since, lastAt: now });
    return since;
  }
}

/** What a member denies once it denies of all objects of the kind. */
function rightOf({ cluster, verb, resource }: KubeError): string {
  return `${cluster}/${verb}/${resource.replace(/ .*/, "")}`;
}

/** True when the member was asked, and the same request may work the next time. */
function mayPass(error: unknown): error is KubeError {
  if (isKubeError(error, "ServerError", "TooManyRequests", "AnswerLost", "BadAnswer")) return true;
  return isKubeError(error) && mayBeStarting(error);
}

/** True when what failed was not the copy, but the namespace that it is to be in: no copy was made. */
export function isOfNamespace({ resource }: KubeError): boolean {
  return resource.startsWith("namespaces ");
}

/** How a member does not take a copy. */
type NotTaken = { readonly type: "refused"; readonly detail: string } | Failing;

/** The version of its source that a refusal is of. */
export interface OfVersion {
  /** Absent where no other version would be taken. */
  readonly version?: string;
}

/** Of which version that is, where another one may be taken at once: it was this one that the member did not want. */
export function refusedVersion(answer: NotTaken, version: string): OfVersion {
  return answer.type === "refused" && !isNamespaceEnding(answer.detail) ? { version } : {};
}

/** Whether the source has changed since the refusal, in a way that may end it. */
export function isOfEarlier({ version }: OfVersion, current: string): boolean {
  return version !== undefined && version !== current;
}

/** How long a member is not asked again that refuses a copy, or goes on failing to take it; ms. */
export function restMsAfter(answer: NotTaken): number {
  if (answer.type === "failing") return answer.restMs;
  return isNamespaceEnding(answer.detail) ? FAILING_FOR_MS : REFUSED_FOR_MS;
}
