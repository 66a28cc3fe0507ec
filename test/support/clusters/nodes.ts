import { type ApiAccess, apiRequest } from "./api-request.ts";
import { KWOK_NODE_ANNOTATION } from "./flags.ts";
import type { KwokNodes } from "./types.ts";

const DEFAULT_COUNT = 3;

function kwokNode(name: string, nodes: KwokNodes): object {
  const capacity = { cpu: nodes.cpu ?? "64", memory: nodes.memory ?? "256Gi", pods: String(nodes.pods ?? 5000) };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      annotations: { [KWOK_NODE_ANNOTATION]: "fake" },
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        ...nodes.labels,
      },
    },
    status: { capacity, allocatable: capacity },
  };
}

/** Registers the nodes as `CLUSTER-node-1`, `-2` and so on; kwok makes them ready. */
export async function createKwokNodes(access: ApiAccess, cluster: string, kinds: readonly KwokNodes[]): Promise<void> {
  const wanted = kinds.flatMap((kind) => Array.from({ length: kind.count ?? DEFAULT_COUNT }, () => kind));
  await Promise.all(
    wanted.map(async (kind, index) => {
      const node = kwokNode(`${cluster}-node-${index + 1}`, kind);
      const answer = await apiRequest(access, "POST", "/api/v1/nodes", { body: node, timeoutMs: 30_000 });
      if (answer.status !== 201) throw new Error(`${cluster}: a node was refused: ${answer.text}`);
    }),
  );
}

/** Deletes the leases of fake nodes, which a killed kwok keeps: the next one would wait for their end. */
export async function releaseKwokLeases(access: ApiAccess, nodes: readonly string[]): Promise<void> {
  const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  await Promise.all(nodes.map((node) => apiRequest(access, "DELETE", `${leases}/${node}`)));
}
