import type { WholeObjectStatus } from "./whole-object.ts";

/** Formats a condition of a whole object: `Failed is True (BackoffLimitExceeded): too many pods failed`. */
export function conditionText({ type, status, reason, message }: WholeObjectStatus["conditions"][number]): string {
  return `${type} is ${status}${reason === "" ? "" : ` (${reason})`}${message === "" ? "" : `: ${message}`}`;
}
