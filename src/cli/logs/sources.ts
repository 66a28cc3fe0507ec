import type { Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Job, KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { standsFor } from "../../copies/copy-metadata.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { findByList, listAll, type Selection } from "../../kube/list.ts";
import { jobs, pods, type Resource } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import { SILENT_LOG } from "../../telemetry/silent-log.ts";
import { isMarkedWhole } from "../../whole/jobs/kind.ts";
import { membersOfJob } from "../../whole/jobs/shares.ts";
import { credentialsSecretName } from "../member/access.ts";
import { storedConnection } from "../member/credentials.ts";
import { Failure } from "../shared/failure.ts";
import type { Gaps } from "../shared/gaps.ts";
import { readable } from "../shared/reading.ts";
import type { ClusterChoice, Connection, Session } from "../shared/session.ts";
import { hostContext } from "../shared/session.ts";

/** A cluster that has pods of the Job: a member that has a copy of it, or the host, whose virtual nodes serve the logs of proxies. */
export interface LogSource {
  readonly name: string;
  readonly client: ClusterClient;
  readonly isHost: boolean;
}

/** The user's way to members: a kubeconfig, else the host's API server, else the credentials that the host has of them. */
export interface MemberAccess {
  readonly host: Connection;
  readonly choice: ClusterChoice;
  readonly memberKubeconfig?: string | undefined;
  readonly session: Session;
}

// Deadline of each request that finds the Job's pods.
const LIST_TIMEOUT_MS = 10_000;

/** Returns the clusters that have the Job's pods: the host's own for a Job that is not whole. */
export function placesOf(job: Job): readonly string[] {
  if (!isMarkedWhole(job.metadata?.labels)) return [HOST];
  return membersOfJob(job);
}

// No Cluster can have this name.
const HOST = "(host)";

/** Opens one of `placesOf`. Rejects with `Failure` if the user has no way into the member. */
export async function openSource(name: string, access: MemberAccess): Promise<LogSource> {
  const { host, choice, memberKubeconfig: kubeconfig, session } = access;
  if (name === HOST) return { name: "host", client: host.client, isHost: true };
  if (kubeconfig !== undefined) {
    const { client } = await session.connect({ kubeconfig, preferredContext: name }, name);
    return { name, client, isHost: false };
  }
  const cluster = await readable(host.client.find(clusters, { name }, { signal: session.signal }));
  const client =
    cluster?.spec.access === undefined
      ? (await withStoredCredentials(name, cluster, access)).client
      : await session.openReading(choice, name);
  return { name, client, isHost: false };
}

/** Opens a place by `open`. Tells of one that cannot be opened, and resolves to undefined. */
export async function openOrTell(
  place: string,
  open: (place: string) => Promise<LogSource>,
  gaps: Gaps,
): Promise<LogSource | undefined> {
  try {
    return await open(place);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    gaps.addFailure(place, error);
    return undefined;
  }
}

async function withStoredCredentials(
  name: string,
  cluster: Stored<Cluster> | undefined,
  { host, session }: MemberAccess,
): Promise<Connection> {
  const own =
    `give a kubeconfig of your own with a context ${name}: --member-kubeconfig FILE; there you need the role view in the same ` +
    `namespace. Or have an administrator open the member to users: \`legation join ${name} --access\``;
  try {
    const connection = await storedConnection(hostContext(host, session), name, cluster);
    if (connection !== undefined) return connection;
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    const problem = `you may not read the host's credentials for it (${error.verb} ${error.target}), which are for all of its namespaces`;
    throw new Failure("failure", { object: name, problem, remedy: own, cause: error });
  }
  const problem = `the host has no usable credentials for it, such as the Secret ${SYSTEM_NAMESPACE}/${credentialsSecretName(name)}`;
  const remedy = `\`legation status\` says whether it left, or is reached by its agent alone; or ${own}`;
  throw new Failure("failure", { object: name, problem, remedy });
}

/** Reports whether a Job of some cluster is the host's Job itself or its copy. */
export function isRunOf(found: Stored<Job>, job: Stored<Job>): boolean {
  return found.metadata.uid === job.metadata.uid || standsFor(found, job);
}

/** Selects the object of this name. */
export function named({ metadata: { namespace = "", name } }: Stored<KubeObject>): Selection {
  return { namespace, fieldSelector: `metadata.name=${name}` };
}

/** Selects the pods of a Job of the same cluster. */
export function podsOf({ metadata: { namespace = "" }, spec }: Stored<Job>): Selection {
  const labels = Object.entries(spec?.selector?.matchLabels ?? {});
  return { namespace, labelSelector: labels.map(([key, value]) => `${key}=${value}`).join(",") };
}

/** Follows objects of a cluster, and tells when it does not answer. */
export function watched<T extends KubeObject>(
  { name, client }: LogSource,
  resource: Resource<T>,
  selection: Selection,
  { clock, gaps }: { readonly clock: Clock; readonly gaps: Gaps },
  onEvent: (event: ReflectorEvent<T>) => void,
): Reflector<T> {
  const onState = (): void => {
    const { failing } = reflector;
    if (failing !== undefined) gaps.note(`${name} does not answer, and is asked again: ${failing.reason}`);
  };
  const options = { client, resource, ...selection, clock, log: SILENT_LOG, onEvent, onState };
  const reflector: Reflector<T> = new Reflector(options);
  reflector.start();
  return reflector;
}

/** Lists the pods of the host's Job in one cluster. Undefined if it has no copy, or one of another host or an earlier Job. */
export async function listPodsOf(
  source: LogSource,
  job: Stored<Job>,
  signal: AbortSignal,
): Promise<readonly Stored<Pod>[] | undefined> {
  const { namespace = "", name } = job.metadata;
  const found = await findByList(source.client, jobs, { namespace, name }, signal);
  return found !== undefined && isRunOf(found, job) ? listSelected(source, podsOf(found), signal) : undefined;
}

/** Lists selected pods of one cluster, oldest first. */
export async function listSelected(
  { client }: LogSource,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly Stored<Pod>[]> {
  const options = { dropManagedFields: true, timeoutMs: LIST_TIMEOUT_MS, signal };
  const age = ({ metadata }: Stored<Pod>): string => `${metadata.creationTimestamp} ${metadata.name}`;
  return (await listAll(client, pods, { ...selection, ...options })).sort((a, b) => (age(a) < age(b) ? -1 : 1));
}

/** Returns the name of a pod's log: `west/sweep-x7k2p`. */
export function logName({ name, isHost }: LogSource, pod: Stored<Pod>): string {
  const cluster = isHost ? (memberOf(pod) ?? name) : name;
  return `${cluster}/${pod.metadata.name}`;
}
