import type { Cluster } from "../../api/cluster.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { Job, KubeEvent, KubeNode, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { type JobShare, membersOfJob, sharesOf } from "../../copies/job-shares.ts";
import { hasStarted, isFinished, isMarkedTrue, isMarkedWhole } from "../../copies/jobs.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { events, jobs, nodes } from "../../kube/resources.ts";
import { jobOfShare } from "../../scheduling/whole/job-division.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { type Outcome, table } from "../shared/output.ts";
import { notOnHost } from "../shared/reading.ts";
import type { Session } from "../shared/session.ts";
import type { Terminal } from "../shared/terminal.ts";
import type { NamedWorkload } from "../simulation/controller-pods.ts";
import { readinessOf, removalOf } from "./clusters.ts";
import { type Trouble, timeOf, troubleText } from "./trouble.ts";

/** A Job that runs whole in a member, as `legation status` shows it: its pods are the member's. */
export interface WholeJobStatus {
  readonly kind: "Job";
  readonly namespace: string;
  readonly name: string;
  readonly whole: true;
  /** The member that has the Job. Undefined: none has it yet, or each has a share. */
  readonly cluster: string | undefined;
  /** Shares of a divided Job, each with what its member reported last. */
  readonly shares: readonly ShareStatus[];
  /** Counters that the member reported last. */
  readonly active: number;
  readonly ready: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Successes that the Job wants. Undefined: the first one is enough. */
  readonly completions: number | undefined;
  readonly started: string | undefined;
  /** Conditions that are True. */
  readonly conditions: readonly JobCondition[];
  /** Why no member takes the Job, in the words of the last event NotPlaced. Undefined once it has started. */
  readonly notPlaced: { readonly at: string; readonly message: string } | undefined;
  readonly troubles: readonly Trouble[];
}

interface ShareStatus {
  readonly cluster: string;
  readonly completions: number;
  readonly parallelism: number;
  readonly active: number;
  readonly ready: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly state: "NotStarted" | "Running" | "Suspended" | "Complete" | "Failed";
}

interface JobCondition {
  readonly type: string;
  readonly since: string;
  readonly why: string;
}

/** The host's objects of one whole Job. */
export interface WholeJobFacts {
  readonly job: Stored<Job>;
  /** Events of the Job. */
  readonly told: readonly KubeEvent[];
  /** Clusters of the Job's members, as far as there are any. */
  readonly clusters?: readonly Stored<Cluster>[];
  readonly nodes?: readonly Stored<KubeNode>[];
}

/** Reports whether admission has marked the workload as a Job that runs whole. */
export function isWholeJob({ kind, metadata }: Pick<WrittenObject, "kind" | "metadata">): boolean {
  return kind === "Job" && isMarkedWhole(metadata.labels);
}

/** Reads a whole Job, its events and its members. Rejects with `Failure` when the host has no such Job, else with KubeError. */
export async function readWholeJob(
  client: ClusterClient,
  { namespace, name }: Pick<NamedWorkload, "namespace" | "name">,
  { signal, terminal }: Pick<Session, "signal" | "terminal">,
): Promise<Outcome> {
  const job = await client.find(jobs, { namespace, name }, { signal });
  if (job === undefined) throw notOnHost(`Job ${namespace}/${name}`);
  const members = membersOfJob(job);
  const [told, found, foundNodes] = await Promise.all([
    listAll(client, events, { namespace, fieldSelector: `involvedObject.uid=${job.metadata.uid}`, signal }),
    Promise.all(members.map((member) => client.find(clusters, { name: member }, { signal }))),
    Promise.all(members.map((member) => client.find(nodes, { name: virtualNodeName(member) }, { signal }))),
  ]);
  const facts = { clusters: found.filter(isThere), nodes: foundNodes.filter(isThere) };
  const status = wholeJobStatus({ job, told, ...facts });
  return { document: status, text: wholeJobText(status, terminal) };
}

function isThere<T>(object: T | undefined): object is T {
  return object !== undefined;
}

/** Computes the status of a whole Job from the host's objects. */
export function wholeJobStatus({
  job,
  told,
  clusters: found = [],
  nodes: foundNodes = [],
}: WholeJobFacts): WholeJobStatus {
  const { metadata, spec, status = {} } = job;
  const { active = 0, ready = 0, succeeded = 0, failed = 0, startTime, conditions = [] } = status;
  const members = membersOfJob(job);
  const shares = (sharesOf(job) ?? []).filter(({ part }) => part !== undefined);
  const isWaiting = shares.length === 0 ? !hasStarted(job) : shares.some((share) => !hasStarted(share));
  const refused = !isWaiting || isFinished(job) ? undefined : lastOf(told, "NotPlaced");
  return {
    kind: "Job",
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    whole: true,
    cluster: shares.length === 0 ? members[0] : undefined,
    shares: shares.map((share) => shareStatus(job, share, shares)),
    active,
    ready,
    succeeded,
    failed,
    completions: spec?.completions,
    started: startTime,
    conditions: conditions
      .filter(({ status: is }) => is === "True")
      .map(({ type, reason, message, lastTransitionTime: since = "" }) => ({
        type,
        since,
        why: [reason, message].filter(Boolean).join(": "),
      })),
    notPlaced: refused && { at: timeOf(refused), message: refused.message ?? "" },
    troubles: [
      ...members.flatMap((member) => {
        const share = shares.find((one) => one.member === member);
        if (share !== undefined && isFinished(share)) return [];
        const cluster = found.find(({ metadata: { name } }) => name === member);
        const node = foundNodes.find(({ metadata: { name } }) => name === virtualNodeName(member));
        return memberTrouble(job, member, cluster, node);
      }),
      ...statusTroubles(job, told),
    ],
  };
}

function shareStatus(job: Stored<Job>, share: JobShare, shares: readonly JobShare[]): ShareStatus {
  const { active = 0, ready = 0, succeeded = 0, failed = 0 } = share.status ?? {};
  const { completions = 0, parallelism = 0 } = jobOfShare(job, share, shares).spec ?? {};
  const ended = (["Failed", "Complete", "Suspended"] as const).find((type) => isMarkedTrue(share.status, type));
  const state = ended ?? (hasStarted(share) ? "Running" : "NotStarted");
  return { cluster: share.member, completions, parallelism, active, ready, succeeded, failed, state };
}

function memberTrouble(
  job: Job,
  member: string,
  cluster: Stored<Cluster> | undefined,
  node: Stored<KubeNode> | undefined,
): Trouble[] {
  if (isFinished(job)) return [];
  if (cluster === undefined) {
    return [{ what: `Cluster ${member}, which had the Job, was removed: the controller ends the Job as Failed` }];
  }
  const removal = removalOf(cluster);
  if (removal !== undefined) return [{ what: `${member} ${removal}` }];
  const { ready, reason } = readinessOf(cluster, node);
  if (ready === "True") return [];
  return [
    {
      what: `${member} is not ready: ${reason}; the Job may run on there, and the status shown is old`,
      remedy: `it does not move; where ${member} is gone for good, \`legation unjoin ${member} --force\` ends it as Failed`,
    },
  ];
}

/** Returns why the status shown may not be the copy's. */
function statusTroubles(job: Job, told: readonly KubeEvent[]): Trouble[] {
  if (isFinished(job)) return [];
  return ["StatusRefused", "StatusContested"].flatMap((reason) => {
    const event = lastOf(told, reason);
    return event === undefined ? [] : [{ what: `${reason} (${timeOf(event)}): ${event.message ?? ""}` }];
  });
}

function lastOf(told: readonly KubeEvent[], reason: string): KubeEvent | undefined {
  return told.filter((event) => event.reason === reason).sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))[0];
}

/** Formats a whole Job's status for people. */
export function wholeJobText(status: WholeJobStatus, terminal: Terminal): string {
  const { namespace, name, cluster, shares, active, ready, succeeded, failed, completions, started, notPlaced } =
    status;
  const divided = shares.map((share) => share.cluster).join(", ");
  const members = divided === "" ? cluster : divided;
  const where =
    members === undefined
      ? "whole Job, in no member yet"
      : `whole Job, ${divided === "" ? "in" : "divided over"} ${members} with its pods`;
  const done = completions === undefined ? `${succeeded} succeeded` : `${succeeded} of ${completions} succeeded`;
  const counts = `${done}, ${failed} failed, ${active} active (${ready} ready)`;
  const waiting = members === undefined ? "no member has it" : `${members} has not started it`;
  return [
    `Job ${namespace}/${name}: ${where}`,
    started === undefined ? waiting : `started ${started}: ${counts}`,
    ...(shares.length === 0 ? [] : [sharesTable(shares, terminal.width)]),
    ...status.conditions.map(({ type, since, why }) => `${type} since ${since}${why === "" ? "" : `: ${why}`}`),
    ...status.troubles.map((trouble) => troubleText(trouble, terminal)),
    ...(notPlaced === undefined
      ? []
      : [
          `${terminal.paint("red", "waits:")} NotPlaced (${notPlaced.at})`,
          ...notPlaced.message.split("; ").map((line) => `  ${line}`),
        ]),
  ].join("\n");
}

function sharesTable(shares: readonly ShareStatus[], width: number): string {
  const rows = shares.map((share) => [
    share.cluster,
    `${share.succeeded} of ${share.completions}`,
    String(share.failed),
    `${share.active} of ${share.parallelism}`,
    String(share.ready),
    share.state,
  ]);
  return table(["CLUSTER", "SUCCEEDED", "FAILED", "ACTIVE", "READY", "STATE"], rows, width);
}
