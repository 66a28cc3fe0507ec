/** Fake nodes played by kwok: they take pods, run nothing, and need no root. */
export interface KwokNodes {
  /** Default 3. */
  readonly count?: number;
  /** Capacity of each node; default 64 cores, 256Gi, 5000 pods. */
  readonly cpu?: string;
  readonly memory?: string;
  readonly pods?: number;
  /** Labels of each node, beside hostname, os and architecture. */
  readonly labels?: Readonly<Record<string, string>>;
}

export type ServiceNetwork = "joined" | "dual-stack" | "alone";

/** Options of one cluster. */
export interface ClusterOptions {
  /** Default: three kwok nodes, or none beside a real one; `[]` for none. Several entries make several kinds of nodes, numbered on. */
  readonly nodes?: readonly KwokNodes[];
  /**
   * A real node (kubelet, containerd, runc), named `CLUSTER-real`, by default in place of fake ones, with the image
   * `localhost/busybox:1`. Throws if `realNodesPossible` gives a reason. Default false.
   */
  readonly realNode?: boolean;
  /** Name of the real node; default `CLUSTER-real`. */
  readonly realNodeName?: string;
  /** Processors that the real node counts, whatever the machine has. Default: the machine's. */
  readonly realNodeCores?: number;
  /**
   * The real node runs kube-proxy and CoreDNS, too, and its pods reach those of other clusters that have this: joined pod networks,
   * of IPv4 or, `dual-stack`, of both families. `alone`: they reach none. Default: without kube-proxy and CoreDNS.
   */
  readonly serviceNetwork?: ServiceNetwork;
  /** Archives of more images for the real node, as `ctr images import` takes them. */
  readonly images?: readonly string[];
  /** More flags of the planes, e.g. `--node-monitor-grace-period=10s`; a later flag wins over a default. */
  readonly apiServerFlags?: readonly string[];
  readonly controllerManagerFlags?: readonly string[];
  readonly schedulerFlags?: readonly string[];
  readonly kwokFlags?: readonly string[];
  /** Log every request at Metadata level to `auditLog`; default true. */
  readonly audit?: boolean;
}

/** The clusters to start. */
export interface StartOptions {
  /** Names of the clusters, DNS labels. */
  readonly names: readonly string[];
  /** Options per cluster name. */
  readonly clusters?: Readonly<Record<string, ClusterOptions>>;
  /** Folder of all files; default: a new temporary one. Removed when the clusters stop. */
  readonly directory?: string;
  /** Network namespace of all processes; default: this process's own. Then only processes in it reach the clusters. */
  readonly networkNamespace?: string;
  /** Leave the clusters running when this process ends; `openClusters(directory).stop()` ends them. Default false. */
  readonly detached?: boolean;
  /** Called with one line for each step; default: silent. */
  readonly onProgress?: (line: string) => void;
}

/** The processes that make one cluster. */
export type Plane = "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler" | "kwok" | "node";

/** Address and credentials of a cluster; plain data. */
export interface ClusterInfo {
  readonly name: string;
  /** Folder with all files of the cluster, e.g. `kube-apiserver.log`. */
  readonly directory: string;
  /** `https://127.0.0.1:PORT` of the API server itself. */
  readonly server: string;
  /** Address of the API server behind the cluster's fault proxy. */
  readonly proxiedServer: string;
  /** PEM of the authority that signed the API server's certificate and its client certificate for kubelets. */
  readonly caData: string;
  readonly caFile: string;
  /** Bearer token of user `admin` in group system:masters. */
  readonly token: string;
  /** Kubeconfig file with that token. */
  readonly kubeconfig: string;
  /** Kubeconfig file through the fault proxy. */
  readonly proxiedKubeconfig: string;
  /** JSON lines of audit.k8s.io/v1 events; missing when auditing is off. */
  readonly auditLog: string;
}

/** Data by which another process controls running clusters. */
export interface ClustersInfo {
  readonly directory: string;
  /** Unix socket that the keeper listens on. */
  readonly socket: string;
  /** Process that started all the others and ends them. */
  readonly keeperPid: number;
  /** The kubectl that fits the clusters. */
  readonly kubectl: string;
  readonly clusters: readonly ClusterInfo[];
}

/** A process of a cluster, controlled from any process. Every call resolves once it has taken effect. */
export interface PlaneHandle {
  /** Ends the process and waits until it is gone; SIGKILL follows when SIGTERM (the default) takes longer than 15 s. */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Starts it again with the same arguments and port; resolves when it is ready. One that is frozen is thawed. */
  start(): Promise<void>;
  /** SIGKILL, then `start`. */
  restart(): Promise<void>;
  /** SIGSTOP: connections are still accepted, no request is answered. */
  freeze(): Promise<void>;
  /** SIGCONT. */
  thaw(): Promise<void>;
}

/** TCP proxy in front of one API server; only those who connect to `proxiedServer` notice. */
export interface FaultProxyHandle {
  /** Resets all connections and refuses new ones. */
  cut(): Promise<void>;
  /** Accepts connections and swallows all bytes of new and existing ones. */
  blackhole(): Promise<void>;
  /** Delays every chunk by `ms` in each direction. */
  slow(ms: number): Promise<void>;
  /** Swallows one direction: `answers` (default; requests still take effect) or `requests`. */
  deaf(direction?: "answers" | "requests"): Promise<void>;
  /** Resets all connections once, then goes on as before. */
  reset(): Promise<void>;
  /** Forwards everything again; connections that lost bytes are reset. */
  heal(): Promise<void>;
}

/** A running cluster. */
export interface Cluster extends ClusterInfo {
  readonly apiServer: PlaneHandle;
  readonly etcd: PlaneHandle;
  readonly controllerManager: PlaneHandle;
  readonly scheduler: PlaneHandle;
  readonly kwok: PlaneHandle;
  /** The real node with all its containers; only where there is one. */
  readonly node: PlaneHandle;
  readonly proxy: FaultProxyHandle;
  /** Takes every fault back: heals the proxy, thaws and starts all that ran once. For `onTestFinished`. */
  mend(): Promise<void>;
}

/** Running clusters, in the order of the names they were started with. */
export interface Clusters extends AsyncDisposable {
  /** Serialisable; `clustersOf` makes the same object of it in another process. */
  readonly info: ClustersInfo;
  readonly all: readonly Cluster[];
  /** Throws when no cluster has this name. */
  get(name: string): Cluster;
  /** Ends every process and removes every file; twice is harmless. */
  stop(): Promise<void>;
}
