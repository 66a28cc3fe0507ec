import { SHARDS_ANNOTATION, SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../../api/keys.ts";
import type { KubeNode, Lease, Stored } from "../../../api/kubernetes.ts";
import { leaseOf } from "../../../api/shards.ts";
import { age } from "../../../api/wording.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError, mayBeStarting } from "../../../kube/errors.ts";
import { isAddressNotAllowed, isKubeletRefusal } from "../../../kube/messages.ts";
import { leases } from "../../../kube/resources.ts";
import { renewedAt } from "../../../runtime/leaderless-intervals.ts";
import { type Limits, problemOf } from "./check.ts";
import { type Finding, fail, ok, skip, warn } from "./finding.ts";

/** Checks that a controller leads. Rejects with KubeError. */
export async function controllerFindings(
  host: ClusterClient,
  { now, inCluster, signal }: { readonly now: number; readonly inCluster: boolean; readonly signal: AbortSignal },
): Promise<readonly Finding[]> {
  const find = (index: number): Promise<Stored<Lease> | undefined> =>
    host.find(leases, { namespace: SYSTEM_NAMESPACE, name: leaseOf(index) }, { signal });
  const first = await find(0);
  const others = Array.from({ length: countOf(first) - 1 }, (_, index) => find(index + 1));
  const all = [first, ...(await Promise.all(others))];
  return all.map((lease, index) =>
    leaseFinding(lease, { now, inCluster, shard: all.length === 1 ? "" : ` shard ${index}` }),
  );
}

/** Returns the number of shards that the holder of a Lease counts. */
function countOf(lease: Stored<Lease> | undefined): number {
  return Number(lease?.metadata.annotations?.[SHARDS_ANNOTATION] ?? 1);
}

/** Judges the Lease of a shard, which the text names, or of all. `now`: the API server's time, epoch ms. */
export function leaseFinding(
  lease: Stored<Lease> | undefined,
  { now, inCluster, shard }: { readonly now: number; readonly inCluster: boolean; readonly shard: string },
): Finding {
  const remedy = inCluster
    ? `kubectl -n ${SYSTEM_NAMESPACE} rollout restart deployment legation-controller; kubectl -n ${SYSTEM_NAMESPACE} logs deployment/legation-controller`
    : "start `legation controller`, and read its log";
  if (lease === undefined) return fail(`no controller leads${shard}, and none has ever led`, remedy);
  const { holderIdentity: holder = "", leaseDurationSeconds = 15 } = lease.spec ?? {};
  const renewed = renewedAt(lease);
  const since = Number.isNaN(renewed) ? "" : ` for ${age(now - renewed)}`;
  if (holder === "") return fail(`no controller leads${shard}${since}: the last one stopped`, remedy);
  const ended = renewed + leaseDurationSeconds * 1000;
  // The server's clock is known to a second.
  if (Number.isNaN(renewed) || now > ended + CLOCK_MARGIN_MS) {
    return fail(`no controller leads${shard}: ${holder} has not renewed its lease${since}`, remedy);
  }
  return ok(`a controller leads${shard} (${holder}), and renewed its lease ${age(now - renewed)} ago`);
}

const CLOCK_MARGIN_MS = 2_000;

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
