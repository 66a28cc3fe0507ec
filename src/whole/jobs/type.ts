import type { RequestedPlacement } from "../../api/annotations.ts";
import { type JsonObject, valueAt } from "../../api/json.ts";
import { CLUSTER_ANNOTATION, PREFERENCES_ANNOTATION, SHARES_ANNOTATION, WHOLE_KEY } from "../../api/keys.ts";
import { type Job, objectKey } from "../../api/kubernetes.ts";
import { ELASTIC_JOB_ANNOTATION } from "../../api/kueue.ts";
import { cronJobs, jobs } from "../../kube/resources.ts";
import type { WholeType } from "../type.ts";
import { asksForShares } from "./choice.ts";
import { isFinished } from "./kind.ts";
import { placeJob } from "./place.ts";
import { partsOfJob, progressOfJob } from "./progress.ts";
import { membersOfJob, sharesOf } from "./shares.ts";

/** Jobs, whose pods the members' own Job controllers make. */
export const JOBS: WholeType<Job> = {
  resource: jobs,
  names: { objects: "whole-jobs", copies: "whole-job-copies" },
  managedBy: ["spec", "managedBy"],
  // The CronJob controller copies labels, annotations and spec from the template; a Job's finalizer comes from Legation's controller.
  makers: [{ resource: cronJobs, part: ["spec", "jobTemplate"] }],
  whyReserved:
    "Jobs run whole in members without a DelegatedType; a CronJob stays on the host, and its Jobs go to members",
  podSpec: ["spec", "template", "spec"],
  recordKeys: [CLUSTER_ANNOTATION, SHARES_ANNOTATION],
  problemsOf: (job, { annotations, placement }) => [
    [
      WHOLE_KEY,
      valueAt(job, ["spec", "manualSelector"]) === true &&
        "the member chooses the Job's selector; remove spec.manualSelector and spec.selector",
    ],
    [
      WHOLE_KEY,
      annotations[ELASTIC_JOB_ANNOTATION] === "true" &&
        `Kueue starts the pods of an elastic Job one by one (${ELASTIC_JOB_ANNOTATION}), and those of a whole Job are in members; remove one of the two`,
    ],
    ...divisionProblems(placement, job).map((problem) => [PREFERENCES_ANNOTATION, problem] as const),
  ],
  membersOf: membersOfJob,
  isFinished,
  isFinishedIn: (job, member) => sharesOf(job)?.some((share) => share.member === member && isFinished(share)) ?? false,
  progressOf: progressOfJob,
  partsOf: partsOfJob,
  workOf: (job) => {
    const members = membersOfJob(job);
    const { uid, annotations = {} } = job.metadata;
    const { active: live = 0, succeeded = 0 } = job.status ?? {};
    return { uid, annotations, members, isDivided: asksForShares(job) || members.length > 1, live, succeeded };
  },
  inMember: (job) => {
    const { active: count = 0 } = job.status ?? {};
    // Without pods, a Job of the name that the member has may be another's.
    if (isFinished(job) || count === 0) return { pods: [] };
    return { pods: [{ pod: job.spec?.template ?? {}, count }], owner: objectKey(job.metadata) };
  },
  place: placeJob,
};

/** Returns why the Job cannot be divided. The API server has defaulted the fields of a Job, and not those of a Job template. */
function divisionProblems({ preferences }: RequestedPlacement, job: JsonObject): (string | false)[] {
  if (preferences === undefined) return [];
  const at = (field: string): unknown => valueAt(job, ["spec", field]) ?? undefined;
  const undivided = "or remove the annotation, and the Job goes to one member";
  return [
    at("completionMode") === "Indexed" &&
      `the shares of an Indexed Job would each begin with index 0; write spec.completionMode: NonIndexed, ${undivided}`,
    at("completions") === undefined &&
      at("parallelism") !== undefined &&
      `divides spec.completions, which is not set, so that each share would end with its own first success; write it, ${undivided}`,
    preferences.rebalance && "rebalance: the completions of a share never move to another member; remove the field",
  ];
}
