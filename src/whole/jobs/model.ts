import type { Job, Stored } from "../../api/kubernetes.ts";
import type { SchedulingPreferences } from "../../api/preferences.ts";
import type { Action, WholeDecision, Observed as WholeObserved } from "../../controllers/whole/model.ts";
import type { JobStatus } from "./kind.ts";
import type { JobShare } from "./shares.ts";

/** The status of the host's Job, and the shares of a divided one, as they are recorded with it. */
export interface Shown {
  readonly status: JobStatus;
  readonly shares: readonly JobShare[];
}

export interface JobMember {
  readonly member: string;
  /** The member's share, as the Job records it. */
  readonly share: JobShare;
  /** `gone`: its Cluster was removed. `silent`: it does not answer, or its Jobs were not read yet. */
  readonly state: "usable" | "silent" | "gone";
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
export interface Observed extends WholeObserved<Job, Shown> {
  /** The members that have it: none yet, one, or one for each share. */
  readonly places: readonly JobMember[];
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
}

export type JobAction = Action<Job, readonly JobShare[], Shown>;
export type JobDecision = WholeDecision<Job, readonly JobShare[], Shown>;
