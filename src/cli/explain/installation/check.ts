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
 * Reads what checks are about. Resolves to undefined after an error of an API server, which it adds to `findings` as one about `subject`.
 * Rejects with an error of this program, and when the user interrupts the command.
 */
export async function attempt<T>(
  subject: string,
  deadline: Deadline,
  findings: Finding[],
  read: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    deadline.command.throwIfAborted();
    findings.push(findingOf(subject, deadline, error));
    return undefined;
  }
}

/** Runs a check, and turns an error of an API server into a finding about `subject`. Rejects like `attempt`. */
export async function checked(
  subject: string,
  deadline: Deadline,
  check: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const problems: Finding[] = [];
  return (await attempt(subject, deadline, problems, check)) ?? problems;
}

/** Runs checks at the same time, each by its subject. Rejects like `attempt`. */
export async function checkedAll(
  deadline: Deadline,
  checks: Readonly<Record<string, () => Promise<readonly Finding[]>>>,
): Promise<readonly Finding[]> {
  const parts = Object.entries(checks).map(([subject, check]) => checked(subject, deadline, check));
  return (await Promise.all(parts)).flat();
}

function findingOf(subject: string, { signal, timeoutMs }: Deadline, error: unknown): Finding {
  if (error instanceof Failure) return fail(error.message, diagnose(error).remedy ?? "see the message");
  if (signal.aborted) {
    return fail(`${subject}: ${noAnswer(timeoutMs)}`, "see that its API server answers, or raise --timeout");
  }
  if (!isKubeError(error)) throw error;
  if (error.code === "Forbidden") return forbidden(`${subject}: you may not ${error.verb} ${error.target}`);
  return fail(`${subject}: ${problemOf(error)}`, "see that the API server answers");
}

/** Returns the error's words at a length that fits one line. */
export function problemOf({ detail }: KubeError): string {
  return cutAt(plainDetail(detail), LONGEST_PROBLEM);
}
