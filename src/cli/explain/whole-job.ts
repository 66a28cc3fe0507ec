import type { Job, KubeEvent, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { jobs } from "../../kube/resources.ts";
import { hasStarted, isFinished } from "../../whole/jobs/kind.ts";
import { type ShareStatus, sharesStatus, trueConditions } from "../../whole/jobs/progress.ts";
import { membersOfJob } from "../../whole/jobs/shares.ts";
import { JOBS } from "../../whole/jobs/type.ts";
import { hiddenLine, MEMBERS } from "../shared/hidden.ts";
import { readable } from "../shared/reading.ts";
import type { NamedWorkload } from "../simulation/controller-pods.ts";
import { lastOf, lastTimeOf } from "./events.ts";
import { findMembers, type HostMembers, memberAmong, notReady, removing } from "./members.ts";
import type { Trouble } from "./model.ts";
import { readWhole, toldTroubles } from "./whole.ts";

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
  /** Words for what is not shown, since the account may not read it. */
  readonly hidden?: string | undefined;
}

interface JobCondition {
  readonly type: string;
  readonly since: string;
  readonly why: string;
}

/** The host's objects of one whole Job. `clusters`: absent where they may not be read. */
export interface WholeJobFacts extends Partial<HostMembers> {
  readonly job: Stored<Job>;
  readonly told: readonly KubeEvent[];
}

/** Reads a whole Job, its events and its members. Rejects with `Failure` when the host has no such Job, else with KubeError. */
export async function readWholeJob(
  client: ClusterClient,
  { namespace, name }: Pick<NamedWorkload, "namespace" | "name">,
  signal: AbortSignal,
): Promise<WholeJobStatus> {
  const { object, told, facts } = await readWhole(
    client,
    { resource: jobs, ref: { namespace, name } },
    (job) => readable(findMembers(client, membersOfJob(job), signal)),
    signal,
  );
  return {
    ...wholeJobStatus({ job: object, told, ...facts }),
    hidden: hiddenLine(facts === undefined ? [MEMBERS] : []),
  };
}

/** Computes the status of a whole Job from the host's objects. */
export function wholeJobStatus({ job, told, clusters, nodes = [] }: WholeJobFacts): WholeJobStatus {
  const { metadata, spec, status = {} } = job;
  const { active = 0, ready = 0, succeeded = 0, failed = 0, startTime } = status;
  const members = membersOfJob(job);
  const shares = sharesStatus(job);
  const isWaiting = shares.length === 0 ? !hasStarted(job) : shares.some(({ state }) => state === "NotStarted");
  const isOver = isFinished(job);
  const refused = !isWaiting || isOver ? undefined : lastOf(told, "NotPlaced");
  return {
    kind: "Job",
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    whole: true,
    cluster: shares.length === 0 ? members[0] : undefined,
    shares,
    active,
    ready,
    succeeded,
    failed,
    completions: spec?.completions,
    started: startTime,
    conditions: trueConditions(status).map(({ type, reason, message, lastTransitionTime: since = "" }) => ({
      type,
      since,
      why: [reason, message].filter(Boolean).join(": "),
    })),
    notPlaced: refused && { at: lastTimeOf(refused), message: refused.message ?? "" },
    troubles: isOver
      ? []
      : [
          ...(clusters === undefined ? [] : members)
            .filter((member) => !JOBS.isFinishedIn(job, member))
            .flatMap((member) => memberTrouble(member, { clusters: clusters ?? [], nodes })),
          // The status shown may not be the copy's.
          ...toldTroubles(told, ["StatusRefused", "StatusContested"]),
        ],
  };
}

function memberTrouble(name: string, members: HostMembers): Trouble[] {
  const member = memberAmong(members, name);
  if (member === undefined) {
    return [{ what: `Cluster ${name}, which had the Job, was removed: the controller ends the Job as Failed` }];
  }
  const removal = removing(member.cluster);
  if (removal !== undefined) return [removal];
  const found = notReady(member.cluster, member.node, "the Job may run on there, and the status shown is old");
  if (found === undefined) return [];
  const remedy = `it does not move; where ${name} is gone for good, \`legation unjoin ${name} --force\` ends it as Failed`;
  return [{ ...found, remedy }];
}
