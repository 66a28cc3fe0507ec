import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION, PROXY_LABEL } from "../../api/keys.ts";
import type { KubeObject, ObjectMeta, Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { namespaces, pods } from "../../kube/resources.ts";
import { controllerOf, isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { objectOf } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { hiddenLine, ofViewers } from "../shared/hidden.ts";
import type { OpenMember } from "../shared/open-member.ts";
import { notOnHost, readable } from "../shared/reading.ts";
import { WORKLOAD_RESOURCES, workloadKind } from "../simulation/workloads.ts";
import { readEvents } from "./events.ts";
import { findMembers, memberAmong } from "./members.ts";
import { type OwnWorkload, ownWorkloadOf } from "./not-delegated.ts";
import { type Journey, journeyOf, type Own } from "./pod.ts";
import { memberTroubles } from "./trouble.ts";

/** A pod of the host, with its life so far. */
export interface PodJourney {
  readonly pod: Stored<Pod>;
  readonly journey: Journey;
}

interface PodRef {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Reads a pod, its events, the state of its member and, by `open`, when its delegate was made. Rejects with `Failure` when the host
 * has no such pod, else with KubeError.
 */
export async function readJourney(
  client: ClusterClient,
  ref: PodRef,
  { open, signal }: { readonly open: OpenMember; readonly signal: AbortSignal },
): Promise<PodJourney> {
  const { namespace, name } = ref;
  const pod = await client.find(pods, ref, { signal });
  if (pod === undefined) throw notOnHost(`pod ${namespace}/${name}`);
  const [told, own, member, delegateMade] = await Promise.all([
    readEvents(client, pod, signal),
    readOwn(client, pod, signal),
    readMember(client, pod, signal),
    readDelegateMade(pod, open, signal),
  ]);
  return { pod, journey: journeyOf(pod, told, own, { ...member, delegateMade }) };
}

async function readOwn(client: ClusterClient, pod: Stored<Pod>, signal: AbortSignal): Promise<Own> {
  const { labels, namespace: name = "" } = pod.metadata;
  if (labels?.[PROXY_LABEL] !== undefined) return {};
  const namespace = await readable(client.find(namespaces, { name }, { signal }));
  return { namespace, workload: await readOwnWorkload(client, pod, signal) };
}

/** Reads the troubles of the member that Legation recorded for the pod. Rejects with KubeError. */
export async function readMember(
  host: ClusterClient,
  pod: Stored<Pod>,
  signal: AbortSignal,
): Promise<Pick<Journey, "troubles" | "notRead">> {
  const name = pod.metadata.annotations?.[CLUSTER_ANNOTATION] === undefined ? undefined : memberOf(pod);
  if (name === undefined || isTerminal(pod)) return { troubles: [] };
  const found = await readable(findMembers(host, [name], signal));
  if (found === undefined) return { troubles: [], notRead: hiddenLine([ofViewers(`whether ${name} is ready`)]) };
  const member = memberAmong(found, name);
  return { troubles: member === undefined ? [] : memberTroubles(pod, member.cluster, member.node) };
}

// A Deployment owns ReplicaSets, a CronJob owns Jobs. Hand-written owner references may form a cycle.
const LEVELS = 2;

/**
 * Returns the outermost of Kubernetes' own workloads above a pod, which is the one that authors annotate. Undefined when there is
 * none, and where the workload is gone or the account may not read it. Rejects with KubeError.
 */
export async function readOwnWorkload(
  client: ClusterClient,
  pod: Stored<Pod>,
  signal: AbortSignal,
): Promise<OwnWorkload | undefined> {
  const { namespace = "" } = pod.metadata;
  let found: OwnWorkload | undefined;
  let metadata: ObjectMeta = pod.metadata;
  for (let level = 0; level < LEVELS; level++) {
    const owner = controllerOf({ metadata });
    const kind = owner === undefined ? undefined : workloadKind(owner);
    // A pod that creates pods (a Spark driver) has no template.
    if (owner === undefined || kind === undefined || kind === "Pod") return found;
    const { name } = owner;
    const reading = client.find(WORKLOAD_RESOURCES[kind], { namespace, name }, { signal });
    const stored: Stored<KubeObject> | undefined = await readable(reading);
    if (stored?.metadata.uid !== owner.uid) return found;
    found = ownWorkloadOf(objectOf(stored, `${kind} ${namespace}/${name}`), kind);
    metadata = stored.metadata;
  }
  return found;
}

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
// A member that does not answer must not keep the rest of a pod's way waiting.
const WITHIN_MS = 3_000;

/**
 * Reads when a pod's delegate was made, by its member's clock, with the user's own rights there; RFC 3339. Undefined: there is no
 * delegate, or the user has no way to it. Rejects with the signal's reason.
 */
export async function readDelegateMade(
  { metadata }: Stored<Pod>,
  open: OpenMember,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = "", name, annotations = {} } = metadata;
  const { [CLUSTER_ANNOTATION]: member, [DELEGATE_UID_ANNOTATION]: uid } = annotations;
  if (member === undefined || uid === undefined) return undefined;
  const within = AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MS)]);
  try {
    const client = await open(member);
    const found = await client.find(pods, { namespace, name }, { signal: within });
    const { creationTimestamp: made = "" } = found?.metadata ?? {};
    const isTime = TIMESTAMP.test(made) && !Number.isNaN(Date.parse(made));
    return found?.metadata.uid === uid && isTime ? made : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (within.aborted || isKubeError(error) || error instanceof Failure) return undefined;
    throw error;
  }
}
