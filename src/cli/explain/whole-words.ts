import type { ObjectInMember, WholeObjectStatus } from "./whole-object.ts";

/** Returns the numbers that members' parts have, each with its cell for a member: `12 of 20`. Empty: they have none. */
export function countColumns(
  members: readonly ObjectInMember[],
): (readonly [count: string, cell: (member: ObjectInMember) => string])[] {
  return Object.keys(members[0]?.counts ?? {}).map((count) => [
    count,
    ({ counts }) => counts?.[count]?.join(" of ") ?? "",
  ]);
}

/** Formats a condition of a whole object: `Failed is True (BackoffLimitExceeded): too many pods failed`. */
export function conditionText({ type, status, reason, message }: WholeObjectStatus["conditions"][number]): string {
  return `${type} is ${status}${reason === "" ? "" : ` (${reason})`}${message === "" ? "" : `: ${message}`}`;
}
