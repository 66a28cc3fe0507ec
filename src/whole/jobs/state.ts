/** Conditions by which no pods of a Job run; the first that is True counts. */
const ENDS = ["Failed", "Complete", "Suspended"] as const;

export type JobEnd = (typeof ENDS)[number];
export type JobState = JobEnd | "NotStarted" | "Running";

type TrueCondition = { readonly type: string };

/** Returns the condition by which no pods of a Job run. Undefined: they may. */
export function endAmong(conditions: readonly TrueCondition[]): JobEnd | undefined {
  return ENDS.find((end) => conditions.some(({ type }) => type === end));
}

/** Returns the state of a Job, or of a member's share of one. */
export function stateOf(conditions: readonly TrueCondition[], hasStarted: boolean): JobState {
  return endAmong(conditions) ?? (hasStarted ? "Running" : "NotStarted");
}

/** Formats how far a Job is: `2 of 3 succeeded`. Without wanted completions the first success is enough: `2 succeeded`. */
export function doneText(succeeded: number, completions: number | undefined): string {
  return `${succeeded}${completions === undefined ? "" : ` of ${completions}`} succeeded`;
}
