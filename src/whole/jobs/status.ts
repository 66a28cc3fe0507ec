import { defined } from "../../api/defined.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import { FINAL_CONDITIONS, isFinished, isMarkedTrue, isOfController, type JobStatus, type LossReason } from "./kind.ts";
import { type JobShare, recordedStatus } from "./shares.ts";

type Condition = NonNullable<JobStatus["conditions"]>[number];

/**
 * Returns the host's status: of a lone copy the same, of shares their sum, but for what the host's API server refuses. It wants a
 * reason before each final condition, which members before 1.31 do not write, and keeps the start time of a Job that is not
 * suspended (pkg/apis/batch/validation, validateJobStatus and ValidateJobUpdateStatus). Conditions that other clients of the host
 * set stay, as the Job controller leaves them. In `uncertain` members a share may run although its status shows no pods.
 */
export function statusOnHost(
  job: Job,
  shares: readonly JobShare[],
  uncertain: ReadonlySet<string> = new Set(),
): JobStatus {
  const { spec, status: before } = job;
  const [first] = shares;
  const status = first === undefined || first.part !== undefined ? sumOf(job, shares, uncertain) : (first.status ?? {});
  const keepsStart = before?.startTime !== undefined && spec?.suspend !== true;
  const fromMembers = withCriteria(status.conditions ?? []);
  const conditions = [...fromMembers, ...ofOthers(before, fromMembers)];
  return {
    ...status,
    ...(keepsStart ? { startTime: before.startTime } : {}),
    ...(conditions.length === 0 ? {} : { conditions }),
  };
}

function ofOthers(before: JobStatus | undefined, known: readonly Condition[]): Condition[] {
  const isNew = (condition: Condition): boolean => known.every(({ type }) => type !== condition.type);
  return before?.conditions?.filter((condition) => !isOfController(condition) && isNew(condition)) ?? [];
}

/** Returns the share with the copy's status. A divided Job's record holds what its sum and its reader need. */
export function shareWithStatus({ status: _, ...share }: JobShare, { spec, status = {} }: Job): JobShare {
  if (share.part === undefined) return { ...share, status };
  // Until the copy itself is suspended, its pods may be about to start again.
  const isRight = ({ type, status: is }: Condition): boolean =>
    type !== "Suspended" || is !== "True" || spec?.suspend === true;
  const { conditions, ...kept } = recordedStatus(status);
  return { ...share, status: { ...kept, ...(conditions && { conditions: conditions.filter(isRight) }) } };
}

/**
 * Returns the status of a Job or share whose copy is lost. One that had met its success criteria is complete, since the API server
 * refuses that it fails. `now` is RFC 3339.
 */
export function lostJobStatus(
  { status }: Pick<Stored<Job>, "status">,
  { reason, message, now }: { readonly reason: LossReason; readonly message: string; readonly now: string },
): JobStatus {
  const condition = { status: "True", reason, message, lastProbeTime: now, lastTransitionTime: now };
  const conditions =
    status?.conditions?.filter(({ type }) => type !== "FailureTarget" && !FINAL_CONDITIONS.has(type)) ?? [];
  const ended = {
    ...status,
    startTime: status?.startTime ?? now,
    active: 0,
    terminating: 0,
    ready: 0,
    uncountedTerminatedPods: {},
  };
  if (isMarkedTrue(status, "SuccessCriteriaMet")) {
    return { ...ended, completionTime: now, conditions: [...conditions, { type: "Complete", ...condition }] };
  }
  const failed = [
    { type: "FailureTarget", ...condition },
    { type: "Failed", ...condition },
  ];
  return { ...ended, conditions: [...conditions, ...failed] };
}

/** Complete when all shares are; failing when one is, and failed when the others have ended. */
function sumOf(job: Job, shares: readonly JobShare[], uncertain: ReadonlySet<string>): JobStatus {
  const all = shares.map(({ status = {} }) => status);
  const failure = failureOf(job, shares);
  const conditions = [...suspension(job, shares, failure !== undefined), ...outcome(shares, failure, uncertain)];
  const [startTime] = all.flatMap(({ startTime: own }) => own ?? []).sort();
  const isComplete = conditions.some(({ type }) => type === "Complete");
  const ends = isComplete ? all.flatMap(({ completionTime: own }) => own ?? []).sort() : [];
  const completionTime = ends.at(-1);
  return {
    ...defined({ startTime, completionTime }),
    ...counted(all, "active"),
    ...counted(all, "succeeded"),
    ...counted(all, "failed"),
    ...counted(all, "ready"),
    ...counted(all, "terminating"),
    ...(conditions.length === 0 ? {} : { conditions }),
  };
}

type Counter = "active" | "succeeded" | "failed" | "ready" | "terminating";
// Zero is told apart from absent (k8s.io/api/batch/v1, pointers).
const WITH_ZERO: ReadonlySet<Counter> = new Set(["ready", "terminating"]);

function counted(all: readonly JobStatus[], counter: Counter): JobStatus {
  const counts = all.flatMap((status) => status[counter] ?? []);
  const sum = counts.reduce((total, one) => total + one, 0);
  return sum > 0 || (counts.length > 0 && WITH_ZERO.has(counter)) ? { [counter]: sum } : {};
}

/** The failure that the host shows already stays. */
function failureOf({ status }: Job, shares: readonly JobShare[]): Condition | undefined {
  const shown = status?.conditions?.find(({ type, status: is }) => type === "FailureTarget" && is === "True");
  if (shown !== undefined) return shown;
  const failures = shares.flatMap(({ member, status: own }) => {
    const condition = trueConditions(own, "Failed", "FailureTarget").at(0);
    return condition === undefined ? [] : [{ member, condition }];
  });
  const [first] = failures.sort((a, b) => (timeOf(a.condition) < timeOf(b.condition) ? -1 : 1));
  if (first === undefined) return undefined;
  const { message = "", ...condition } = first.condition;
  return { ...condition, type: "FailureTarget", message: `${first.member}: ${message}` };
}

function outcome(
  shares: readonly JobShare[],
  failure: Condition | undefined,
  uncertain: ReadonlySet<string>,
): Condition[] {
  if (failure !== undefined) {
    const isOver = shares.every((share) => isFinished(share) || (isSuspended(share) && !uncertain.has(share.member)));
    return isOver ? [failure, { ...failure, type: "Failed", ...latest(shares) }] : [failure];
  }
  const isMet = shares.every(({ status }) => isMarkedTrue(status, "Complete", "SuccessCriteriaMet"));
  if (!isMet) return [];
  const reached = {
    status: "True",
    reason: "CompletionsReached",
    message: "Reached expected number of succeeded pods",
  };
  const met = { type: "SuccessCriteriaMet", ...reached, ...latest(shares) };
  return shares.every(isFinished) ? [met, { ...met, type: "Complete" }] : [met];
}

function isSuspended({ status }: JobShare): boolean {
  const { active = 0, terminating = 0 } = status ?? {};
  return isMarkedTrue(status, "Suspended") && active + terminating === 0;
}

/** Suspended when all shares are that go on. In between, and while the Job fails, the host's condition stays. */
function suspension(job: Job, shares: readonly JobShare[], fails: boolean): Condition[] {
  const shown = job.status?.conditions?.filter(({ type }) => type === "Suspended") ?? [];
  if (fails) return shown;
  const open = shares.filter((share) => !isFinished(share));
  const suspended = open.flatMap(({ status }) => trueConditions(status, "Suspended"));
  if (suspended.length > 0) return suspended.length === open.length ? suspended.sort(byTime).slice(-1) : shown;
  const resumed = shares.flatMap(({ status }) => status?.conditions?.filter(({ type }) => type === "Suspended") ?? []);
  return resumed.sort(byTime).slice(-1);
}

function trueConditions(status: JobStatus | undefined, ...types: readonly string[]): Condition[] {
  return status?.conditions?.filter(({ type, status: is }) => types.includes(type) && is === "True") ?? [];
}

function latest(shares: readonly JobShare[]): Pick<Condition, "lastProbeTime" | "lastTransitionTime"> {
  const times = shares.flatMap(({ status }) => status?.conditions?.map(timeOf) ?? []).sort();
  const time = times.at(-1);
  return time === undefined ? {} : { lastProbeTime: time, lastTransitionTime: time };
}

function timeOf({ lastTransitionTime = "" }: Condition): string {
  return lastTransitionTime;
}

function byTime(a: Condition, b: Condition): number {
  return timeOf(a) < timeOf(b) ? -1 : 1;
}

function withCriteria(conditions: readonly Condition[]): Condition[] {
  const has = (type: string): boolean => conditions.some((one) => one.type === type && one.status === "True");
  return conditions.flatMap((condition) => {
    const criterion = condition.status === "True" ? FINAL_CONDITIONS.get(condition.type) : undefined;
    return criterion === undefined || has(criterion) ? [condition] : [{ ...condition, type: criterion }, condition];
  });
}
