import { Argument } from "commander";
import { z } from "zod";
import { delegationModeOf } from "../../api/delegation-mode.ts";
import type { KubeEvent, Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { events, pods as podResource } from "../../kube/resources.ts";
import { isDeleting } from "../../pods/phase.ts";
import { Failure } from "../failure.ts";
import { flag } from "../flag.ts";
import { toggle } from "../flags.ts";
import { type GlobalInput, withGlobals } from "../global-input.ts";
import type { Outcome } from "../output.ts";
import { admitPod } from "../plan/admission.ts";
import { isMakerOf, isPodOf, makerOf, missingOrdinal, type NamedWorkload, podOf } from "../plan/controller-pods.ts";
import { objectOf, type WrittenObject } from "../plan/documents.ts";
import { readClaims, readHost } from "../plan/read-host.ts";
import type { HostState } from "../plan/simulation.ts";
import { outerMetadata, podsOf, WORKLOAD_RESOURCES, type WorkloadKind, type WorkloadPods } from "../plan/workloads.ts";
import type { Connection, Session } from "../session.ts";
import { showFollowing } from "../status/screen.ts";
import { timeOf } from "../status/trouble.ts";
import { lastRunOf, podsWanted, runsOf } from "../status/wanted.ts";
import { type WorkloadFacts, workloadStatus } from "../status/workload.ts";
import { workloadText } from "../status/workload-text.ts";
import type { Subcommand } from "../subcommand.ts";
import { asViewer } from "../viewer.ts";

interface StatusWorkloadInput extends GlobalInput {
  readonly watch: boolean;
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** `legation status deployment`, or that of another kind of workload. */
export function statusWorkloadCommand(kind: WorkloadKind): Subcommand<StatusWorkloadInput> {
  const name = kind.toLowerCase();
  const { plural } = WORKLOAD_RESOURCES[kind];
  return {
    description:
      `Shows for one ${kind} how many pods its scheduling preferences give to each member and how many that has, their ` +
      "phases, why one more would not go there, and what pods without a member wait for, member by member. All of it is " +
      "read from the host.",
    arguments: [new Argument("<name>", `name of one of the host's ${plural}`)],
    flags: [flag("-n, --namespace <name>", "its namespace (default: the context's)")],
    examples: [
      [`status ${name} web -n shop`, "its division and its pods"],
      [`status ${name} web -n shop -w`, "follow it"],
      [`status ${name} web -n shop -o json | jq .pending`, "what waits, for a script"],
    ],
    input: withGlobals({ watch: toggle, name: z.string(), namespace: z.string().optional() }),
    run: async (options, session) => {
      const connection = await session.connect(options, "host");
      const workload = { kind, namespace: options.namespace ?? connection.namespace, name: options.name };
      await showFollowing(options, session, POLL_MS, () => asViewer(readWorkload(workload, connection, session)));
    },
  };
}

// All proxies of the host are read each time.
const POLL_MS = 5000;

async function readWorkload(
  workload: NamedWorkload,
  { client }: Connection,
  { signal, terminal }: Session,
): Promise<Outcome> {
  const { namespace, kind } = workload;
  const object = await readObject(client, workload, signal);
  if (object === undefined) {
    throw new Failure("failure", {
      object: `${kind} ${namespace}/${workload.name}`,
      problem: "is not on the host",
      remedy: "check its name and namespace (-n)",
    });
  }
  const [runs, all, refusals, known, claims] = await Promise.all([
    readRuns(client, object, workload, signal),
    listAll(client, podResource, { namespace, signal }),
    listAll(client, events, { namespace, fieldSelector: "reason=FailedCreate", signal }),
    readHost(client, signal),
    readClaims(client, [object], namespace, signal),
  ]);
  const host = { ...known, claims };
  const spec = podsOf(object, kind);
  const pods = all.filter((pod) => isPodOf(workload, pod));
  const facts = {
    ...workload,
    replicas: podsWanted(object, kind, runs),
    pods,
    metadata: outerMetadata(object, kind),
    template: spec.metadata,
    paused: spec.paused,
    refusals: refusals.filter((event) => isAtWork(workload, object, runs, event)),
    ...nextPod(workload, spec, pods, host),
  };
  const status = workloadStatus(facts, host, Date.now());
  return { document: status, text: workloadText(status, terminal) };
}

async function readObject(
  client: ClusterClient,
  { kind, namespace, name }: NamedWorkload,
  signal: AbortSignal,
): Promise<WrittenObject | undefined> {
  const stored = await client.find(WORKLOAD_RESOURCES[kind], { namespace, name }, { signal });
  return stored === undefined ? undefined : objectOf(stored, `${kind} ${namespace}/${name}`);
}

/** A CronJob's Jobs that are under way; none of any other workload. */
async function readRuns(
  client: ClusterClient,
  object: WrittenObject,
  { kind, namespace }: NamedWorkload,
  signal: AbortSignal,
): Promise<WrittenObject[]> {
  const names = kind === "CronJob" ? runsOf(object) : [];
  const found = names.map((name) => readObject(client, { kind: "Job", namespace, name }, signal));
  return (await Promise.all(found)).filter((run) => run !== undefined);
}

/** Reports whether an event concerns the current creator of pods, and not an earlier run of a CronJob. */
function isAtWork(
  workload: NamedWorkload,
  object: WrittenObject,
  runs: readonly WrittenObject[],
  event: KubeEvent,
): boolean {
  const { involvedObject: maker = {} } = event;
  if (workload.kind !== "CronJob") return isMakerOf(workload, maker);
  if (maker.kind === "Job") return runs.some(({ metadata }) => metadata.name === maker.name);
  // The CronJob's own event: the Job itself could not be created.
  return isMakerOf(workload, maker) && Date.parse(timeOf(event)) > lastRunOf(object, runs);
}

/** Returns the workload's next pod and its claims after admission. Undefined when it would not be delegated. */
function nextPod(
  workload: NamedWorkload,
  spec: WorkloadPods,
  pods: readonly Stored<Pod>[],
  { namespaces }: HostState,
): Pick<WorkloadFacts, "next" | "nextClaims"> {
  const namespace = namespaces.find(({ metadata }) => metadata.name === workload.namespace);
  const mode = delegationModeOf(namespace?.metadata.labels);
  if (mode === undefined) return {};
  // The ReplicaSet of the Deployment's current template.
  const maker = makerOf(pods.filter((pod) => !isDeleting(pod)));
  const index = workload.kind === "StatefulSet" ? missingOrdinal(pods, spec.firstOrdinal) : pods.length;
  const admitted = admitPod(podOf(workload, spec, index, maker), mode);
  if (admitted.denied !== undefined || admitted.delegated !== true) return {};
  const { claims = [] } = spec;
  const own = claims.map((claim) => ({ ...claim, name: `${claim.name}-${workload.name}-${index}` }));
  return { next: admitted.object, nextClaims: own };
}
