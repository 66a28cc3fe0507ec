import type { Cluster } from "../../../../src/api/cluster.ts";
import type { ClusterStatus } from "../../../../src/api/cluster-status.ts";
import type { KubeNode, Namespace, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { HostState } from "../../../../src/simulation/host-state.ts";

/** Parts of a built member. Default: one kind of two nodes with 8 cores each. */
export interface MemberParts {
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: Partial<Cluster["spec"]>;
  readonly status?: Partial<ClusterStatus>;
  readonly node?: KubeNode["spec"];
}

const AT = "2026-01-01T00:00:00Z";

function cluster(name: string, { labels = {}, spec, status }: MemberParts): Stored<Cluster> {
  const allocatable = { cpu: "8", memory: "32Gi", pods: "110" };
  return {
    metadata: { name, labels: { ...labels }, uid: `uid-of-${name}`, resourceVersion: "1" },
    spec: { credentialsSecret: { name: `member-${name}` }, ...spec },
    status: {
      nodes: 2,
      allocatable: { cpu: "16", memory: "64Gi", pods: "220" },
      largestNode: allocatable,
      nodeKinds: [{ count: 2, labels: { disk: "ssd" }, allocatable }],
      unlistedNodeLabels: ["kubernetes.io/hostname"],
      requestedByOthers: {},
      conditions: [
        { type: "Ready", status: "True", reason: "R", message: "its API server answers", lastTransitionTime: AT },
      ],
      ...status,
    },
  };
}

function virtualNode(name: string, spec: KubeNode["spec"] = {}): Stored<KubeNode> {
  return {
    metadata: { name: `legation-${name}`, uid: `node-${name}`, resourceVersion: "1" },
    spec,
    status: { conditions: [{ type: "Ready", status: "True" }] },
  };
}

/** A namespace of the host; opted in as `annotated` unless its labels say otherwise. */
export function namespace(name: string, parts: Partial<Namespace["metadata"]> = {}): Stored<Namespace> {
  const metadata = { labels: { "legation.dev/delegation": "annotated" }, ...parts };
  return { metadata: { ...metadata, name, uid: `uid-of-${name}`, resourceVersion: "1" } };
}

/** A host with these members, and the opted-in namespace `team`. */
export function host(
  members: Readonly<Record<string, MemberParts>>,
  rest: Partial<HostState> & { readonly proxies?: readonly Stored<Pod>[] } = {},
): HostState {
  return {
    clusters: Object.entries(members).map(([name, parts]) => cluster(name, parts)),
    nodes: Object.entries(members).map(([name, { node }]) => virtualNode(name, node)),
    proxies: [],
    namespaces: [namespace("team")],
    defaults: [],
    ...rest,
  };
}
