import { type AccessSpec, CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE, virtualNodeName } from "../../api/keys.ts";
import type { KubeObject, Secret, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes, type Resource, secrets } from "../../kube/resources.ts";
import { credentialsSecretName, hostAccountName } from "../member/access.ts";
import { whyForeign } from "../member/credentials.ts";
import { identifyCommand, identifyMember, type MemberRelation } from "../member/identity.ts";
import { isVirtualNodeOf } from "../member/remove-cluster.ts";
import { Discovery } from "../shared/discovery.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import { COPY_VERBS, findDefined, findTypes, type TypeName } from "../shared/named-types.ts";
import { clusterId, listClusters } from "../shared/reading.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { type AccessWish, accessAfter, requireAccessServer } from "./user-access.ts";

export interface JoinOptions {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Address at which the controller reaches the member. Undefined: as before, or the kubeconfig's. */
  readonly memberServer?: string | undefined;
  /** Address at which the member's pods reach the host's API server. Undefined: as before, or the same for all members. */
  readonly homeApiServer?: string | undefined;
  /** Network in which its pods and those of other clusters reach each other. Empty: none. Undefined: as before. */
  readonly network?: string | undefined;
  /** Types of which the host may have objects in the member, beside those of earlier joins. */
  readonly types: readonly TypeName[];
  /** The host may also create and change the types' CustomResourceDefinitions there. */
  readonly definitions: boolean;
  readonly agent?:
    | {
        /** `HOST:PORT` at which the agent reaches the hub. Undefined: as the first join said. */
        readonly hubAddress: string | undefined;
        readonly image: string;
        /** Pods of the member reach the host's API server through it. False: as before. */
        readonly homeApi: boolean;
      }
    | undefined;
  readonly access?: AccessWish | undefined;
  readonly timeoutMs: number;
  readonly hostName: string;
}

export interface JoinContext extends HostContext {
  /** The member with an administrator's rights. */
  readonly member: Connection;
  /** The ClusterRole of the member-side manifests. */
  readonly role: Manifest;
}

/** The host's answers before a join. */
export interface ValidHost {
  readonly hostId: string;
  /** The Cluster of the name, when there has been a join before. */
  readonly joined: Stored<Cluster> | undefined;
  /** How users of the host reach the member after the join. Undefined: they do not. */
  readonly access: AccessSpec | undefined;
  /** The Secret that the Cluster names, when an operator made it, and why it counts as such. `join` leaves it as it is. */
  readonly operatorsSecret: { readonly name: string; readonly why: string } | undefined;
  /** The member's identity: the uid of its kube-system namespace. Undefined for a member that is not at hand. */
  readonly memberUid?: string;
}

/** Checks everything that can be wrong before the first write. Rejects with `Failure`. */
export async function validateJoin(
  options: JoinOptions,
  context: JoinContext,
): Promise<ValidHost & { readonly types: readonly Resource<KubeObject>[] }> {
  const { name, memberServer, types: typeNames, definitions } = options;
  const { host, member, signal } = context;
  const valid = await validateHost(options, context);
  const { hostId, joined, operatorsSecret } = valid;
  const identity = await identifyMember({ host, member: member.client, hostId, name }, joined, signal);
  const { memberUid, isMember, other } = identity;
  if (joined !== undefined && !isMember) throw notThatMember(joined, identity);
  if (other !== undefined) throw joinedAlready(name, other, { hostId, isTwice: isMember });
  if (operatorsSecret !== undefined && memberServer !== undefined) {
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem: `has credentials of your own, in Secret ${SYSTEM_NAMESPACE}/${operatorsSecret.name} (${operatorsSecret.why})`,
      remedy: "leave out --member-server, and write the address into that Secret's kubeconfig",
    });
  }
  // A member gets definitions that it lacks.
  const types = definitions
    ? await findDefined(host, new Discovery(host, signal), typeNames, { verbs: COPY_VERBS, signal })
    : await findTypes(new Discovery(member.client, signal), typeNames, { cluster: name, verbs: COPY_VERBS });
  return { ...valid, memberUid, types };
}

/** Checks what can be wrong on the host, also before a join whose member is not at hand. Rejects with `Failure`. */
export async function validateHost(
  { name, agent, access: wish }: JoinOptions,
  { host, signal }: HostContext,
): Promise<ValidHost> {
  const hostId = await clusterId(host, signal);
  const joined = (await listClusters(host, signal)).find(({ metadata }) => metadata.name === name);
  if (joined === undefined) {
    await refuseTakenNode(host, name, signal);
    await findJoinSecret(host, name, signal);
  }
  const operatorsSecret = joined && (await findOperatorsSecret(host, joined, signal));
  if (operatorsSecret !== undefined && agent !== undefined) throw noAgentFor(name, operatorsSecret);
  const access = accessAfter(wish, joined);
  if (access !== undefined) await requireAccessServer(host, signal);
  return { hostId, joined, access, operatorsSecret };
}

function noAgentFor(name: string, secret: NonNullable<ValidHost["operatorsSecret"]>): Failure {
  return new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `has credentials of your own, in Secret ${SYSTEM_NAMESPACE}/${secret.name} (${secret.why}), which no agent brings`,
    remedy: `run \`legation unjoin ${name}\` first, or join the member under another name`,
  });
}

function notThatMember(
  { metadata: { name, annotations } }: Stored<Cluster>,
  { memberUid, other }: MemberRelation,
): Failure {
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

/** Returns the Secret that an earlier join of the name stored. Rejects with `Failure` for an operator's own Secret. */
export async function findJoinSecret(
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

/** Returns the Secret that the Cluster names, and why it is not that of `join`. Undefined if it is. */
async function findOperatorsSecret(
  host: ClusterClient,
  { metadata, spec }: Stored<Cluster>,
  signal: AbortSignal,
): Promise<ValidHost["operatorsSecret"]> {
  const { name, key = CLUSTER_DEFAULTS.credentialsKey } = spec.credentialsSecret;
  const wanted = credentialsSecretName(metadata.name);
  if (name !== wanted) return { name, why: `its name is not ${wanted}` };
  if (key !== CLUSTER_DEFAULTS.credentialsKey) return { name, why: `the Cluster names its key ${key}` };
  const found = await host.find(secrets, { namespace: SYSTEM_NAMESPACE, name }, { signal });
  const why = found === undefined ? undefined : whyForeign(found, metadata.name);
  return why === undefined ? undefined : { name, why };
}
