import { z } from "zod";
import type { Binaries } from "./binaries.ts";
import type { FaultMode } from "./fault-proxy.ts";
import type { NodeBinaries } from "./node/binaries.ts";
import type { ClusterOptions, ClustersInfo, KwokNodes, Plane } from "./types.ts";

/** The keeper's socket in the clusters' folder. */
export const SOCKET_NAME = "keeper.sock";

/** Requests to the keeper, over its socket. */
export type ControlRequest =
  | { readonly action: "down" }
  | { readonly action: "mend"; readonly cluster: string }
  | {
      readonly action: "plane";
      readonly cluster: string;
      readonly plane: Plane;
      readonly verb: "stop" | "kill" | "start" | "restart" | "freeze" | "thaw";
    }
  | { readonly action: "proxy"; readonly cluster: string; readonly mode: FaultMode | { readonly kind: "reset" } };

/** Schema of `ControlRequest`. */
export const controlRequest: z.ZodType<ControlRequest> = z.discriminatedUnion("action", [
  z.object({ action: z.literal("down") }),
  z.object({ action: z.literal("mend"), cluster: z.string() }),
  z.object({
    action: z.literal("plane"),
    cluster: z.string(),
    plane: z.enum(["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "node"]),
    verb: z.enum(["stop", "kill", "start", "restart", "freeze", "thaw"]),
  }),
  z.object({
    action: z.literal("proxy"),
    cluster: z.string(),
    mode: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("forward") }),
      z.object({ kind: z.literal("cut") }),
      z.object({ kind: z.literal("blackhole") }),
      z.object({ kind: z.literal("reset") }),
      z.object({ kind: z.literal("slow"), ms: z.number().positive() }),
      z.object({ kind: z.literal("deaf"), direction: z.enum(["answers", "requests"]) }),
    ]),
  }),
]);

/** The start parameters, in the parent's only message to the keeper. */
export interface KeeperOrder {
  readonly names: readonly string[];
  readonly clusters: Readonly<Record<string, ClusterOptions>>;
  readonly directory: string;
  /** The keeper stays when its parent goes. */
  readonly detached: boolean;
  readonly binaries: Binaries;
  /** Set when any cluster has a real node. */
  readonly nodeBinaries?: NodeBinaries;
}

const kwokNodes: z.ZodType<KwokNodes> = z.object({
  count: z.int().min(0).exactOptional(),
  cpu: z.string().exactOptional(),
  memory: z.string().exactOptional(),
  pods: z.int().exactOptional(),
  labels: z.record(z.string(), z.string()).exactOptional(),
});

const flags = z.array(z.string()).exactOptional();

const clusterOptions: z.ZodType<ClusterOptions> = z.object({
  nodes: z.array(kwokNodes).exactOptional(),
  realNode: z.boolean().exactOptional(),
  realNodeName: z.string().exactOptional(),
  realNodeCores: z.int().min(1).exactOptional(),
  serviceNetwork: z.enum(["joined", "dual-stack", "alone"]).exactOptional(),
  images: z.array(z.string()).exactOptional(),
  apiServerFlags: flags,
  controllerManagerFlags: flags,
  schedulerFlags: flags,
  kwokFlags: flags,
  audit: z.boolean().exactOptional(),
});

/** Schema of `KeeperOrder`. */
export const keeperOrder: z.ZodType<KeeperOrder> = z.object({
  names: z.array(z.string()),
  clusters: z.record(z.string(), clusterOptions),
  directory: z.string(),
  detached: z.boolean(),
  binaries: z.object({
    etcd: z.string(),
    "kube-apiserver": z.string(),
    "kube-controller-manager": z.string(),
    "kube-scheduler": z.string(),
    kubectl: z.string(),
    kwok: z.string(),
    kwokStages: z.string(),
  }),
  nodeBinaries: z
    .object({
      kubelet: z.string(),
      containerd: z.string(),
      runc: z.string(),
      cni: z.string(),
      busybox: z.string(),
      service: z.object({ kubeProxy: z.string(), coredns: z.string() }).exactOptional(),
    })
    .exactOptional(),
});

/** Schema of `ClustersInfo`. */
export const clustersInfo: z.ZodType<ClustersInfo> = z.object({
  directory: z.string(),
  socket: z.string(),
  keeperPid: z.int(),
  kubectl: z.string(),
  clusters: z.array(
    z.object({
      name: z.string(),
      directory: z.string(),
      server: z.string(),
      proxiedServer: z.string(),
      caData: z.string(),
      caFile: z.string(),
      token: z.string(),
      kubeconfig: z.string(),
      proxiedKubeconfig: z.string(),
      auditLog: z.string(),
    }),
  ),
});

/** The keeper's messages to its parent during the start. */
export type KeeperReport =
  | { readonly type: "progress"; readonly line: string }
  | { readonly type: "ready"; readonly info: ClustersInfo }
  | { readonly type: "failed"; readonly message: string };

/** Schema of `KeeperReport`. */
export const keeperReport: z.ZodType<KeeperReport> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("progress"), line: z.string() }),
  z.object({ type: z.literal("ready"), info: clustersInfo }),
  z.object({ type: z.literal("failed"), message: z.string() }),
]);
