import type { Cluster } from "../../../../src/api/cluster.ts";
import type { ClusterCondition, ClusterStatus } from "../../../../src/api/cluster-status.ts";
import type { ClusterProfile, Stored } from "../../../../src/api/kubernetes.ts";
import type { HostAddress } from "../../../../src/controllers/cluster-profiles/decide-status.ts";

export const NOW: number = Date.parse("2026-02-03T00:00:00Z");
export const HOST_ADDRESS: HostAddress = { server: "https://host:6443", certificateAuthorityData: "Q0E=" };

/** A Cluster whose member answers and has its door open. */
export function cluster(
  parts: { readonly metadata?: object; readonly spec?: object; readonly status?: ClusterStatus } = {},
): Stored<Cluster> {
  return {
    metadata: {
      name: "west",
      uid: "cluster-uid",
      resourceVersion: "1",
      labels: { region: "eu" },
      annotations: { "legation.dev/member-uid": "member-uid" },
      ...parts.metadata,
    },
    spec: { credentialsSecret: { name: "member-west" }, access: { prefix: "legation:" }, ...parts.spec },
    status: parts.status ?? ready("ProbeSucceeded"),
  };
}

/** The status of a Cluster whose Ready condition has this reason. */
export function ready(reason: string, more: ClusterStatus = { version: "v1.36.3" }): ClusterStatus {
  const status = reason === "ProbeSucceeded" ? "True" : "False";
  const lastTransitionTime = "2026-02-01T00:00:00Z";
  const condition: ClusterCondition = { type: "Ready", status, reason, message: `${reason} x`, lastTransitionTime };
  return { ...more, conditions: [condition] };
}

/** A stored profile of that Cluster, as Legation makes it. */
export function profile(parts: Partial<ClusterProfile> = {}): Stored<ClusterProfile> {
  return {
    apiVersion: "multicluster.x-k8s.io/v1alpha1",
    spec: { displayName: "west", clusterManager: { name: "legation" } },
    ...parts,
    metadata: {
      namespace: "legation-system",
      name: "west",
      uid: "profile-uid",
      resourceVersion: "5",
      labels: { "x-k8s.io/cluster-manager": "legation" },
      ownerReferences: [{ apiVersion: "legation.dev/v1alpha1", kind: "Cluster", name: "west", uid: "cluster-uid" }],
      ...parts.metadata,
    },
  };
}
