import { z } from "zod";
import { jsonOrNothing, withoutNulls } from "../../api/json.ts";
import { CLUSTER_ANNOTATION, SHARES_ANNOTATION } from "../../api/keys.ts";
import type { Job } from "../../api/kubernetes.ts";
import type { ClusterPreferences } from "../../api/preferences.ts";
import { isMarkedTrue, type JobStatus } from "./kind.ts";

/** A member's share of a whole Job, as recorded on the Job before anything is created in it. */
export interface JobShare {
  readonly member: string;
  /** The part of a divided Job. Absent: the member has all of it. */
  readonly part?: SharePart;
  /** The status of the copy, as last recorded. */
  readonly status?: JobStatus;
}

/** The completions of a share never change; its parallelism follows the Job's, by weight and limits. */
export interface SharePart extends ClusterPreferences {
  readonly completions: number;
}

const count = z.number().exactOptional();
const text = z.string().exactOptional();
// Messages name what authors name, and one annotation holds the conditions of all shares.
const LONGEST_MESSAGE = 300;
const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: text,
  message: z
    .string()
    .transform((words) => words.slice(0, LONGEST_MESSAGE))
    .exactOptional(),
  lastProbeTime: text,
  lastTransitionTime: text,
});
const statusSchema = z.object({
  startTime: text,
  completionTime: text,
  active: count,
  ready: count,
  terminating: count,
  succeeded: count,
  failed: count,
  conditions: z.array(condition).exactOptional(),
});
const recordSchema = z.record(
  z.string(),
  z.object({
    completions: z.number(),
    weight: z.number(),
    minReplicas: z.number(),
    maxReplicas: count,
    status: statusSchema.exactOptional(),
  }),
);

/** Returns the members that the host's Job was given to. */
export function membersOfJob({ metadata }: Job): readonly string[] {
  const members = metadata?.annotations?.[CLUSTER_ANNOTATION];
  return members === undefined ? [] : members.split(",");
}

export function hasShares({ metadata }: Job): boolean {
  return metadata?.annotations?.[SHARES_ANNOTATION] !== undefined;
}

/** Returns the shares of the host's Job. Undefined if the record of a divided one cannot be read. */
export function sharesOf(job: Job): readonly JobShare[] | undefined {
  const record = job.metadata?.annotations?.[SHARES_ANNOTATION];
  const members = membersOfJob(job);
  if (record === undefined) {
    // Without a record each member would get all of the Job.
    if (members.length > 1) return undefined;
    return members.map((member) => ({ member, ...(job.status === undefined ? {} : { status: job.status }) }));
  }
  const shares = readRecord(record);
  return shares?.map(({ member }) => member).join() === members.join() ? shares : undefined;
}

export function sharesRecord(shares: readonly JobShare[]): Record<string, string> {
  const members = shares.map(({ member }) => member).join(",");
  const parts = shares.flatMap(({ member, part, status }) =>
    part === undefined ? [] : [[member, { ...part, ...(status === undefined ? {} : { status }) }] as const],
  );
  const record = parts.length === 0 ? {} : { [SHARES_ANNOTATION]: JSON.stringify(Object.fromEntries(parts)) };
  return { [CLUSTER_ANNOTATION]: members, ...record };
}

/** Returns the part of a copy's status that a share's record holds. */
export function recordedStatus(status: JobStatus): JobStatus {
  return statusSchema.safeParse(withoutNulls(status)).data ?? {};
}

/** Reports whether a share of the Job has failed, so that the whole Job does. */
export function isFailing({ status }: Job): boolean {
  return isMarkedTrue(status, "FailureTarget", "Failed");
}

// Decisions read one Job several times in a row, and the record changes with its status.
let latest: { readonly record: string; readonly shares: readonly JobShare[] | undefined } | undefined;

function readRecord(record: string): readonly JobShare[] | undefined {
  if (latest?.record !== record) latest = { record, shares: parseRecord(record) };
  return latest.shares;
}

function parseRecord(record: string): readonly JobShare[] | undefined {
  const { success, data = {} } = recordSchema.safeParse(jsonOrNothing(record));
  if (!success) return undefined;
  return Object.entries(data).map(([member, { status, ...part }]) => ({
    member,
    part,
    ...(status === undefined ? {} : { status }),
  }));
}
