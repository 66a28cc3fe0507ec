import { isKubeError, isRefusal } from "../kube/errors.ts";
import type { Expectation } from "./controller.ts";
import type { WriteGuard } from "./write-guard.ts";

/** A write of an object that a watch shows. */
export interface GuardedWrite<Key extends string, Observed, Answer> {
  readonly guard: Pick<WriteGuard<Key>, "failed" | "hold">;
  readonly object: Key;
  /** The name by which the guard knows the write. */
  readonly write: string;
  /** Returns the only content that is held if it is refused. Absent: any content is. */
  readonly content?: () => string;
  readonly send: () => Promise<Answer>;
  readonly onWritten: (answer: Answer) => Expectation<Observed> | undefined;
  /** Called once the API server refuses the write for good, with its words. */
  readonly onRefused: (detail: string) => void;
}

/**
 * Sends a write, and holds one that is refused. One that came too late is left to the watch, which shows what came between, or that the
 * object or its API is gone. Rejects with errors that may pass.
 */
export async function sendGuarded<Key extends string, Observed, Answer>({
  guard,
  object,
  write,
  content,
  send,
  onWritten,
  onRefused,
}: GuardedWrite<Key, Observed, Answer>): Promise<Expectation<Observed> | undefined> {
  try {
    return onWritten(await send());
  } catch (error) {
    if (isKubeError(error, "Conflict", "NotFound", "AlreadyExists")) return undefined;
    if (!isRefusal(error) || guard.failed(object, write, error) === "transient") throw error;
    guard.hold(object, write, "Refused", content === undefined ? {} : { content: content() });
    onRefused(error.detail);
    return () => true;
  }
}
