import { noAnswer } from "../../../api/wording.ts";
import { isKubeError, type KubeError } from "../../../kube/errors.ts";
import { cutAt, LONGEST_PROBLEM } from "../../../kube/messages.ts";
import { diagnose, Failure, plainDetail } from "../../shared/failure.ts";
import { type Finding, fail, forbidden } from "./finding.ts";

/** The signals of checks: the command's own, and the deadline of one part. */
export interface Deadline {
  /** Fires at the deadline or with the command's signal. */
  readonly signal: AbortSignal;
  /** Milliseconds that the part may take. */
  readonly timeoutMs: number;
  readonly command: AbortSignal;
}

/** The limits of one request. */
export type Limits = Pick<Deadline, "signal" | "timeoutMs">;

export function deadlineOf(command: AbortSignal, timeoutMs: number): Deadline {
  return { signal: AbortSignal.any([command, AbortSignal.timeout(timeoutMs)]), timeoutMs, command };
}

/**
 * Runs a check, and turns an error of an API server into a finding about `subject`. Rejects with an error of this program, and
 * when the user interrupts the command.
 */
export async function checked(
  subject: string,
  { command, signal, timeoutMs }: Deadline,
  check: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  try {
    return await check();
  } catch (error) {
    command.throwIfAborted();
    if (error instanceof Failure) return [fail(error.message, diagnose(error).remedy ?? "see the message")];
    if (!isKubeError(error) && !signal.aborted) throw error;
    if (signal.aborted) {
      return [fail(`${subject}: ${noAnswer(timeoutMs)}`, "see that its API server answers, or raise --timeout")];
    }
    return isKubeError(error) ? [unreadable(subject, error)] : [];
  }
}

/** Runs checks at the same time, each by its subject. Rejects like `checked`. */
export async function checkedAll(
  deadline: Deadline,
  checks: Readonly<Record<string, () => Promise<readonly Finding[]>>>,
): Promise<readonly Finding[]> {
  const parts = Object.entries(checks).map(([subject, check]) => checked(subject, deadline, check));
  return (await Promise.all(parts)).flat();
}

function unreadable(subject: string, error: KubeError): Finding {
  if (error.code !== "Forbidden") return fail(`${subject}: ${problemOf(error)}`, "see that the API server answers");
  return forbidden(`${subject}: you may not ${error.verb} ${error.target}`);
}

/** Returns the error's words at a length that fits one line. */
export function problemOf({ detail }: KubeError): string {
  return cutAt(plainDetail(detail), LONGEST_PROBLEM);
}
