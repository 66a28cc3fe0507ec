import { VIRTUAL_NODE_LABEL, virtualNodeName } from "../../../api/keys.ts";
import type { KubeNode, Stored } from "../../../api/kubernetes.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError, mayBeStarting } from "../../../kube/errors.ts";
import { isAddressNotAllowed, isKubeletRefusal } from "../../../kube/messages.ts";
import { type Limits, problemOf } from "./check.ts";
import { type Finding, fail, ok, skip, warn } from "./finding.ts";

/** Has the host's API server call a virtual node's kubelet API. Rejects with KubeError. */
export async function kubeletFindings(
  host: ClusterClient,
  cluster: string,
  node: Stored<KubeNode> | undefined,
  { signal, timeoutMs }: Limits,
): Promise<readonly Finding[]> {
  const name = virtualNodeName(cluster);
  if (node === undefined)
    return [
      fail(
        `node ${name} is missing`,
        "see why no controller makes it: `kubectl -n legation-system logs deployment/legation-controller`",
      ),
    ];
  const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port;
  const subject = `the API server reaches the kubelet API of ${name}`;
  if (port === undefined || port === 0) {
    return [
      warn(
        `${name} serves no kubelet API: no logs, exec and port-forward of its pods`,
        "run `legation controller` with --kubelet-listen and --node-address",
      ),
    ];
  }
  try {
    await host.raw({ method: "GET", path: `/api/v1/nodes/${name}/proxy/healthz`, signal, timeoutMs });
    return [ok(subject)];
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    if (error.code === "Forbidden" && mayBeStarting(error) && !isKubeletRefusal(error.detail)) throw error;
    if (isAddressNotAllowed(error.detail)) {
      return [skip(`${subject}: it proxies to no address of its own machine; logs of a pod there tell`)];
    }
    const remedy =
      "open the way from the API server to the controller's --kubelet-listen, at its --node-address (docs/kubelet-api.md)";
    return [
      fail(`the API server does not reach the kubelet API of ${name} at port ${port}: ${problemOf(error)}`, remedy),
    ];
  }
}

/** Judges virtual nodes whose Cluster is gone. */
export function staleNodeFindings(nodes: readonly Stored<KubeNode>[], members: ReadonlySet<string>): Finding[] {
  return nodes.flatMap(({ metadata: { name, labels } }) => {
    const cluster = labels?.[VIRTUAL_NODE_LABEL];
    if (cluster === undefined || members.has(cluster)) return [];
    return [warn(`node ${name} is left of Cluster ${cluster}, which is gone`, `legation unjoin ${cluster}`)];
  });
}
