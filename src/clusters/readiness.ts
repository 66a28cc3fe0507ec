import type { Cluster } from "../api/cluster.ts";
import type { Stored, Taint } from "../api/kubernetes.ts";
import type { Candidate } from "../placement/candidate.ts";
import { BEING_REMOVED, CORDONED, NO_VIRTUAL_NODE, notAnswering } from "../placement/member-candidate.ts";
import type { ProbeResult } from "./probe.ts";
import type { Unreadable } from "./watch-health.ts";

/** The host's node for a member. */
export interface VirtualNode {
  readonly cordoned: boolean;
  readonly taints: readonly Taint[];
}

export interface MemberState {
  readonly cluster: Stored<Cluster>;
  readonly virtualNode: VirtualNode | undefined;
  readonly probed: ProbeResult;
  readonly reachable: boolean;
  readonly read: boolean;
  readonly nodesRead: boolean;
  readonly unreadable: Unreadable;
}

/** Returns why the member gets no pods at all. Undefined if it may. */
export function whyClosed(member: MemberState): Candidate["closed"] {
  const { cluster, virtualNode, probed, reachable, read, nodesRead, unreadable } = member;
  if (cluster.metadata.deletionTimestamp !== undefined) return BEING_REMOVED;
  if (virtualNode?.cordoned === true) return CORDONED;
  if (probed.message !== undefined) return notAnswering(probed.message);
  if (reachable && read && nodesRead) return virtualNode === undefined ? NO_VIRTUAL_NODE : undefined;
  const message = unreadable.pods ?? unreadable.nodes ?? unreadable.slow ?? "its pods and nodes are still being read";
  return { reason: "ClusterNotReady", message, silent: true };
}

/** Reports whether the first lists of delegates and nodes are pending, and nothing indicates that they will fail. */
export function isSyncing({ probed, read, nodesRead, unreadable }: MemberState): boolean {
  if (read && nodesRead) return false;
  if (unreadable.pods !== undefined || unreadable.nodes !== undefined) return false;
  return probed.reachable || probed.undecided === true;
}

/** Returns a text that differs whenever the connection is news. */
export function connectionState(member: MemberState): string {
  const { dueAt: _, ...problems } = member.unreadable;
  return JSON.stringify([member.reachable && member.read, member.nodesRead, isSyncing(member), problems]);
}

/** Returns why no pod that needs the objects goes to a member where they were not listed yet. */
export function notReadYet(objects: string): string {
  return (
    `its ${objects} cannot be read yet; if this lasts, let it join again, since the access that ` +
    "an earlier version of Legation was given does not include them"
  );
}
