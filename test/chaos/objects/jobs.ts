import { HOST_LABEL, PREFERENCES_ANNOTATION, WHOLE_KEY } from "../../../src/api/keys.ts";
import type { Job, KubeObject, Stored } from "../../../src/api/kubernetes.ts";
import { QUEUE_NAME_LABEL } from "../../../src/api/kueue.ts";
import { jobs } from "../../../src/kube/resources.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { isFinished, isMarkedTrue } from "../../../src/whole/jobs/kind.ts";
import { KWOK_ANNOTATIONS } from "../../support/clusters/stages.ts";
import type { Scene } from "../scene.ts";
import { FOREIGN_NAME } from "../workloads.ts";

interface WholeJob {
  readonly completions: number;
  /** Absent: its pods never end. */
  readonly endsAfter?: string | undefined;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Returns a Job that runs whole in members. */
export function wholeJob(name: string, { completions, endsAfter, annotations = {} }: WholeJob): KubeObject {
  const outcome =
    endsAfter === undefined
      ? { [KWOK_ANNOTATIONS.outcome]: "running" }
      : { [KWOK_ANNOTATIONS.outcome]: "succeeded", [KWOK_ANNOTATIONS.endsAfter]: endsAfter };
  const template = {
    metadata: { annotations: outcome },
    spec: { containers: [{ name: "main", image: "main:1" }], restartPolicy: "Never" },
  };
  const job = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, annotations: { [WHOLE_KEY]: "true", ...annotations } },
    spec: { completions, parallelism: completions, backoffLimit: 100, template },
  };
  return job;
}

/** Returns the problems of whole Jobs that remain. `lostMembers`: a member left, or its namespace was deleted. */
export async function restlessJobs(scene: Scene, lostMembers: boolean): Promise<string[]> {
  const { clients, namespace } = scene;
  const { items } = await clients.host.list(jobs, { namespace, labelSelector: WHOLE_KEY });
  const found = await Promise.all(
    (["west", "east"] as const).map(async (member) => {
      const copies = await clients[member].list(jobs, { namespace, labelSelector: HOST_LABEL });
      return copies.items.map((copy) => ({ member, copy }));
    }),
  );
  const held = found.flat();
  const wanted = items.filter(({ metadata }) => metadata.name !== FOREIGN_NAME);
  const uids = new Set(items.map(({ metadata }) => metadata.uid));
  const left = held.filter(({ copy }) => !uids.has(ownerOf(copy)?.uid ?? ""));
  return [
    ...left.map(({ member, copy }) => `Job ${copy.metadata.name}: its copy was left behind in ${member}`),
    ...wanted.flatMap((job) => {
      const copies = held.map(({ copy }) => copy).filter((copy) => ownerOf(copy)?.uid === job.metadata.uid);
      return problemsOf(scene, job, { copies, lostMembers }).map((problem) => `Job ${job.metadata.name}: ${problem}`);
    }),
  ];
}

function problemsOf(
  { ledger }: Scene,
  job: Stored<Job>,
  { copies, lostMembers }: { readonly copies: readonly Stored<Job>[]; readonly lostMembers: boolean },
): string[] {
  const { metadata, status = {}, spec = { template: {} } } = job;
  if (metadata.deletionTimestamp !== undefined) return ["is still being deleted"];
  if (isMarkedTrue(status, "Failed")) {
    const isLost = lostMembers || ledger.lostJobs.has(metadata.name);
    return isLost ? [] : [`failed, though no copy was deleted: ${JSON.stringify(status.conditions)}`];
  }
  if (isMarkedTrue(status, "Complete")) {
    return status.succeeded === spec.completions ? [] : [`complete with ${status.succeeded} of ${spec.completions}`];
  }
  const isDivided = metadata.annotations?.[PREFERENCES_ANNOTATION] !== undefined;
  // A Job that waits in a queue is in no member.
  if (copies.length === 0 && spec.suspend === true && metadata.labels?.[QUEUE_NAME_LABEL] !== undefined) return [];
  if (copies.length === 0 || (!isDivided && copies.length > 1)) return [`has ${copies.length} copies`];
  const problems: string[] = [];
  for (const counter of ["active", "succeeded", "failed"] as const) {
    const sum = copies.reduce((total, copy) => total + (copy.status?.[counter] ?? 0), 0);
    if ((status[counter] ?? 0) !== sum) problems.push(`${counter} is ${status[counter]}, in members ${sum}`);
  }
  if (copies.every(isFinished)) problems.push("has not finished, though its copies have");
  if (copies.some((copy) => copy.spec?.suspend !== spec.suspend)) problems.push("a copy is not suspended as it is");
  return problems;
}
