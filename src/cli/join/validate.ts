import type { Cluster } from "../../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE, virtualNodeName } from "../../api/keys.ts";
import type { Secret, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { apiVersionOf, nodes, secrets } from "../../kube/resources.ts";
import { notInstalled } from "../clusters.ts";
import type { Discovery } from "../discovery/discovery.ts";
import { Failure } from "../failure.ts";
import { clusterId } from "../identity.ts";
import { whyForeign } from "../member/credentials.ts";
import { type Asked, hasJoined, identifyCommand, otherJoined, refuseHostItself } from "../member/joined.ts";
import { credentialsSecretName, hostAccountName } from "../member/names.ts";
import { isVirtualNodeOf } from "../member/remove-cluster.ts";

export interface Validation {
  readonly host: ClusterClient;
  readonly hostDiscovery: Discovery;
  readonly member: ClusterClient;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** The facts about a valid join. */
export interface Joining {
  readonly hostId: string;
  /** The member's identity. */
  readonly memberUid: string;
  /** The Cluster, when this very member has joined under the name before. */
  readonly joined?: Stored<Cluster>;
}

/** Everything that can be wrong before anything is made. */
export async function validateJoin({ host, hostDiscovery, member, name, signal }: Validation): Promise<Joining> {
  const hostId = await clusterId(host, signal);
  if ((await hostDiscovery.find(apiVersionOf(clusters), clusters.kind)) === undefined) {
    throw notInstalled(host);
  }
  const memberUid = await clusterId(member, signal);
  refuseHostItself({ memberUid, hostId, name });
  const asked: Asked = { host, member, hostId, name };
  const joined = await host.find(clusters, { name }, { signal });
  if (joined !== undefined) {
    if (await hasJoined(joined, { ...asked, memberUid }, signal)) return { hostId, memberUid, joined };
    throw notThatMember(joined, { memberUid, other: await otherJoined(asked, signal) });
  }
  await refuseTakenNode(host, name, signal);
  await findLeftover(host, name, signal);
  await refuseSecondJoin(asked, signal);
  return { hostId, memberUid };
}

function notThatMember(
  { metadata: { name, annotations } }: Stored<Cluster>,
  { memberUid, other }: { readonly memberUid: string; readonly other: string | undefined },
): Failure {
  const object = `Cluster ${name}`;
  const problem = "has joined already, and is not the cluster of --member-kubeconfig";
  const remedy = `choose another name, or run \`legation unjoin ${name}\` first`;
  if (other !== undefined) {
    const chooseContext = `choose ${name}'s context of that kubeconfig with --member-context`;
    return new Failure("refused", {
      object,
      problem: `${problem}: that has joined as ${other}`,
      remedy: chooseContext,
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
    remedy: `${remedy}; when it is ${name}, and somebody deleted that access, write \`${identifyCommand(name, memberUid)}\` and join again`,
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
 * The credentials that an interrupted join of the name has left, which this one may replace. Rejects with Failure `refused` when
 * somebody else made the Secret: written over, it would count as made by `join`, and go at the next unjoin.
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

async function refuseSecondJoin(asked: Asked, signal: AbortSignal): Promise<void> {
  const { hostId, name } = asked;
  const other = await otherJoined(asked, signal);
  if (other === undefined) return;
  throw new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `this member has joined already, as ${other} (this host's access there is ServiceAccount ${SYSTEM_NAMESPACE}/${hostAccountName(hostId)})`,
    remedy: `use ${other}, or run \`legation unjoin ${other}\` first`,
  });
}
