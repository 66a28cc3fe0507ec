import type { Cluster } from "../../api/cluster.ts";
import type { ObjectKey, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { candidateOf } from "../../placement/member-candidate.ts";
import type { MemberView } from "./model.ts";

/** A Cluster without a connection, for the reason given. */
export function unknownView(cluster: Stored<Cluster>, problem: string): MemberView {
  return {
    name: cluster.metadata.name,
    reachable: false,
    reachableSince: 0,
    read: false,
    candidate: candidateOf({
      cluster,
      closed: { reason: "ClusterNotReady", message: problem },
      overdue: false,
      foreign: undefined,
      nodeTaints: [],
      allocatable: {},
      largestNode: {},
      used: {},
      usedIn: () => ({}),
      keptFor: () => undefined,
    }),
    scheduleTimeoutMs: 0,
    nodesVersion: 0,
  };
}

/** A member as it stands for the pod under the key. */
export function viewOf(member: Member, key: ObjectKey): MemberView {
  const delegate = member.delegate(key);
  const departed = member.departed(key);
  return {
    name: member.name,
    reachable: member.reachable,
    reachableSince: member.reachableSince,
    read: member.read,
    ...(delegate === undefined ? {} : { delegate }),
    ...(departed === undefined ? {} : { departed }),
    candidate: member.candidate(),
    scheduleTimeoutMs: (member.cluster.spec.scheduleTimeoutSeconds ?? 30) * 1000,
    nodesVersion: member.nodesVersion,
  };
}
