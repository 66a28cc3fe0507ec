import type { KubeNode, Stored } from "../../api/kubernetes.ts";
import { addAmounts, parseAmounts } from "../../api/quantity.ts";
import { listAll, listPages } from "../../kube/list.ts";
import { nodes, pods } from "../../kube/resources.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { podRequests } from "../../placement/requests.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import { readMemberDetail } from "../explain/member.ts";
import { asViewer } from "../shared/reading.ts";
import { whyNotRead } from "./compared.ts";
import type { MemberNode, MemberPageView } from "./model.ts";
import type { Viewer } from "./viewer.ts";

/** Reads a member for its view. Rejects with `Failure` when there is no such member, else with KubeError. */
export async function readMemberPage(viewer: Viewer, name: string): Promise<MemberPageView> {
  const { host, namespace, signal } = viewer;
  const { nodes: _, ...detail } = await asViewer(readMemberDetail(host, { name, namespace }, signal));
  return { ...detail, ...(await nodesOf(viewer, name)) };
}

/** Reads the nodes of a member and what its pods request of them, with the user's own rights. */
async function nodesOf(
  { members, signal }: Viewer,
  name: string,
): Promise<Pick<MemberPageView, "nodes" | "nodesNotRead">> {
  try {
    const client = await members.client(name);
    const found = await listAll(client, nodes, { dropManagedFields: true, signal });
    const used = new Map<string, { readonly requests: Record<string, number>; pods: number }>();
    for await (const page of listPages(client, pods, { dropManagedFields: true, signal })) {
      for (const pod of page) {
        const { nodeName } = pod.spec ?? {};
        if (nodeName === undefined || isTerminal(pod)) continue;
        const own = used.get(nodeName) ?? { requests: {}, pods: 0 };
        used.set(nodeName, own);
        own.pods += 1;
        addAmounts(own.requests, podRequests(pod));
      }
    }
    return { nodes: found.map((node) => memberNode(node, used.get(node.metadata.name))) };
  } catch (error) {
    const nodesNotRead = whyNotRead(error, name);
    if (nodesNotRead === undefined || signal.aborted) throw error;
    return { nodesNotRead };
  }
}

function memberNode(
  node: Stored<KubeNode>,
  { requests, pods: count }: { readonly requests: Readonly<Record<string, number>>; readonly pods: number } = {
    requests: {},
    pods: 0,
  },
): MemberNode {
  const allocatable = parseAmounts(node.status?.allocatable);
  const free = (resource: string): number => Math.max(0, (allocatable[resource] ?? 0) - (requests[resource] ?? 0));
  return {
    name: node.metadata.name,
    isReady: isNodeReady(node),
    isCordoned: node.spec?.unschedulable === true,
    pods: count,
    room: ["cpu", "memory", "nvidia.com/gpu"]
      .filter((resource) => (allocatable[resource] ?? 0) > 0)
      .map((resource) => ({ resource, allocatable: allocatable[resource] ?? 0, free: free(resource) })),
  };
}
