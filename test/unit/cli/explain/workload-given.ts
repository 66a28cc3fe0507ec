import type { ObjectMeta, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { type WorkloadStatus, workloadStatus } from "../../../../src/cli/explain/workload.ts";
import { proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { host, type MemberParts } from "../simulation/host.ts";

export const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-abc", uid: "rs", controller: true };

export function replica(
  name: string,
  node: string | undefined,
  annotations: Record<string, string>,
  extra: object = {},
): Stored<Pod> {
  const metadata: Partial<ObjectMeta> = {
    annotations,
    ownerReferences: [owner],
    labels: { "pod-template-hash": "abc" },
    ...extra,
  };
  return proxyPod({
    name,
    uid: name,
    metadata,
    spec: node === undefined ? {} : { nodeName: node },
    status: node === undefined ? { phase: "Pending" } : runningStatus(),
  });
}

export function status(
  members: Record<string, MemberParts>,
  preferences: object,
  places: (string | undefined)[],
  replicas: number,
  more: Record<string, string> = {},
): WorkloadStatus {
  const annotations = { "legation.dev/scheduling-preferences": JSON.stringify(preferences), ...more };
  const pods = places.map((place, index) => {
    const proxy = replica(`web-abc-${index}`, place === undefined ? undefined : `legation-${place}`, annotations);
    if (place !== undefined) return proxy;
    const message = "east: has 1 of them, its maxReplicas; west: cpu: 8 requested, 4 left";
    const condition = { type: "PodScheduled", status: "False", reason: "NotPlaced", message };
    return { ...proxy, status: { phase: "Pending", conditions: [condition] } };
  });
  const next = replica("web-abc-next", undefined, annotations);
  const facts = { kind: "Deployment", namespace: "team", name: "web", replicas, pods, next };
  return workloadStatus(facts, host(members, { proxies: pods }), Date.parse("2026-01-01T00:00:00Z"));
}
