import type { Cluster, JOINED_TWICE } from "../../api/cluster.ts";
import type { KubeNode, Stored } from "../../api/kubernetes.ts";
import type { KubeletEndpoint } from "../../api/virtual-node.ts";
import type { NodeKinds } from "../../placement/node-kinds.ts";

/** What is known of a member by its connection. */
export interface MemberFacts {
  readonly reachable: boolean;
  /** Why it cannot be reached, or has no connection. */
  readonly message?: string;
  /** Another cluster answers in its place, or its member joined under another name already: `message` says so. */
  readonly notMember?: "AnotherCluster" | typeof JOINED_TWICE;
  /** It cannot be reached, and neither can so many others that nothing is to be evicted for it: `2 of 2 members …`. */
  readonly spared?: string;
  readonly version?: string;
  /** Address of its API server; absent: there is no connection. */
  readonly server?: string;
  /** Its nodes have been read since this controller began: what follows is what it has. */
  readonly nodesRead: boolean;
  readonly nodes: number;
  /** Amounts in base units. */
  readonly capacity: Readonly<Record<string, number>>;
  readonly allocatable: Readonly<Record<string, number>>;
  readonly largestNode?: Readonly<Record<string, number>>;
  /** Its nodes in few words; absent: not known, or too many words. */
  readonly nodeKinds?: NodeKinds;
  /** What pods that are not this host's request there; absent: not known. */
  readonly foreign?: Readonly<Record<string, number>>;
  /** What all its nodes declare. */
  readonly features: readonly string[];
  /** Host's proxies bound to its virtual node; undefined: the host's pods have still to be read. */
  readonly proxies: number | undefined;
  /** Host's pods without a node whose delegates are there, or may be, or that are being bound there; 0 unless its Cluster is being deleted. */
  readonly waiting: number;
  /** Delegates there that are kept though the host does not know them; absent: none, or the host's pods are not known. */
  readonly held?: number;
}

/** The kubelet API of the virtual nodes, by the names of their Clusters. */
export interface Kubelets {
  /** Gets ready to serve; rejects when that is not possible yet. */
  start(signal: AbortSignal): Promise<void>;
  /** Serves a node, on `port` if that is free; harmless when it is served. */
  serve(cluster: string, port?: number): Promise<void>;
  /** Serves a node no more. */
  withdraw(cluster: string): Promise<void>;
  /** Where a node is served; undefined while it is not. */
  endpoint(cluster: string): KubeletEndpoint | undefined;
  /** Ends every server and stream. */
  stop(): Promise<void>;
}

/** Pods that a virtual node says can be allocated: `none`, so that no scheduler of the host chooses it, or the member's. */
export const NODE_PODS = ["none", "members"] as const;
export type NodePods = (typeof NODE_PODS)[number];

/** Everything that one decision about a virtual node depends on. */
export interface Observed {
  readonly name: string;
  readonly cluster: Stored<Cluster> | undefined;
  readonly facts: MemberFacts;
  readonly node: Stored<KubeNode> | undefined;
  /** The node that was there before, when somebody has deleted it since this controller began. */
  readonly deleted?: Stored<KubeNode> | undefined;
  readonly endpoint: KubeletEndpoint | undefined;
  readonly nodePods: NodePods;
  /** The host has nodes of its own that the node lifecycle controller counts; undefined: not read yet. */
  readonly hostNodes: boolean | undefined;
  /** When this controller last wrote each; epoch ms. */
  readonly renewedAt: number;
  readonly heartbeatAt: number;
  readonly reportedAt: number;
  /** Why the API server did not take the node, or its labels and taints, as the Cluster wants them. */
  readonly refused?: string | undefined;
}

/** One write. */
export type Action =
  | { readonly type: "createNode"; readonly node: KubeNode }
  /** JSON merge patch of metadata and spec. */
  | { readonly type: "patchNode"; readonly patch: object }
  | { readonly type: "patchNodeStatus"; readonly patch: object }
  | { readonly type: "renewLease"; readonly nodeUid: string }
  | { readonly type: "patchClusterStatus"; readonly status: object }
  | { readonly type: "addFinalizer" }
  | { readonly type: "removeFinalizer" }
  | { readonly type: "deleteNode"; readonly uid: string };
