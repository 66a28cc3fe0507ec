import type { Job, Stored } from "../../api/kubernetes.ts";
import type { MemberPart } from "../member-part.ts";
import { jobOfShare } from "./division.ts";
import { hasStarted, isFinished, type JobStatus } from "./kind.ts";
import { type JobShare, membersOfJob, sharesOf } from "./shares.ts";
import { doneText, endAmong, type JobEnd, type JobState, stateOf } from "./state.ts";

/** A member's share of a divided Job, with what the member reported last. */
export interface ShareStatus {
  readonly cluster: string;
  readonly completions: number;
  readonly parallelism: number;
  readonly active: number;
  readonly ready: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly state: JobState;
}

/** Returns the shares of a divided Job. Empty: one member has all of it. */
export function sharesStatus(job: Stored<Job>): readonly ShareStatus[] {
  const shares = (sharesOf(job) ?? []).filter(({ part }) => part !== undefined);
  return shares.map((share) => shareStatus(job, share, shares));
}

function shareStatus(job: Stored<Job>, share: JobShare, shares: readonly JobShare[]): ShareStatus {
  const { active = 0, ready = 0, succeeded = 0, failed = 0 } = share.status ?? {};
  const { completions = 0, parallelism = 0 } = jobOfShare(job, share, shares).spec ?? {};
  const state = stateOf(trueConditions(share.status), hasStarted(share));
  return { cluster: share.member, completions, parallelism, active, ready, succeeded, failed, state };
}

export function partsOfJob(job: Stored<Job>): readonly MemberPart[] {
  const { spec: { parallelism = 1, completions } = {}, status = {} } = job;
  const { active = 0, succeeded = 0, startTime } = status;
  const divided = sharesStatus(job);
  const state = stateOf(trueConditions(status), startTime !== undefined);
  const whole = { active, succeeded, completions, parallelism, state };
  const shares =
    divided.length > 0
      ? divided
      : membersOfJob(job)
          .slice(0, 1)
          .map((cluster) => ({ cluster, ...whole }));
  return shares.map((share) => ({
    member: share.cluster,
    tone: toneOf(share.state, isFinished(job)),
    state: share.state,
    message: `${doneText(share.succeeded, share.completions)}, ${share.active} of ${share.parallelism} active`,
    wanted: share.completions ?? 1,
    has: share.succeeded,
  }));
}

function toneOf(state: string, isOver: boolean): MemberPart["tone"] {
  if (state === "Failed") return "failed";
  if (state === "Complete" || isOver) return "succeeded";
  return state === "Running" ? "running" : "waiting";
}

export function progressOfJob({ spec, status }: Job): string {
  const { succeeded = 0, active = 0 } = status ?? {};
  const progress = `${doneText(succeeded, spec?.completions)}, ${active} active`;
  const ended = endOf(status);
  return ended === undefined ? progress : `${ended}: ${progress}`;
}

/** Returns the condition by which no pods of a Job run. Undefined: they may. */
export function endOf(status: JobStatus | undefined): JobEnd | undefined {
  return endAmong(trueConditions(status));
}

export function trueConditions({ conditions = [] }: JobStatus = {}): NonNullable<JobStatus["conditions"]> {
  return conditions.filter(({ status: is }) => is === "True");
}
