import type { Cluster } from "../../api/cluster.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { Job, KubeEvent, KubeNode, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { hasStarted, isFinished, isMarkedWhole, memberOfJob } from "../../copies/jobs.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { events, jobs, nodes } from "../../kube/resources.ts";
import type { WrittenObject } from "../shared/documents.ts";
import type { Outcome } from "../shared/output.ts";
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
  /** The member that has the Job. Undefined: none has it yet. */
  readonly cluster: string | undefined;
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
  readonly cluster?: Stored<Cluster> | undefined;
  readonly node?: Stored<KubeNode> | undefined;
}

/** Reports whether admission has marked the workload as a Job that runs whole. */
export function isWholeJob({ kind, metadata }: Pick<WrittenObject, "kind" | "metadata">): boolean {
  return kind === "Job" && isMarkedWhole(metadata.labels);
}

/** Reads a whole Job, its events and its member. Rejects with `Failure` when the host has no such Job, else with KubeError. */
export async function readWholeJob(
  client: ClusterClient,
  { namespace, name }: Pick<NamedWorkload, "namespace" | "name">,
  { signal, terminal }: Session,
): Promise<Outcome> {
  const job = await client.find(jobs, { namespace, name }, { signal });
  if (job === undefined) throw notOnHost(`Job ${namespace}/${name}`);
  const member = memberOfJob(job);
  const [told, cluster, node] = await Promise.all([
    listAll(client, events, { namespace, fieldSelector: `involvedObject.uid=${job.metadata.uid}`, signal }),
    member === undefined ? undefined : client.find(clusters, { name: member }, { signal }),
    member === undefined ? undefined : client.find(nodes, { name: virtualNodeName(member) }, { signal }),
  ]);
  const status = wholeJobStatus({ job, told, cluster, node });
  return { document: status, text: wholeJobText(status, terminal) };
}

/** Computes the status of a whole Job from the host's objects. */
export function wholeJobStatus({ job, told, cluster, node }: WholeJobFacts): WholeJobStatus {
  const { metadata, spec, status = {} } = job;
  const { active = 0, ready = 0, succeeded = 0, failed = 0, startTime, conditions = [] } = status;
  const member = memberOfJob(job);
  const refused = hasStarted(job) || isFinished(job) ? undefined : lastOf(told, "NotPlaced");
  return {
    kind: "Job",
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    whole: true,
    cluster: member,
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
      ...(member === undefined ? [] : memberTrouble(job, member, cluster, node)),
      ...statusTroubles(job, told),
    ],
  };
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
  const { namespace, name, cluster, active, ready, succeeded, failed, completions, started, notPlaced } = status;
  const where = cluster === undefined ? "whole Job, in no member yet" : `whole Job, in ${cluster} with its pods`;
  const done = completions === undefined ? `${succeeded} succeeded` : `${succeeded} of ${completions} succeeded`;
  const counts = `${done}, ${failed} failed, ${active} active (${ready} ready)`;
  const waiting = cluster === undefined ? "no member has it" : `${cluster} has not started it`;
  return [
    `Job ${namespace}/${name}: ${where}`,
    started === undefined ? waiting : `started ${started}: ${counts}`,
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
