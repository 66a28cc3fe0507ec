import { join } from "node:path";
import type { ServiceNetwork } from "../types.ts";
import type { NodeBinaries } from "./binaries.ts";

/** Names of the one image that every real node has; nothing is ever pulled. */
export const NODE_IMAGES = ["localhost/busybox:1", "localhost/pause:1"] as const;

/**
 * Addresses of one cluster with a real node, in ranges that the machine does not route. Each has a slot from 0 to 15.
 */
export interface Addresses {
  readonly slot: number;
  /** First address of the service range: what pods find in KUBERNETES_SERVICE_HOST. */
  readonly api: string;
  readonly node: string;
  /** Service address of the cluster's name server. */
  readonly dns: string;
  /** Prefix length of the addresses `api` and `node`, of the link between machine and node. */
  readonly prefixLength: number;
  readonly pods: string;
  /** Those of IPv6, which nodes have whose `serviceNetwork` is `dual-stack`. */
  readonly ipv6: { readonly machine: string; readonly node: string; readonly pods: string };
  /** Name of the link on the machine's side. */
  readonly link: string;
  /** Parent of the cgroups of all pods of the node. */
  readonly cgroup: string;
}

/** Pod addresses of all slots. */
export const POD_RANGE = "10.112.0.0/12";

/** IPv6 addresses of all slots: of nodes and Services, and of pods. */
export const IPV6_RANGES = { services: "fd00:96::/32", pods: "fd00:112::/32" } as const;

/** Reports whether the node's pods reach those of other clusters. */
export function isJoined(network: ServiceNetwork | undefined): boolean {
  return network === "joined" || network === "dual-stack";
}

/** The most clusters with real pods on one machine. */
export const SLOTS = 16;

/** The addresses of a slot. */
export function addressesOf(slot: number): Addresses {
  return {
    slot,
    api: `10.${96 + slot}.0.1`,
    node: `10.${96 + slot}.0.2`,
    dns: `10.${96 + slot}.0.10`,
    prefixLength: 30,
    pods: `10.${112 + slot}.0.0/16`,
    ipv6: { machine: `fd00:96:${slot}::1`, node: `fd00:96:${slot}::2`, pods: `fd00:112:${slot}::/64` },
    link: `legation${slot}`,
    cgroup: `/legation${slot}`,
  };
}

/** The inputs of the node's files. */
export interface NodeFiles {
  /** Folder of the node. */
  readonly directory: string;
  readonly clusterDirectory: string;
  readonly nodeName: string;
  readonly addresses: Addresses;
  readonly binaries: NodeBinaries;
  /** Processors that the kubelet counts; undefined for the machine's. */
  readonly cores: number | undefined;
  /** Archives of images beside the node's own. */
  readonly images: readonly string[];
  readonly serviceNetwork: ServiceNetwork | undefined;
}

/** containerd's configuration; its state is under the node's own /run. */
export function containerdConfig({ directory, binaries }: NodeFiles): string {
  return `version = 3
root = "${join(directory, "containerd")}"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.runtime"]
  # A sandbox may lack CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["${binaries.cni}"]
  conf_dir = "${join(directory, "cni")}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "${binaries.runc}"
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_port = "0"
`;
}

/** CNI: a bridge for the pods, with a way to the services' addresses, and to the pods of joined networks, and nowhere else. */
export function cniConfig({ directory, addresses, serviceNetwork }: NodeFiles): string {
  const isDualStack = serviceNetwork === "dual-stack";
  return JSON.stringify({
    cniVersion: "1.0.0",
    name: "pods",
    plugins: [
      {
        type: "bridge",
        bridge: "pods",
        isGateway: true,
        // Pods reach themselves by a Service.
        hairpinMode: true,
        ipMasq: false,
        ipam: {
          type: "host-local",
          ranges: [addresses.pods, ...(isDualStack ? [addresses.ipv6.pods] : [])].map((subnet) => [{ subnet }]),
          dataDir: join(directory, "ipam"),
          routes: [
            { dst: "10.96.0.0/12" },
            ...(isJoined(serviceNetwork) ? [{ dst: POD_RANGE }] : []),
            ...(isDualStack ? Object.values(IPV6_RANGES).map((dst) => ({ dst })) : []),
          ],
        },
      },
      { type: "loopback" },
    ],
  });
}

/** The kubelet's configuration. */
export function kubeletConfig({ directory, clusterDirectory, addresses, serviceNetwork }: NodeFiles): string {
  return JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: addresses.node,
    healthzPort: 0,
    authentication: {
      anonymous: { enabled: false },
      // The token of a metrics server.
      webhook: { enabled: true },
      x509: { clientCAFile: join(clusterDirectory, "pki", "ca.crt") },
    },
    // Accepts any certificate of the cluster's CA as the API server's.
    authorization: { mode: "AlwaysAllow" },
    containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
    cgroupDriver: "cgroupfs",
    // Nodes of the same machine have theirs beside it.
    cgroupRoot: addresses.cgroup,
    // A kubelet without a cgroup per pod panics at a resize.
    cgroupsPerQOS: true,
    enforceNodeAllocatable: [],
    // Version 1 of the cgroups will do.
    failCgroupV1: false,
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    podLogsDir: join(directory, "logs"),
    volumePluginDir: join(directory, "volume-plugins"),
    // The node reaches no name server.
    resolvConf: "",
    // ConfigMaps and Secrets that change come to running containers with this; a minute by default.
    syncFrequency: "10s",
    clusterDomain: "cluster.local",
    ...(serviceNetwork === undefined ? {} : { clusterDNS: [addresses.dns] }),
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: { "memory.available": "50Mi" },
  });
}
