import type { Cluster } from "../../api/cluster.ts";
import type { KubeNode, Stored } from "../../api/kubernetes.ts";

/** What is known of a member by its connection. */
export interface MemberFacts {
  readonly reachable: boolean;
  /** Why it cannot be reached, or has no connection. */
  readonly message?: string;
  readonly version?: string;
  readonly nodes: number;
  readonly readyNodes: number;
  /** Amounts in base units. */
  readonly capacity: Readonly<Record<string, number>>;
  readonly allocatable: Readonly<Record<string, number>>;
  /** Host's proxies bound to its virtual node. */
  readonly proxies: number;
}

/** Where the API server finds the kubelet API of the virtual nodes. */
export interface KubeletEndpoint {
  /** IP address or DNS name. */
  readonly address: string;
  readonly port: number;
}

/** Everything that one decision about a virtual node depends on. */
export interface Observed {
  readonly name: string;
  readonly cluster: Stored<Cluster> | undefined;
  readonly facts: MemberFacts;
  readonly node: Stored<KubeNode> | undefined;
  readonly endpoint: KubeletEndpoint | undefined;
  /** When this controller last wrote each; epoch ms. */
  readonly renewedAt: number;
  readonly heartbeatAt: number;
  readonly reportedAt: number;
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
