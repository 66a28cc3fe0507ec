import type { Cluster } from "../../../../src/api/cluster.ts";
import { CLUSTER_FINALIZER } from "../../../../src/api/keys.ts";
import type { KubeNode, Stored } from "../../../../src/api/kubernetes.ts";
import { desiredNode } from "../../../../src/controllers/virtual-node/decide-node.ts";
import type { Action, NodeFacts, Observed } from "../../../../src/controllers/virtual-node/model.ts";

export const now: number = Date.parse("2026-02-03T04:05:06Z");

export function facts(parts: Partial<NodeFacts> = {}): NodeFacts {
  const amounts = { cpu: 128, memory: 2 ** 39, pods: 10_000 };
  return {
    reachable: true,
    version: "v1.36.3",
    nodes: 2,
    capacity: amounts,
    allocatable: amounts,
    features: [],
    nodesRead: true,
    proxies: 0,
    unfinished: undefined,
    running: undefined,
    requested: undefined,
    waiting: 0,
    ...parts,
  };
}

export function cluster(metadata: Partial<Cluster["metadata"]> = {}, status?: Cluster["status"]): Stored<Cluster> {
  return {
    metadata: {
      name: "west",
      uid: "c",
      resourceVersion: "1",
      generation: 1,
      finalizers: [CLUSTER_FINALIZER],
      ...metadata,
    },
    spec: { credentialsSecret: { name: "member-west" } },
    ...(status === undefined ? {} : { status }),
  };
}

export function observed(parts: Partial<Observed> = {}): Observed {
  return {
    name: "west",
    cluster: cluster({ labels: { region: "eu", "kubernetes.io/os": "linux" } }),
    facts: facts(),
    node: undefined,
    endpoint: { address: "10.0.0.5", port: 10250 },
    nodePods: "none",
    members: 2,
    hostNodes: true,
    renewedAt: now,
    heartbeatAt: now,
    reportedAt: now,
    ...parts,
  };
}

/** Returns the node as the API server stores it, with canonical quantities. */
export function stored(
  parts: { spec?: KubeNode["spec"]; labels?: Record<string, string>; annotations?: Record<string, string> } = {},
): Stored<KubeNode> {
  const node = desiredNode(observed(), now);
  const amounts = { cpu: "128", memory: "512Gi", pods: "10k" };
  return {
    ...node,
    metadata: { ...node.metadata, name: "legation-west", uid: "n", resourceVersion: "1", ...parts },
    spec: { ...node.spec, ...parts.spec },
    status: { ...node.status, capacity: amounts, allocatable: { ...amounts, pods: "0" } },
  };
}

export const ready: NonNullable<Cluster["status"]> = {
  observedGeneration: 1,
  connection: "Direct" as const,
  version: "v1.36.3",
  nodes: 2,
  pods: 0,
  capacity: { cpu: "128", memory: "536870912Ki", pods: "10000" },
  allocatable: { cpu: "128", memory: "536870912Ki", pods: "10000" },
  conditions: [
    {
      type: "Ready",
      status: "True" as const,
      reason: "ProbeSucceeded",
      message: "its API server answers",
      lastTransitionTime: "x",
    },
  ],
};

export function types(actions: readonly Action[]): string[] {
  return actions.map(({ type }) => type);
}
