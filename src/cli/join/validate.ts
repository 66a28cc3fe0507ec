import { ACCESS_NAMESPACE, ACCESS_PREFIX_DEFAULT } from "../../api/access.ts";
import type { AccessSpec, Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, virtualNodeName } from "../../api/keys.ts";
import type { KubeObject, Secret, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { namespaces, nodes, type Resource, secrets } from "../../kube/resources.ts";
import { credentialsSecretName } from "../member/access.ts";
import { findMemberSecret, type MemberSecret, whyForeign } from "../member/credentials.ts";
import { identifyMember, notThatMember } from "../member/identity.ts";
import { isVirtualNodeOf } from "../member/virtual-node.ts";
import { Discovery } from "../shared/discovery.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import { COPY_VERBS, findDefined, findTypes, type TypeName } from "../shared/named-types.ts";
import { clusterId, listClusters } from "../shared/reading.ts";
import type { Connection, HostContext } from "../shared/session.ts";

/** The flags of `legation join`. Settings that are undefined or false stay as they were joined. */
export interface JoinOptions {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly memberServer?: string | undefined;
  readonly homeApiServer?: string | undefined;
  /** Network in which its pods and those of other clusters reach each other. Empty: none. */
  readonly network?: string | undefined;
  readonly types: readonly TypeName[];
  readonly definitions: boolean;
  readonly agent: boolean;
  readonly hubAddress?: string | undefined;
  readonly agentImage?: string | undefined;
  readonly homeApiThroughAgent: boolean;
  readonly access: boolean;
  readonly accessPrefix?: string | undefined;
  readonly removeAccess: boolean;
  /** Milliseconds. */
  readonly timeout: number;
}

export interface JoinContext extends HostContext {
  readonly hostName: string;
  /** The ClusterRole of the member-side manifests. */
  readonly role: Manifest;
}

export interface MemberContext extends JoinContext {
  /** The member with an administrator's rights. */
  readonly member: Connection;
}

/** The host's answers before a join. */
export interface ValidHost {
  readonly hostId: string;
  /** The Cluster of the name, when there has been a join before. */
  readonly joined: Stored<Cluster> | undefined;
  /** How users of the host reach the member after the join. Undefined: they do not. */
  readonly access: AccessSpec | undefined;
  /** The Secret that the Cluster names, when an operator made it. `join` leaves it as it is. */
  readonly operatorsSecret: MemberSecret | undefined;
  /** The member's identity: the uid of its kube-system namespace. Undefined for a member that is not at hand. */
  readonly memberUid?: string;
}

/** Checks everything that can be wrong before the first write. Rejects with `Failure`. */
export async function validateJoin(
  options: JoinOptions,
  context: MemberContext,
): Promise<ValidHost & { readonly types: readonly Resource<KubeObject>[] }> {
  const { name, memberServer, types: typeNames, definitions } = options;
  const { host, member, signal } = context;
  const valid = await validateHost(options, context);
  const { hostId, joined, operatorsSecret } = valid;
  const asked = { host, member: member.client, hostId, name };
  const relation = await identifyMember(asked, joined, signal);
  const { memberUid, isMember, other } = relation;
  if (joined !== undefined && !isMember) {
    const or = `choose another name, or run \`legation unjoin ${name}\` first`;
    throw notThatMember(asked, joined, relation, or);
  }
  if (other !== undefined) {
    // Both Clusters would count its nodes, and place pods over each other's.
    const [as, remedy] = isMember
      ? [`as ${other}, too`, "run `legation unjoin` for one of the two, then join again"]
      : [`already, as ${other}`, `use ${other}, or run \`legation unjoin ${other}\` first`];
    throw new Failure("refused", { object: `Cluster ${name}`, problem: `this member has joined ${as}`, remedy });
  }
  if (operatorsSecret !== undefined && memberServer !== undefined) {
    const remedy = "leave out --member-server, and write the address into that Secret's kubeconfig";
    throw ownCredentials(name, operatorsSecret, "", remedy);
  }
  // A member gets definitions that it lacks.
  const types = definitions
    ? await findDefined(host, new Discovery(host, signal), typeNames, { verbs: COPY_VERBS, signal })
    : await findTypes(new Discovery(member.client, signal), typeNames, { cluster: name, verbs: COPY_VERBS });
  return { ...valid, memberUid, types };
}

/** Checks what can be wrong on the host, also before a join whose member is not at hand. Rejects with `Failure`. */
export async function validateHost(options: JoinOptions, { host, signal }: HostContext): Promise<ValidHost> {
  const { name } = options;
  const hostId = await clusterId(host, signal);
  const joined = (await listClusters(host, signal)).find(({ metadata }) => metadata.name === name);
  if (joined === undefined) {
    await refuseTakenNode(host, name, signal);
    await findJoinSecret(host, name, signal);
  }
  const found = joined && (await findMemberSecret(host, name, joined, signal));
  const operatorsSecret = found?.foreign === undefined ? undefined : found;
  if (operatorsSecret !== undefined && options.agent) {
    const remedy = `run \`legation unjoin ${name}\` first, or join the member under another name`;
    throw ownCredentials(name, operatorsSecret, ", which no agent brings", remedy);
  }
  const access = accessAfter(options, joined?.spec.access);
  if (access !== undefined) {
    await requireAccessServer(host, signal);
    await findJoinSecret(host, name, signal, ACCESS_NAMESPACE);
  }
  return { hostId, joined, access, operatorsSecret };
}

function accessAfter(
  { access, accessPrefix, removeAccess }: JoinOptions,
  before: AccessSpec | undefined,
): AccessSpec | undefined {
  if (removeAccess) return undefined;
  return access ? { prefix: accessPrefix ?? before?.prefix ?? ACCESS_PREFIX_DEFAULT } : before;
}

async function requireAccessServer(host: ClusterClient, signal: AbortSignal): Promise<void> {
  if ((await host.find(namespaces, { name: ACCESS_NAMESPACE }, { signal })) !== undefined) return;
  throw new Failure("refused", {
    object: "--access",
    problem: `the host has no namespace ${ACCESS_NAMESPACE}, so \`legation access\`, which serves it, is not installed`,
    remedy: "run `legation install --access` first, or add --remove-access when users shall not reach this member",
  });
}

function ownCredentials(cluster: string, { name, foreign }: MemberSecret, more: string, remedy: string): Failure {
  return new Failure("refused", {
    object: `Cluster ${cluster}`,
    problem: `has credentials of your own, in Secret ${SYSTEM_NAMESPACE}/${name} (${foreign})${more}`,
    remedy,
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
  cluster: string,
  signal: AbortSignal,
  namespace: string = SYSTEM_NAMESPACE,
): Promise<Stored<Secret> | undefined> {
  const ref = { namespace, name: credentialsSecretName(cluster) };
  const secret = await host.find(secrets, ref, { signal });
  const foreign = secret && whyForeign(secret, cluster);
  if (foreign === undefined) return secret;
  throw new Failure("refused", {
    object: `Secret ${namespace}/${ref.name}`,
    problem: `is there already, and not as \`legation join ${cluster}\` makes it: ${foreign}`,
    remedy: "delete it when nothing needs it, or choose another name",
  });
}
