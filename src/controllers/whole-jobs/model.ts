import type { Job, Stored } from "../../api/kubernetes.ts";
import type { JobStatus, LossReason } from "../../copies/jobs.ts";
import type { HeldWrites } from "../../runtime/held-writes.ts";

/** The pause before a Job that waits is looked at again without an event: room that becomes free is an event of pods only. */
export const LOOK_AGAIN_MS = 30_000;

/** The writes of a status, and of the end of a Job that is lost, to the write guard. */
export const STATUS = "status";
export const LOSS = "loss";

/** Returns a status as the write guard knows it. */
export function statusContent(status: JobStatus): string {
  return JSON.stringify(status);
}

/** The member that a Job was given to. */
export interface Place {
  readonly member: string;
  /** `gone`: its Cluster was removed. `silent`: it does not answer, or its Jobs were not read yet. */
  readonly state: "usable" | "silent" | "gone";
  /** The copy, made for this very Job. */
  readonly copy?: Stored<Job>;
  /** Why there is nothing to create: the author's overrides do not fit, say. */
  readonly problem?: string;
  /** Why the member surely did not take the Job; `until` is when it may be sent again, epoch ms. */
  readonly refusal?: { readonly message: string; readonly until: number };
}

/** Everything that a decision on one whole Job depends on. */
export interface Observed {
  readonly job: Stored<Job>;
  readonly place?: Place;
  /** Members that may have the Job, best first, and why the others may not. Absent while none is looked for. */
  readonly choice?: { readonly fitting: readonly string[]; readonly why: string };
  /** The status that was last sent, and when; epoch ms. */
  readonly statusSent?: { readonly at: number; readonly status: JobStatus };
  /** Writes that the host refuses, or that another manager undoes. */
  readonly held?: HeldWrites;
}

/** A write on the host. Each has the Job's resourceVersion or uid as its precondition. */
export type Action =
  /** Gives the Job to a member, after the one before was asked for a copy. */
  | { readonly type: "record"; readonly job: Stored<Job>; readonly member: string; readonly before?: string }
  | { readonly type: "status"; readonly job: Stored<Job>; readonly status: JobStatus }
  /** Ends the Job as failed, after its member was asked for the copy. */
  | {
      readonly type: "fail";
      readonly job: Stored<Job>;
      readonly member: string;
      readonly reason: LossReason;
      readonly message: string;
    }
  /** Lets the Job go, after its member was asked for the copy. */
  | { readonly type: "release"; readonly job: Stored<Job>; readonly member?: string }
  | { readonly type: "report"; readonly job: Stored<Job>; readonly message: string };

/** Actions for one Job, and when to look again without an event. */
export interface JobDecision {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}
