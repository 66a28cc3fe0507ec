import type { Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { apiVersionOf, clusters, nodes } from "../../kube/resources.ts";
import { notInstalled } from "../clusters.ts";
import type { Discovery } from "../discovery/discovery.ts";
import { Failure } from "../failure.ts";
import { clusterId } from "../identity.ts";
import { joinedAs, otherJoined, refuseHostItself } from "../member/access.ts";
import { hostAccountName } from "../member/names.ts";

export interface Validation {
  readonly host: ClusterClient;
  readonly hostDiscovery: Discovery;
  readonly member: ClusterClient;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** What a valid join begins with. */
export interface Joining {
  readonly hostId: string;
  /** The Cluster, when this very member has joined under the name before. */
  readonly joined?: Stored<Cluster>;
}

/** Everything that can be wrong before anything is made. */
export async function validateJoin({ host, hostDiscovery, member, name, signal }: Validation): Promise<Joining> {
  const hostId = await clusterId(host, signal);
  if ((await hostDiscovery.find(apiVersionOf(clusters), clusters.kind)) === undefined) {
    throw notInstalled(host);
  }
  await refuseHostItself({ member, hostId, name }, signal);
  const joined = await host.find(clusters, { name }, { signal });
  if (joined !== undefined) {
    if ((await joinedAs(member, hostId, signal)) === name) return { hostId, joined };
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem: "has joined already, and is not the cluster of --member-kubeconfig",
      remedy: `choose another name, or run \`legation unjoin ${name}\` first`,
    });
  }
  await refuseTakenNode(host, name, signal);
  await refuseSecondJoin({ host, member, hostId, name, signal });
  return { hostId };
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
  const { hostId, name, signal } = options;
  const other = await otherJoined(options, signal);
  if (other === undefined) return;
  throw new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `this member has joined already, as ${other} (it has ServiceAccount ${SYSTEM_NAMESPACE}/${hostAccountName(hostId)})`,
    remedy: `use ${other}, or run \`legation unjoin ${other}\` first`,
  });
}
