import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";

export function cluster(
  name: string,
  parts: Partial<Omit<Cluster, "metadata">> & { deleted?: boolean } = {},
): Stored<Cluster> {
  const { deleted = false, ...rest } = parts;
  return {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: {
      name,
      uid: `uid-of-${name}`,
      resourceVersion: "1",
      creationTimestamp: "2026-01-01T00:00:00Z",
      ...(deleted ? { deletionTimestamp: "2026-01-01T00:30:00Z" } : {}),
    },
    spec: { credentialsSecret: { name: `member-${name}` } },
    status: ready("True"),
    ...rest,
  };
}

export function ready(status: "True" | "False", message = "its API server answers"): NonNullable<Cluster["status"]> {
  return {
    version: "v1.36.3",
    nodes: 3,
    allocatable: { cpu: "8", memory: "16Gi", pods: "110" },
    conditions: [{ type: "Ready", status, reason: "R", message, lastTransitionTime: "2026-01-01T00:00:00Z" }],
  };
}
