import type { Cluster } from "../../api/cluster.ts";
import type { NodeKind } from "../../api/cluster-status.ts";
import { virtualNodeName } from "../../api/keys.ts";
import type { KubeEvent, KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes, pods } from "../../kube/resources.ts";
import type { Replicas } from "../../placement/division.ts";
import { hiddenLine } from "../shared/hidden.ts";
import { asViewer, listClusters, listWhereAllowed, notJoined, OF_PROXIES, readable } from "../shared/reading.ts";
import { credentialsTroubles, type MemberCredentials, readCredentials } from "./credentials.ts";
import { readEvents, type ToldEvent, toldEvents } from "./events.ts";
import { countedPod, useByNode } from "./member-use.ts";
import { hiddenBeside, type MemberStatus, memberStatus, troublesOfMember } from "./members.ts";
import type { Trouble } from "./model.ts";
import { countBy, kubectlStatus } from "./pod-status.ts";
import { lostMember } from "./trouble.ts";

/** A member with all that its Cluster, its node and its credentials' Secret tell of it. */
export interface MemberDocument extends Pick<MemberStatus, "name" | "connection" | "agent" | "access"> {
  /** The host's node that stands for it. */
  readonly node: string;
  /** Address of its API server. */
  readonly server: string | undefined;
  /** The member's nodes by kind: those of one kind are alike. */
  readonly nodeKinds: readonly NodeKind[];
  /** Requests of other tenants' pods in it, as last read. */
  readonly requestedByOthers: Readonly<Record<string, string>>;
  readonly credentials: MemberCredentials;
  readonly troubles: readonly Trouble[];
  readonly conditions: readonly {
    readonly type: string;
    readonly status: string;
    readonly message: string;
    readonly since: string;
  }[];
  /** Events of its Cluster and its node. Undefined: the user may not read them. */
  readonly events: readonly ToldEvent[] | undefined;
}

/** A member with what the host's pods use of it, as `legation status NAME` shows it. */
export type MemberDetail = MemberStatus &
  MemberDocument & {
    /** The host's pods in it, by their status as kubectl shows it. */
    readonly statuses: Replicas;
    /** Words for what the account may not read. */
    readonly hidden?: string | undefined;
  };

/** The host's objects of one member, but for its pods. */
export interface MemberFacts {
  readonly cluster: Stored<Cluster>;
  readonly node: Stored<KubeNode> | undefined;
  /** Undefined: the user may not read them. */
  readonly told: readonly KubeEvent[] | undefined;
  readonly credentials: MemberCredentials;
  /** Epoch ms. */
  readonly now: number;
}

// A single word is the name of a member.
const OF_OTHERS = "for a workload or an object write its type and name, e.g. `legation status deployment/web`";

/**
 * Reads one member, with the pods of `namespace` where the account may not list all. Rejects with `Failure` where it has not joined,
 * and with KubeError if the account may not read its Cluster.
 */
export async function readMemberDetail(
  host: ClusterClient,
  { name, namespace }: { readonly name: string; readonly namespace: string },
  signal: AbortSignal,
): Promise<MemberDetail> {
  const ofNode = { labelSelector: OF_PROXIES, fieldSelector: `spec.nodeName=${virtualNodeName(name)}`, signal };
  const [facts, { found: proxies, isAll }] = await Promise.all([
    readFacts(host, name, signal, OF_OTHERS),
    listWhereAllowed(host, pods, [namespace], ofNode),
  ]);
  return { ...memberDetail(facts, proxies), hidden: hiddenLine(hiddenBeside({ isNode: facts.isNodeRead, isAll })) };
}

/** Reads one member without its pods. Rejects with `Failure` where it has not joined, or the account may not read it. */
export async function readMemberDocument(
  host: ClusterClient,
  name: string,
  signal: AbortSignal,
): Promise<MemberDocument> {
  return memberDocument(await asViewer(readFacts(host, name, signal)));
}

async function readFacts(
  host: ClusterClient,
  name: string,
  signal: AbortSignal,
  otherwise?: string,
): Promise<MemberFacts & { readonly isNodeRead: boolean }> {
  const [cluster, seen] = await Promise.all([
    host.find(clusters, { name }, { signal }),
    readable(host.find(nodes, { name: virtualNodeName(name) }, { signal }).then((node) => ({ node }))),
  ]);
  if (cluster === undefined) throw notJoined(name, await listClusters(host, signal), otherwise);
  const node = seen?.node;
  const told = [cluster, ...(node === undefined ? [] : [node])].map((object) => readEvents(host, object, signal));
  const [credentials, events] = await Promise.all([
    readCredentials(host, cluster, signal),
    readable(Promise.all(told)),
  ]);
  const isNodeRead = seen !== undefined;
  return { cluster, node, told: events?.flat(), credentials, now: Date.now(), isNodeRead };
}

function memberDocument({ cluster, node, told, credentials, now }: MemberFacts): MemberDocument {
  const { metadata, spec, status = {} } = cluster;
  const { connection, agent, server, nodeKinds = [], requestedByOthers = {}, conditions = [] } = status;
  return {
    name: metadata.name,
    node: virtualNodeName(metadata.name),
    connection,
    agent,
    access: spec.access,
    server,
    nodeKinds,
    requestedByOthers,
    credentials,
    troubles: [...troublesOfMember(cluster, node), ...credentialsTroubles(cluster, credentials, now)],
    conditions: conditions.map(({ type, status: is, message, lastTransitionTime: since }) => {
      return { type, status: is, message, since };
    }),
    events: told && toldEvents(told),
  };
}

/** Sums up what the host's objects tell of one member. `proxies`: those that are bound to it. */
export function memberDetail(facts: MemberFacts, proxies: readonly Stored<Pod>[]): MemberDetail {
  const document = memberDocument(facts);
  const { cluster, node } = facts;
  const { troubles } = document;
  // The same trouble as the first of its own, with what becomes of the pods.
  const lost = lostMember(cluster, node, proxies).map((trouble) => {
    return { ...trouble, remedy: [trouble.remedy, troubles[0]?.remedy].join("; ") };
  });
  const use = useByNode(proxies.map(countedPod))(document.node);
  return {
    ...memberStatus(cluster, use, node),
    ...document,
    troubles: [...lost, ...troubles.slice(lost.length)],
    statuses: countBy(proxies.map(kubectlStatus)),
  };
}
