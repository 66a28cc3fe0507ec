import { defined } from "../../api/defined.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import type { MemberPart } from "../member-part.ts";
import { jobOfShare } from "./division.ts";
import { hasStarted, isMarkedTrue, type JobStatus } from "./kind.ts";
import { type JobShare, membersOfJob, sharesOf } from "./shares.ts";

/** Conditions by which no pods of a Job run; the first that is True counts. */
const ENDS = ["Failed", "Complete", "Suspended"] as const;

/** Returns the shares of a Job, or all of it in its one member, each with what the member reported last. */
export function partsOfJob(job: Stored<Job>): readonly MemberPart[] {
  const shares: readonly JobShare[] = sharesOf(job) ?? membersOfJob(job).map((member) => ({ member }));
  return shares.map((share): MemberPart => {
    const { active = 0, ready = 0, succeeded = 0, failed = 0, startTime } = share.status ?? {};
    const { completions, parallelism = 1 } = jobOfShare(job, share, shares).spec ?? {};
    const end = endOf(share.status);
    const ended = share.status?.conditions?.find(({ type }) => type === end);
    return {
      member: share.member,
      state: end ?? (hasStarted(share) ? "Running" : "NotStarted"),
      ...defined({ since: ended?.lastTransitionTime ?? startTime }),
      counts: {
        succeeded: completions === undefined ? [succeeded] : [succeeded, completions],
        failed: [failed],
        active: [active, parallelism],
        ready: [ready],
      },
    };
  });
}

/** Formats how far a Job is: `2 of 3 succeeded, 1 active`. */
export function progressOfJob({ spec, status }: Job): string {
  const { succeeded = 0, failed = 0, active = 0 } = status ?? {};
  const failures = failed === 0 ? "" : `${failed} failed, `;
  const progress = `${doneText(succeeded, spec?.completions)}, ${failures}${active} active`;
  const ended = endOf(status);
  return ended === undefined ? progress : `${ended}: ${progress}`;
}

/** Formats successes: `2 of 3 succeeded`. Without wanted completions the first is enough: `2 succeeded`. */
export function doneText(succeeded: number, completions: number | undefined): string {
  return `${succeeded}${completions === undefined ? "" : ` of ${completions}`} succeeded`;
}

/** Returns the condition by which no pods of a Job run. Undefined: they may. */
export function endOf(status: JobStatus | undefined): (typeof ENDS)[number] | undefined {
  return ENDS.find((end) => isMarkedTrue(status, end));
}
