import { SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { apiVersionOf, clusters, nodes } from "../../kube/resources.ts";
import { notInstalled } from "../clusters.ts";
import type { Discovery } from "../discovery/discovery.ts";
import { Failure } from "../failure.ts";
import { clusterId } from "../identity.ts";
import { joinedAs } from "../member/access.ts";
import { hostAccountName } from "../member/names.ts";

export interface Validation {
  readonly host: ClusterClient;
  readonly hostDiscovery: Discovery;
  readonly member: ClusterClient;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** Everything that can be wrong before anything is made. Resolves to the host's id. */
export async function validateJoin({ host, hostDiscovery, member, name, signal }: Validation): Promise<string> {
  const hostId = await clusterId(host, signal);
  if ((await hostDiscovery.find(apiVersionOf(clusters), clusters.kind)) === undefined) {
    throw notInstalled(host);
  }
  const memberId = await clusterId(member, signal);
  if (memberId === hostId) {
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem:
        "the member is the host itself (both have the same kube-system namespace), so its pods would come back to it",
      remedy: "give another cluster with --member-kubeconfig and --member-context",
    });
  }
  if ((await host.find(clusters, { name }, { signal })) !== undefined) {
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem: "has joined already",
      remedy: `choose another name, or run \`legation unjoin ${name}\` first`,
    });
  }
  await refuseTakenNode(host, name, signal);
  await refuseSecondJoin({ host, member, hostId, name, signal });
  return hostId;
}

async function refuseTakenNode(host: ClusterClient, name: string, signal: AbortSignal): Promise<void> {
  const node = await host.find(nodes, { name: virtualNodeName(name) }, { signal });
  if (node === undefined || node.metadata.labels?.[VIRTUAL_NODE_LABEL] === name) return;
  throw new Failure("refused", {
    object: `Node ${virtualNodeName(name)}`,
    problem: "exists on the host and is not Legation's, so there can be no virtual node of that name",
    remedy: "choose another name",
  });
}

async function refuseSecondJoin(options: {
  readonly host: ClusterClient;
  readonly member: ClusterClient;
  readonly hostId: string;
  readonly name: string;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { host, member, hostId, name, signal } = options;
  const other = await joinedAs(member, hostId, signal);
  if (other === undefined || other === name) return;
  // Access that an interrupted join or unjoin left behind is taken over.
  if ((await host.find(clusters, { name: other }, { signal })) === undefined) return;
  throw new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `this member has joined already, as ${other} (it has ServiceAccount ${SYSTEM_NAMESPACE}/${hostAccountName(hostId)})`,
    remedy: `use ${other}, or run \`legation unjoin ${other}\` first`,
  });
}
