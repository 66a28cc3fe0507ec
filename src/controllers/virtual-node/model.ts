import type { Cluster } from "../../api/cluster.ts";
import type { AgentStatus, DevicesStatus, JOINED_TWICE } from "../../api/cluster-status.ts";
import type { KubeNode, NodeStatus, Stored } from "../../api/kubernetes.ts";
import type { KubeletEndpoint } from "../../api/virtual-node.ts";
import type { NodeKinds } from "../../placement/node-kinds.ts";

export interface NodeFacts {
  readonly reachable: boolean;
  /** The API server answers the probe. A member that answers is reachable once its pods were read, or that takes long. */
  readonly answers?: boolean;
  /** The list of the member that takes long, while its API server answers. Absent: none does. */
  readonly slow?: string;
  readonly message?: string;
  /** Another cluster answers in its place, or its member joined under another name already: `message` says so. */
  readonly notMember?: "AnotherCluster" | typeof JOINED_TWICE;
  /** Too many members are lost at once, so nothing is evicted for this one: `2 of 2 members …`. Absent: not so. */
  readonly spared?: string;
  readonly version?: string;
  readonly server?: string;
  /** The connected agent. Absent: none, or it has not told of itself yet. */
  readonly agent?: AgentStatus;
  /** The member's nodes have been read since this controller began, so the fields below are current. */
  readonly nodesRead: boolean;
  readonly nodes: number;
  readonly capacity: Readonly<Record<string, number>>;
  readonly allocatable: Readonly<Record<string, number>>;
  readonly largestNode?: Readonly<Record<string, number>>;
  /** Kinds of its nodes. Absent: not known, or too many. */
  readonly nodeKinds?: NodeKinds;
  /** Requests of the member's pods that are not this host's. Absent: not known. */
  readonly foreign?: Readonly<Record<string, number>>;
  /** Absent: not known. */
  readonly devices?: DevicesStatus;
  readonly features: readonly string[];
  /** Proxies bound to its virtual node. Undefined: the host's pods are not read yet. */
  readonly proxies: number | undefined;
  /** Proxies bound to it that have not ended, and those of them that run. */
  readonly unfinished: number | undefined;
  readonly running: number | undefined;
  /** Requests of the proxies that have not ended. */
  readonly requested: Readonly<Record<string, number>> | undefined;
  /** Pods without a node that have, or may have, a delegate in the member or are being bound to it. 0 unless its Cluster is being deleted. */
  readonly waiting: number;
  /** Why the member is left out of its network. Absent: it is not, or it is not connected. */
  readonly networkProblem?: string | undefined;
  /** Held delegates in the member. Absent: none, or the host's pods are not read yet. */
  readonly held?: number;
}

/** The kubelet API of the virtual nodes, by the names of their Clusters. */
export interface Kubelets {
  start(signal: AbortSignal): Promise<void>;
  /** Serves a node, on `port` if that is free. No effect if it is served already. */
  serve(cluster: string, port?: number): Promise<void>;
  withdraw(cluster: string): Promise<void>;
  endpoint(cluster: string): KubeletEndpoint | undefined;
  stop(): Promise<void>;
}

/** Allocatable pods of a virtual node: `none`, so that no scheduler of the host chooses it, or the member's number. */
export const NODE_PODS = ["none", "members"] as const;
export type NodePods = (typeof NODE_PODS)[number];

export interface Observed {
  readonly name: string;
  readonly cluster: Stored<Cluster> | undefined;
  readonly facts: NodeFacts;
  readonly node: Stored<KubeNode> | undefined;
  /** The last state of a node that a client deleted since this controller began. */
  readonly deleted?: Stored<KubeNode> | undefined;
  readonly endpoint: KubeletEndpoint | undefined;
  /** A new leader has not read the member yet. Of the node, only the endpoint is known. Default false. */
  readonly unread?: boolean;
  readonly nodePods: NodePods;
  /** The number of all members. */
  readonly members: number;
  /** The host has nodes of its own that the node lifecycle controller counts. Undefined: not read yet. */
  readonly hostNodes: boolean | undefined;
  /** Times of this controller's last writes; epoch ms. */
  readonly renewedAt: number;
  readonly heartbeatAt: number;
  readonly reportedAt: number;
  /** The declared features that this controller wrote last. Undefined: none yet. */
  readonly features?: readonly string[] | undefined;
  /** The API server's reason for refusing the node, or the labels and taints that the Cluster wants. */
  readonly refused?: string | undefined;
}

export type Action =
  | { readonly type: "createNode"; readonly node: KubeNode }
  /** JSON merge patch of metadata and spec. */
  | { readonly type: "patchNode"; readonly patch: object }
  | { readonly type: "patchNodeStatus"; readonly patch: { readonly status: Pick<NodeStatus, "declaredFeatures"> } }
  | { readonly type: "patchNodeEndpoint"; readonly patch: object }
  | { readonly type: "renewLease"; readonly nodeUid: string }
  | { readonly type: "patchClusterStatus"; readonly status: object }
  | { readonly type: "addFinalizer" }
  | { readonly type: "removeFinalizer" }
  | { readonly type: "deleteNode"; readonly uid: string };
