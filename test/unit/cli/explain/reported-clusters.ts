import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { cluster as clusterNamed } from "../../../support/builders/member.ts";

export function cluster(
  name: string,
  parts: Partial<Omit<Cluster, "metadata">> & { deleted?: boolean } = {},
): Stored<Cluster> {
  const { deleted = false, ...rest } = parts;
  const metadata = {
    creationTimestamp: "2026-01-01T00:00:00Z",
    ...(deleted ? { deletionTimestamp: "2026-01-01T00:30:00Z" } : {}),
  };
  return { ...clusterNamed(name, { metadata, status: ready("True") }), ...rest };
}

export function ready(status: "True" | "False", message = "its API server answers"): NonNullable<Cluster["status"]> {
  return {
    version: "v1.36.3",
    nodes: 3,
    allocatable: { cpu: "8", memory: "16Gi", pods: "110" },
    conditions: [{ type: "Ready", status, reason: "R", message, lastTransitionTime: "2026-01-01T00:00:00Z" }],
  };
}
