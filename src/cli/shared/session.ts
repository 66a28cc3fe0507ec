import type { Readable } from "node:stream";
import type { ClusterClient, TableReads } from "../../kube/client.ts";
import type { Environment } from "../../kube/environment-proxy.ts";
import type { Terminal } from "./terminal.ts";

/** A user's choice of a cluster: a kubeconfig file and a context of it. */
export interface ClusterChoice {
  /** Path of a kubeconfig; by default KUBECONFIG, the in-cluster account, or ~/.kube/config. */
  readonly kubeconfig?: string | undefined;
  /** Default: the kubeconfig's current context. */
  readonly context?: string | undefined;
  /** Context to use, without one of the user's choice, if the kubeconfig has it. */
  readonly preferredContext?: string | undefined;
  /** User to act as, e.g. `system:serviceaccount:legation-system:legation-controller`. */
  readonly impersonate?: string | undefined;
}

export interface Connection {
  readonly client: ClusterClient;
  /** Name of the cluster in the kubeconfig. Absent with the in-cluster account. */
  readonly clusterName?: string | undefined;
  readonly server: string;
  /** The API server's certificate authority, PEM. Absent if the system's roots vouch for it. */
  readonly certificateAuthority?: string | undefined;
  readonly skipsTlsVerify: boolean;
  /** Name that the server's certificate must have, if not the URL's. */
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  /** The proxy from this process's environment, used without a `proxyUrl`. */
  readonly environmentProxyUrl?: string | undefined;
  /** The context's namespace, or `default`. */
  readonly namespace: string;
}

/** A client of a cluster that is only looked at. */
export type ReadingClient = ClusterClient & TableReads;

/** Everything that a command gets from the process. Tests replace it. */
export interface Session {
  readonly env: Environment;
  readonly stdin: Readable;
  readonly terminal: Terminal;
  /** Fires on Ctrl-C and SIGTERM with an `Interruption` as its reason. */
  readonly signal: AbortSignal;
  /** Opens a cluster, which `as` names in errors. The process closes it when the command ends. */
  connect(choice: ClusterChoice, as: string): Promise<Connection>;
  connectText(kubeconfig: string, as: string): Promise<Connection>;
  /** Opens a member through the host's API server with the user's own credentials there, or without a name the host itself. */
  openReading(host: ClusterChoice, member?: string): Promise<ReadingClient>;
}

/** The host of a command, and how the command reaches members and reports progress. */
export interface HostContext {
  readonly host: ClusterClient;
  readonly connectText: Session["connectText"];
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
}

export function hostContext({ client: host }: Connection, session: Session): HostContext {
  const { connectText, signal, terminal } = session;
  return { host, connectText, signal, report: (line) => terminal.progress(line) };
}
