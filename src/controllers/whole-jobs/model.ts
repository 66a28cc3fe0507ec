import type { Job, Stored } from "../../api/kubernetes.ts";
import type { JobStatus } from "../../copies/jobs.ts";

/** The member that a Job was given to. */
export interface Place {
  readonly member: string;
  /** `gone`: its Cluster was removed. `silent`: it does not answer, or its Jobs were not read yet. */
  readonly state: "usable" | "silent" | "gone";
  /** The copy, made for this very Job. */
  readonly copy?: Stored<Job>;
  /** Why the member surely did not take the Job; `until` is when it may be sent again, epoch ms. */
  readonly refusal?: { readonly message: string; readonly until: number };
}

/** Everything that a decision on one whole Job depends on. */
export interface Observed {
  readonly job: Stored<Job>;
  readonly place?: Place;
  /** Members that may have the Job, best first, and why the others may not. Absent while none is looked for. */
  readonly choice?: { readonly fitting: readonly string[]; readonly why: string };
  /** When the status was last written; epoch ms. */
  readonly statusWrittenAt?: number;
  /** The host refuses the status, or another manager keeps changing it: until when it is left so; epoch ms. */
  readonly statusHeldUntil?: number;
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
      readonly reason: string;
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
