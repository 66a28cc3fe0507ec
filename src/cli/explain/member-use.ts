import type { Pod } from "../../api/kubernetes.ts";
import { type Amounts, addAmounts } from "../../api/quantity.ts";
import { podRequests } from "../../placement/requests.ts";
import { isTerminal } from "../../pods/pod-state.ts";

/** The parts of a pod that members' sums count. */
export interface CountedPod {
  readonly nodeName: string | undefined;
  readonly isUnfinished: boolean;
  readonly isRunning: boolean;
  readonly requests: Amounts;
}

/** Returns what members' sums count of a pod. */
export function countedPod(pod: Pod): CountedPod {
  return {
    nodeName: pod.spec?.nodeName,
    isUnfinished: !isTerminal(pod),
    isRunning: pod.status?.phase === "Running",
    requests: podRequests(pod),
  };
}

/** Sums over the unfinished pods of a virtual node. */
export interface MemberUse {
  running: number;
  unfinished: number;
  readonly requests: Record<string, number>;
}

/** Sums up what pods use of virtual nodes, by node. */
export function useByNode(pods: Iterable<CountedPod>): (node: string) => MemberUse {
  const byNode = new Map<string, MemberUse>();
  for (const { nodeName = "", isUnfinished, isRunning, requests } of pods) {
    if (!isUnfinished) continue;
    const use = byNode.get(nodeName) ?? unused();
    byNode.set(nodeName, use);
    use.unfinished += 1;
    if (isRunning) use.running += 1;
    addAmounts(use.requests, requests);
  }
  return (node) => byNode.get(node) ?? unused();
}

function unused(): MemberUse {
  return { running: 0, unfinished: 0, requests: {} };
}
