import { CLUSTER_ANNOTATION, SHARES_ANNOTATION, WHOLE_FINALIZER, WHOLE_KEY, WHOLE_MANAGED_BY } from "../../api/keys.ts";
import type { CronJob, Job, Stored } from "../../api/kubernetes.ts";
import { isFinished } from "../../copies/jobs.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { cronJobs, jobs } from "../../kube/resources.ts";
import { namespacedName } from "../shared/reading.ts";
import { dropFinalizer, remove, unlessGone } from "../shared/removal.ts";
import { untilReleased } from "./after-admission.ts";

/** Lists every Job that has Legation's label, finalizer or `spec.managedBy`, even without the others. */
export function listMarkedJobs(host: ClusterClient, signal: AbortSignal): Promise<Stored<Job>[]> {
  return listAll(host, jobs, { signal }, isMarked);
}

function isMarked(job: Stored<Job>): boolean {
  const { labels, finalizers = [] } = job.metadata;
  if (labels?.[WHOLE_KEY] !== undefined || finalizers.includes(WHOLE_FINALIZER)) return true;
  // A finished Job that was released keeps the field.
  return job.spec?.managedBy === WHOLE_MANAGED_BY && !isFinished(job);
}

/** Releases a whole Job. Deletes one that has not finished: nothing runs it here, since `spec.managedBy` never changes. */
export async function releaseJob(host: ClusterClient, job: Stored<Job>, signal: AbortSignal): Promise<void> {
  await untilReleased(`Job ${namespacedName(job)}`, () => release(host, job, signal), signal);
}

async function release(host: ClusterClient, job: Stored<Job>, signal: AbortSignal): Promise<boolean> {
  const { name, namespace = "", uid } = job.metadata;
  const ref = { namespace, name };
  if (!isFinished(job)) await remove(host, jobs, ref, { uid, signal });
  const isReleased = await dropFinalizer(host, jobs, job, WHOLE_FINALIZER, signal);
  if (!isReleased || !isFinished(job)) return isReleased;
  const annotations = { [CLUSTER_ANNOTATION]: null, [SHARES_ANNOTATION]: null };
  const body = { metadata: { uid, labels: { [WHOLE_KEY]: null }, annotations } };
  const after = await unlessGone(host.patch(jobs, ref, { type: "merge", body }, { signal }));
  return after?.metadata.labels?.[WHOLE_KEY] === undefined;
}

/** Removes the marks from the Job templates of CronJobs: this cluster runs their next Jobs. Resolves to the changed CronJobs. */
export async function unmarkCronJobs(host: ClusterClient, signal: AbortSignal): Promise<string[]> {
  const marked = await listAll(host, cronJobs, { signal }, makesWhole);
  for (const cronJob of marked) {
    await untilReleased(`CronJob ${namespacedName(cronJob)}`, () => unmark(host, cronJob, signal), signal);
  }
  return marked.map(namespacedName);
}

function makesWhole({ spec }: CronJob): boolean {
  return spec?.jobTemplate.spec?.managedBy === WHOLE_MANAGED_BY;
}

async function unmark(host: ClusterClient, { metadata }: Stored<CronJob>, signal: AbortSignal): Promise<boolean> {
  const { name, namespace = "", uid } = metadata;
  const jobTemplate = { metadata: { labels: { [WHOLE_KEY]: null } }, spec: { managedBy: null } };
  const body = { metadata: { uid }, spec: { jobTemplate } };
  const after = await unlessGone(host.patch(cronJobs, { namespace, name }, { type: "merge", body }, { signal }));
  return after === undefined || !makesWhole(after);
}
