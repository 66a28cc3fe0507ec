import type { Job, Stored } from "../../../api/kubernetes.ts";
import type { SchedulingPreferences } from "../../../api/preferences.ts";
import { type JobShare, sharesRecord } from "../../../copies/job-shares.ts";
import type { JobStatus } from "../../../copies/jobs.ts";
import type { HeldWrites } from "../../../runtime/held-writes.ts";

/** The pause before a Job that waits is looked at again without an event: room that becomes free is an event of pods only. */
export const LOOK_AGAIN_MS = 30_000;

/** The writes of a status, and of the end of a Job that is lost, to the write guard. */
export const STATUS = "status";
export const LOSS = "loss";

/** The status of the host's Job, and the record of its shares. */
export interface Shown {
  readonly status: JobStatus;
  readonly shares: readonly JobShare[];
}

/** Returns what is shown as the write guard knows it. */
export function shownContent({ status, shares }: Shown): string {
  return JSON.stringify([status, sharesRecord(shares)]);
}

/** A member that a Job, or a share of it, was given to. */
export interface Place {
  readonly member: string;
  /** The member's share, as the Job records it. */
  readonly share: JobShare;
  /** `gone`: its Cluster was removed. `silent`: it does not answer, or its Jobs were not read yet. */
  readonly state: "usable" | "silent" | "gone";
  /** The copy, made for this very Job. */
  readonly copy?: Stored<Job>;
  /** A change of the copy is under way, or not shown yet. */
  readonly isChanging?: boolean;
  /** When no request can create the copy any more; epoch ms. Absent: none can, or there is a copy. */
  readonly settlesAt?: number;
  /** Why there is nothing to create: the author's overrides do not fit, say. */
  readonly problem?: string;
  /** Why the member surely did not take the Job; `until` is when it may be sent again, epoch ms. */
  readonly refusal?: { readonly message: string; readonly until: number };
}

/** Everything that a decision on one whole Job depends on. */
export interface Observed {
  readonly job: Stored<Job>;
  /** The members that have it: none yet, one, or one for each share. */
  readonly places: readonly Place[];
  /** The record of the shares cannot be read. */
  readonly isUnreadable?: boolean;
  /** Members that may have the Job, best first, and why the others may not. Absent while none is looked for. */
  readonly choice?: {
    readonly fitting: readonly string[];
    readonly preferences?: SchedulingPreferences;
    readonly why: string;
    /** A member that would get a share is still being read. */
    readonly awaits?: boolean;
  };
  /** The status and record that were last sent, and when; epoch ms. */
  readonly sent?: Shown & { readonly at: number };
  /** Writes that the host refuses, or that another manager undoes. */
  readonly held?: HeldWrites;
}

/** A write on the host. Each has the Job's resourceVersion or uid as its precondition. */
export type Action =
  /** Gives the Job to members, after the one that had a share before was asked for a copy. */
  | {
      readonly type: "record";
      readonly job: Stored<Job>;
      readonly shares: readonly JobShare[];
      readonly before?: string;
    }
  | { readonly type: "status"; readonly job: Stored<Job>; readonly shown: Shown }
  /** Ends the Job or a share as failed, after its member was asked for the copy. */
  | {
      readonly type: "fail";
      readonly job: Stored<Job>;
      readonly member: string;
      /** The Cluster was removed, so nobody can be asked. */
      readonly isGone: boolean;
      readonly shown: Shown;
    }
  /** Lets the Job go, after the members were asked for copies. */
  | { readonly type: "release"; readonly job: Stored<Job>; readonly members: readonly string[] }
  | { readonly type: "report"; readonly job: Stored<Job>; readonly message: string };

/** Actions for one Job, and when to look again without an event. */
export interface JobDecision {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}
