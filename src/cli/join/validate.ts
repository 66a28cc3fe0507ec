import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE, virtualNodeName } from "../../api/keys.ts";
import { type Secret, type Stored, secretText } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { apiVersionOf, nodes, secrets } from "../../kube/resources.ts";
import { credentialsSecretName, findAccount, hostAccountName } from "../member/access.ts";
import { whyForeign } from "../member/credentials.ts";
import { type Identity, identify, identifyCommand } from "../member/identity.ts";
import { isVirtualNodeOf } from "../member/remove-cluster.ts";
import { Discovery } from "../shared/discovery.ts";
import { Failure } from "../shared/failure.ts";
import { clusterId, notInstalled } from "../shared/reading.ts";
import type { Connection, HostContext } from "../shared/session.ts";

/** The facts about a valid join. */
export interface ValidJoin {
  readonly hostId: string;
  /** The member's identity: the uid of its kube-system namespace. */
  readonly memberUid: string;
  /** The Cluster, when this very member has joined under the name before. */
  readonly joined?: Stored<Cluster>;
}

/** Checks everything that can be wrong before the first write. Rejects with `Failure`. */
export async function validateJoin(
  name: string,
  { host, member: { client: member }, signal }: HostContext & { readonly member: Connection },
): Promise<ValidJoin> {
  const hostId = await clusterId(host, signal);
  const served = await new Discovery(host, signal).find(apiVersionOf(clusters), clusters.kind);
  if (served === undefined) throw notInstalled(host);
  const joined = await host.find(clusters, { name }, { signal });
  const identity = await identify({ host, member, hostId, name }, joined, signal);
  const { memberUid, isMember, other } = identity;
  if (joined !== undefined && !isMember) throw notThatMember(joined, identity);
  if (other !== undefined) throw joinedAlready(name, other, { hostId, isTwice: isMember });
  if (joined !== undefined) return { hostId, memberUid, joined };
  await refuseTakenNode(host, name, signal);
  await findLeftover(host, name, signal);
  return { hostId, memberUid };
}

function notThatMember({ metadata: { name, annotations } }: Stored<Cluster>, { memberUid, other }: Identity): Failure {
  const object = `Cluster ${name}`;
  const problem = "has joined already, and is not the cluster of --member-kubeconfig";
  const remedy = `choose another name, or run \`legation unjoin ${name}\` first`;
  if (other !== undefined) {
    return new Failure("refused", {
      object,
      problem: `${problem}: that has joined as ${other}`,
      remedy: `choose ${name}'s context of that kubeconfig with --member-context`,
    });
  }
  const known = annotations?.[MEMBER_UID_ANNOTATION];
  if (known !== undefined) {
    const uids = `its kube-system namespace has uid ${known}, and that cluster's has ${memberUid}`;
    return new Failure("refused", { object, problem: `${problem} (${uids})`, remedy });
  }
  return new Failure("refused", {
    object,
    problem: `${problem} as far as can be seen: this host's access is not there`,
    remedy: `${remedy}; when it is ${name}, and that access was deleted, write \`${identifyCommand(name, memberUid)}\` and join again`,
  });
}

/** Refuses a second name for one member: both Clusters would count its nodes, and place pods over each other's. */
function joinedAlready(
  name: string,
  other: string,
  { hostId, isTwice }: { readonly hostId: string; readonly isTwice: boolean },
): Failure {
  const access = `this host's access there is ServiceAccount ${SYSTEM_NAMESPACE}/${hostAccountName(hostId)}`;
  return new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `this member has joined ${isTwice ? `as ${other}, too` : `already, as ${other}`} (${access})`,
    remedy: isTwice
      ? `run \`legation unjoin\` for one of the two, then join again`
      : `use ${other}, or run \`legation unjoin ${other}\` first`,
  });
}

async function refuseTakenNode(host: ClusterClient, name: string, signal: AbortSignal): Promise<void> {
  const node = await host.find(nodes, { name: virtualNodeName(name) }, { signal });
  if (node === undefined || isVirtualNodeOf(node, name)) return;
  throw new Failure("refused", {
    object: `Node ${virtualNodeName(name)}`,
    problem: "exists on the host and is not Legation's, so there can be no virtual node of that name",
    remedy: "choose another name",
  });
}

/**
 * Returns the credentials that an interrupted join of the name left, which this join may replace. Rejects with `Failure` for an
 * operator's own Secret: once overwritten, it would count as `join`'s, and go at the next unjoin.
 */
export async function findLeftover(
  host: ClusterClient,
  name: string,
  signal: AbortSignal,
): Promise<Stored<Secret> | undefined> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: credentialsSecretName(name) };
  const found = await host.find(secrets, ref, { signal });
  const why = found === undefined ? undefined : whyForeign(found, name);
  if (why === undefined) return found;
  throw new Failure("refused", {
    object: `Secret ${ref.namespace}/${ref.name}`,
    problem: `is there already, and not as \`legation join ${name}\` makes it: ${why}`,
    remedy: "delete it when nothing needs it, or choose another name",
  });
}

/** Returns the refusal of a join whose name a concurrent join took. */
export function forestalled(name: string, cause: unknown): Failure {
  return new Failure("refused", {
    object: `Cluster ${name}`,
    problem: "another `legation join` has taken this name meanwhile",
    remedy: "look at `legation status`; to join this member too, choose another name",
    cause,
  });
}

/** Returns the refusal of a join whose member a concurrent join took under another name. */
export function joinedMeanwhile(name: string, other: string): Failure {
  return new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `another \`legation join\` has joined this member meanwhile, as ${other}`,
    remedy: `look at \`legation status\` and use ${other}; when that one was refused, too, join again`,
  });
}

/**
 * Reports whether the credentials that another join stored lead to this very member, so that its access there is the other join's.
 * True when that is unknown: access that is left does less harm than access that is taken away.
 */
export async function isSameMember(
  credentials: Stored<Secret> | undefined,
  context: Pick<HostContext, "connectText" | "signal"> & {
    readonly member: Pick<Connection, "client">;
    readonly hostId: string;
    readonly name: string;
  },
): Promise<boolean> {
  const { member, hostId, name, connectText, signal } = context;
  const kubeconfig = secretText(credentials, CLUSTER_DEFAULTS.credentialsKey) ?? "";
  try {
    const { client } = await connectText(kubeconfig, name);
    const theirs = await findAccount(client, hostId, signal);
    const ours = await findAccount(member.client, hostId, signal);
    return theirs?.metadata.uid === ours?.metadata.uid;
  } catch {
    return true;
  }
}
