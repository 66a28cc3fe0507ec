import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import type { ObjectKey, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { candidateOf } from "../../placement/member-candidate.ts";
import type { MemberView } from "./decisions/model.ts";

type Connection = Pick<Member, "probed" | "reachable" | "read" | "nodesRead" | "unreadable">;

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
  const delegate = member.delegates.get(key);
  const departed = member.delegates.departed(key);
  const candidate = member.candidate();
  return {
    name: member.name,
    reachable: member.reachable,
    reachableSince: member.reachableSince,
    read: member.read,
    ...(candidate.closed !== undefined && isFaltering(member) ? { faltering: true } : {}),
    ...(delegate === undefined ? {} : { delegate }),
    ...(departed === undefined ? {} : { departed }),
    candidate,
    scheduleTimeoutMs: (member.cluster.spec.scheduleTimeoutSeconds ?? CLUSTER_DEFAULTS.scheduleTimeoutSeconds) * 1000,
    nodesVersion: member.nodesVersion,
  };
}

/** Its probe, or one of its watches, has failed; not for so long that its virtual node would say so. */
export function isFaltering({ probed, reachable, read, nodesRead, unreadable }: Connection): boolean {
  if (!probed.reachable || unreadable.pods !== undefined || unreadable.nodes !== undefined) return false;
  return probed.message !== undefined || !(reachable && read && nodesRead);
}
