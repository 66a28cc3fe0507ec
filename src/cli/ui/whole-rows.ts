import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import type { Job, KubeObject, Stored } from "../../api/kubernetes.ts";
import { isFinished } from "../../copies/jobs.ts";
import { membersOfObject } from "../../copies/object-members.ts";
import { jobs } from "../../kube/resources.ts";
import { doneText, stateOf } from "../explain/job-state.ts";
import { wholeJobStatus } from "../explain/whole-job.ts";
import type { WholeRow, WholeShare } from "./model.ts";

/** Tones of members that do not have the object as it should be, by state. */
const TONES: Readonly<Record<string, WholeShare["tone"]>> = {
  Refused: "failed",
  Contested: "failed",
  Leaving: "ending",
  Waiting: "waiting",
};

/** Returns the row of a whole object, by the members on its record. */
export function wholeObjectRow(object: Stored<AnyObject>, type: Stored<DelegatedType>): WholeRow {
  return {
    ...rowOf(object, { type: type.metadata.name, kind: type.spec.kind }),
    members: (membersOfObject(object) ?? []).map(({ member, state, health, message }) => ({
      member,
      tone: TONES[state] ?? (health === "False" ? "failed" : "running"),
      state: state === "InStep" && health !== undefined && health !== "True" ? `InStep, healthy: ${health}` : state,
      message,
    })),
  };
}

/** Returns the row of a whole Job, with the counters of its members. */
export function wholeJobRow(job: Stored<Job>): WholeRow {
  const { cluster, shares, active, succeeded, completions, started, conditions } = wholeJobStatus({ job, told: [] });
  const { parallelism = 1 } = job.spec ?? {};
  const state = stateOf(conditions, started !== undefined);
  const whole = cluster === undefined ? [] : [{ cluster, active, succeeded, completions, parallelism, state }];
  return {
    ...rowOf(job, { type: jobs.plural, kind: jobs.kind }),
    members: (shares.length > 0 ? shares : whole).map((share) => ({
      member: share.cluster,
      tone: toneOf(share.state, isFinished(job)),
      state: share.state,
      message: `${doneText(share.succeeded, share.completions)}, ${share.active} of ${share.parallelism} active`,
      wanted: share.completions ?? 1,
      has: share.succeeded,
    })),
  };
}

function rowOf({ metadata }: Stored<KubeObject>, of: Pick<WholeRow, "type" | "kind">): Omit<WholeRow, "members"> {
  const { uid, name, namespace, deletionTimestamp } = metadata;
  return { uid, ...of, namespace, name, isEnding: deletionTimestamp !== undefined };
}

function toneOf(state: string, isOver: boolean): WholeShare["tone"] {
  if (state === "Failed") return "failed";
  if (state === "Complete" || isOver) return "succeeded";
  return state === "Running" ? "running" : "waiting";
}
