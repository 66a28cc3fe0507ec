import { type AgentStatus, JOINED_TWICE } from "../../api/cluster-status.ts";
import { defined } from "../../api/defined.ts";
import { virtualNodeName } from "../../api/keys.ts";
import { type Pod, timestamp } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { boundTo, unfinishedOn } from "../proxies.ts";
import type { KeptDelegates } from "../restored-host.ts";
import { isHostLikelyCutOff } from "./decide.ts";
import type { NodeFacts } from "./model.ts";

/** What is known of a connected agent; times are epoch ms. */
interface Agent {
  readonly version?: string;
  readonly since: number;
  readonly certificateExpires: number | undefined;
  readonly homeAddress?: string | undefined;
}

/** The stores and counts that tell of members. */
export interface FactSources {
  readonly registry: Pick<Registry, "cluster" | "clusters" | "joinedAs" | "member" | "members" | "problem" | "server">;
  readonly proxies: Pick<ReadStore<Pod>, "synced" | "countByIndex">;
  /** Returns the number of pods without a node whose delegates are in a member, or that are being bound to its node. */
  readonly waitingIn: (member: string) => number;
  readonly kept: Pick<KeptDelegates, "countIn">;
  /** Returns why a member is left out of its network. */
  readonly networkProblem: (member: string) => string | undefined;
  /** Returns the connected agent of a member. */
  readonly agent?: (cluster: string) => Agent | undefined;
}

/** Reads what a Cluster's node and status say of its member. `trouble`: why nothing is evicted for lost members. */
export function memberFacts(
  name: string,
  trouble: string | undefined,
  sources: FactSources,
): Omit<NodeFacts, "requested"> {
  const { registry } = sources;
  const member = registry.member(name);
  const proxies = boundTo(sources.proxies, virtualNodeName(name));
  const { unfinished, running } = unfinishedOn(sources.proxies, virtualNodeName(name));
  const isLeaving = registry.cluster(name)?.metadata.deletionTimestamp !== undefined;
  const waiting = isLeaving ? sources.waitingIn(name) : 0;
  const agent = agentStatus(sources.agent?.(name));
  if (member === undefined) {
    const isRefused = registry.joinedAs(name) !== undefined;
    return {
      reachable: false,
      message: registry.problem(name) ?? "it is not connected",
      ...(isRefused ? { notMember: JOINED_TWICE, ...defined({ agent }) } : defined({ agent, spared: trouble })),
      nodesRead: false,
      nodes: 0,
      capacity: {},
      allocatable: {},
      features: [],
      proxies,
      unfinished,
      running,
      waiting,
    };
  }
  const { nodes: count, capacity, allocatable, largestNode, features } = member.nodeTotals;
  const nodeKinds = count === 0 ? undefined : member.nodeKinds;
  const { version } = member.probed;
  const failure = member.mistaken ?? member.probed.message ?? member.unreadable.pods;
  const problem = registry.problem(name);
  const message = failure === undefined || problem === undefined ? failure : `${failure}; ${problem}`;
  const { slow } = member.unreadable;
  const reachable = isHeard(member) && (member.read || slow !== undefined);
  const spared = reachable ? undefined : trouble;
  return {
    reachable,
    answers: isHeard(member),
    nodesRead: member.nodesRead,
    ...(member.mistaken === undefined ? {} : { notMember: "AnotherCluster" as const }),
    ...defined({
      agent,
      slow,
      message,
      spared,
      version,
      server: registry.server(name),
      foreign: member.foreign,
      devices: member.devices.known,
    }),
    nodes: count,
    capacity,
    allocatable,
    // Values that a member has not confirmed since this controller began stay.
    ...(count === 0 ? {} : { largestNode, ...defined({ nodeKinds }) }),
    features,
    proxies,
    unfinished,
    running,
    waiting,
    networkProblem: sources.networkProblem(name),
    held: sources.kept.countIn(name),
  };
}

/** Returns undefined for an agent that has not told of itself yet. */
function agentStatus(agent: Agent | undefined): AgentStatus | undefined {
  if (agent?.version === undefined) return undefined;
  const { version, since, certificateExpires: expires, homeAddress } = agent;
  const certificateExpires = expires === undefined ? undefined : timestamp(expires);
  return { version, connectedSince: timestamp(since), ...defined({ certificateExpires, homeAddress }) };
}

/** Returns why the loss of members is taken for a failure of the host's network. Undefined if it is not. */
export function ownTrouble(registry: FactSources["registry"]): string | undefined {
  const known = registry.clusters().filter(({ metadata, status }) => {
    // Members that never answered, leave or are refused do not count as lost.
    if (registry.member(metadata.name) !== undefined) return true;
    if (registry.joinedAs(metadata.name) !== undefined) return false;
    return metadata.deletionTimestamp === undefined && status?.version !== undefined;
  });
  const lost = known.filter(({ metadata: { name } }) => {
    const member = registry.member(name);
    return member === undefined ? registry.problem(name) !== undefined : !isHeard(member) && !member.syncing;
  }).length;
  if (!isHostLikelyCutOff(lost, known.length)) return undefined;
  return `${lost} of ${known.length} members do not answer, so the trouble is probably here: nothing is evicted for it`;
}

/** Reports whether the member answers and its pods can be read. */
function isHeard({ probed, unreadable }: Member): boolean {
  return probed.reachable && unreadable.pods === undefined;
}
