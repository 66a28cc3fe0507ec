import type { Readable } from "node:stream";
import type { ClusterClient } from "../kube/client.ts";
import type { Environment } from "./flag.ts";
import type { Terminal } from "./terminal.ts";

/** Which cluster a person means: a kubeconfig file and a context of it. */
export interface ClusterChoice {
  /** Path of a kubeconfig; by default KUBECONFIG, the in-cluster account, or ~/.kube/config. */
  readonly kubeconfig?: string | undefined;
  /** Default: the kubeconfig's current context. */
  readonly context?: string | undefined;
  /** User to act as, e.g. `system:serviceaccount:legation-system:legation-controller`. */
  readonly impersonate?: string | undefined;
}

/** A cluster that the command talks to. */
export interface Connection {
  readonly client: ClusterClient;
  /** The cluster's name in the kubeconfig; absent in a cluster. */
  readonly clusterName?: string;
  /** URL of the API server. */
  readonly server: string;
  /** The API server's certificate authority, PEM; absent when the system's roots vouch for it. */
  readonly certificateAuthority?: string;
  readonly skipsTlsVerify: boolean;
  /** Name that the server's certificate must have, when it is not the URL's. */
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  /** The context's namespace, or `default`. */
  readonly namespace: string;
}

/** Everything a subcommand gets from the process, so that tests can give it something else. */
export interface Session {
  readonly env: Environment;
  readonly stdin: Readable;
  readonly terminal: Terminal;
  /** Fires on Ctrl-C and SIGTERM; its reason is an `Interruption`. */
  readonly signal: AbortSignal;
  /** Opens a cluster; `as` names it in errors. All are closed when the command ends. */
  connect(choice: ClusterChoice, as: string): Promise<Connection>;
  /** Opens a cluster from the text of a kubeconfig. */
  connectText(kubeconfig: string, as: string): Promise<Connection>;
}
