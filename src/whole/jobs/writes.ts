import { CLUSTER_ANNOTATION, SHARES_ANNOTATION } from "../../api/keys.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import type { WholeWrites } from "../../controllers/whole/adapter.ts";
import { wholeStatusPatch } from "../../controllers/whole/execute.ts";
import { setField } from "../../copies/copy-metadata.ts";
import { WHOLE_JOB } from "./kind.ts";
import type { Shown } from "./model.ts";
import { type JobShare, sharesRecord } from "./shares.ts";

/** The writes of whole Jobs: members are recorded with their shares, and the status with the record that it sums up. */
export const JOB_WRITES: WholeWrites<Job, readonly JobShare[], Shown> = {
  kind: WHOLE_JOB,
  statusName: "the Job's status",
  recordOf: (shares) =>
    shares.length === 0
      ? { annotations: { [CLUSTER_ANNOTATION]: null }, message: "no member has the Job while it waits in its queue" }
      : { annotations: sharesRecord(shares), message: placedMessage(shares) },
  writeStatus: (job, { status, shares }, patch) =>
    patch([...wholeStatusPatch(job, status), ...ofThisVersion(job), ...recordPatch(shares)], { subresource: "status" }),
};

/** A share may have moved since, or another client may have set a condition. */
function ofThisVersion({ metadata: { resourceVersion } }: Stored<Job>): object[] {
  return [setField("/metadata/resourceVersion", resourceVersion)];
}

function recordPatch(shares: readonly JobShare[]): object[] {
  const record = sharesRecord(shares)[SHARES_ANNOTATION];
  if (record === undefined) return [];
  return [setField(`/metadata/annotations/${SHARES_ANNOTATION.replace("/", "~1")}`, record)];
}

function placedMessage(shares: readonly JobShare[]): string {
  const [first] = shares;
  if (first?.part === undefined) return `${first?.member ?? ""} has the Job`;
  const parts = shares.map(({ member, part }) => `${member} ${part?.completions ?? 0}`);
  return `completions by member: ${parts.join(", ")}`;
}
