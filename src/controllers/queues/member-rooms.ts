import { virtualNodeName } from "../../api/keys.ts";
import { objectKey, type Pod } from "../../api/kubernetes.ts";
import { CLUSTER_QUEUE_LABEL, KUEUE_PREFIX } from "../../api/kueue.ts";
import { type Amounts, addAmounts } from "../../api/quantity.ts";
import { recordedForeignUsage } from "../../clusters/foreign-usage.ts";
import type { Member } from "../../clusters/member.ts";
import { podRequests } from "../../placement/requests.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { NODE_INDEX } from "../proxies.ts";
import type { MemberRoom, QueuedPod } from "./capacity.ts";

const NOTHING: Amounts = {};

/** Returns what a member has for queues. Pods of this host that no queue admitted count as others' do. */
export function memberRoom(member: Member, proxies: Pick<ReadStore<Pod>, "byIndex">): MemberRoom {
  const { name, labels, closed, nodesHave, limits } = member.candidate();
  const used = new Map<string, Record<string, number>>();
  const queued: QueuedPod[] = [];
  const somewhere: Record<string, number> = {};
  const unqueued: Record<string, number> = {};
  for (const proxy of proxies.byIndex(NODE_INDEX, virtualNodeName(name))) {
    if (isTerminal(proxy)) continue;
    const requests = podRequests(proxy);
    const node = member.delegates.get(objectKey(proxy.metadata))?.spec?.nodeName;
    const queue = proxy.metadata.labels?.[CLUSTER_QUEUE_LABEL];
    if (queue !== undefined) {
      queued.push({
        queue,
        nodeSelector: proxy.spec?.nodeSelector ?? {},
        requests,
        ...(node === undefined ? {} : { node }),
      });
    } else if (!isQueued(proxy)) {
      const sum = node === undefined ? somewhere : (used.get(node) ?? {});
      addAmounts(sum, requests);
      addAmounts(unqueued, requests);
      if (node !== undefined) used.set(node, sum);
    }
  }
  if (member.foreign === undefined) addAmounts(somewhere, recordedForeignUsage(member.cluster) ?? NOTHING);
  return {
    name,
    labels,
    ...(nodesHave === undefined ? {} : { nodesHave }),
    ...(closed === undefined ? {} : { closed: closed.message }),
    nodes: member.nodes,
    usedOn: (node) => {
      const sum = { ...used.get(node) };
      addAmounts(sum, member.foreignOn(node));
      return sum;
    },
    usedSomewhere: somewhere,
    limit: left(limits?.total ?? NOTHING, unqueued),
    queued,
  };
}

function left(limit: Amounts, used: Amounts): Amounts {
  return Object.fromEntries(
    Object.entries(limit).map(([resource, amount]) => [resource, Math.max(0, amount - (used[resource] ?? 0))]),
  );
}

/** An earlier Kueue, or one that lacks the feature, does not say which queue admitted a pod. */
function isQueued({ metadata }: Pod): boolean {
  return Object.keys(metadata?.labels ?? {}).some((label) => label.startsWith(KUEUE_PREFIX));
}
