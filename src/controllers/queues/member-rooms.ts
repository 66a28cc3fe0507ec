import { virtualNodeName } from "../../api/keys.ts";
import { type Job, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { CLUSTER_QUEUE_LABEL, KUEUE_PREFIX } from "../../api/kueue.ts";
import { type Amounts, addAmounts } from "../../api/quantity.ts";
import { recordedForeignUsage } from "../../clusters/foreign-usage.ts";
import type { Member } from "../../clusters/member.ts";
import { isFinished } from "../../copies/jobs.ts";
import { podRequests } from "../../placement/requests.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { NODE_INDEX } from "../proxies.ts";
import type { MemberRoom, QueuedPods } from "./capacity.ts";

const NOTHING: Amounts = {};

/** A whole Job that a member has, with its copy there as far as that was read. */
export interface JobInMember {
  readonly object: Stored<Job>;
  readonly copy: Stored<Job> | undefined;
}

export interface RoomFacts {
  readonly proxies: Pick<ReadStore<Pod>, "byIndex">;
  readonly wholeJobs: (member: Member) => readonly JobInMember[];
}

/** Returns what a member has for queues. Pods of this host that no queue admitted count as others' do. */
export function memberRoom(member: Member, { proxies, wholeJobs }: RoomFacts): MemberRoom {
  const { name, labels, closed, nodesHave, limits } = member.candidate();
  const used = new Map<string, Record<string, number>>();
  const somewhere: Record<string, number> = {};
  const unqueued: Record<string, number> = {};
  const queued: QueuedPods[] = [];
  for (const proxy of proxies.byIndex(NODE_INDEX, virtualNodeName(name))) {
    if (isTerminal(proxy)) continue;
    const requests = podRequests(proxy);
    const node = member.delegates.get(objectKey(proxy.metadata))?.spec?.nodeName;
    const admitted = admittedPods(proxy, requests);
    if (admitted !== undefined) {
      queued.push(node === undefined ? admitted : { ...admitted, node });
    } else if (!isQueued(proxy)) {
      const sum = node === undefined ? somewhere : (used.get(node) ?? {});
      addAmounts(sum, requests);
      addAmounts(unqueued, requests);
      if (node !== undefined) used.set(node, sum);
    }
  }
  const copies: string[] = [];
  for (const { object, copy } of wholeJobs(member)) {
    const template: Pod = object.spec?.template ?? {};
    const { active = 0 } = object.status ?? {};
    const requests: Record<string, number> = {};
    addAmounts(requests, podRequests(template), active);
    const admitted = isFinished(object) ? undefined : admittedPods(template, requests);
    if (admitted === undefined) continue;
    queued.push(admitted);
    if (copy !== undefined) copies.push(copy.metadata.uid);
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
      addAmounts(sum, member.foreignOn(node, copies));
      return sum;
    },
    usedSomewhere: somewhere,
    limit: left(limits?.total ?? NOTHING, unqueued),
    queued,
  };
}

/** Returns undefined for pods that no queue admitted. */
function admittedPods({ metadata, spec }: Pod, requests: Amounts): QueuedPods | undefined {
  const queue = metadata?.labels?.[CLUSTER_QUEUE_LABEL];
  return queue === undefined ? undefined : { queue, nodeSelector: spec?.nodeSelector ?? {}, requests };
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
