import { unlessAborted } from "../../kube/abort.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { ClusterCredentials } from "../../kube/credentials.ts";
import { createClusterClient } from "../../kube/http-client.ts";
import { credentialsFromKubeconfigText, loadKubeConfig } from "../../kube/kubeconfig.ts";
import type { ClusterChoice, Connection, Environment } from "./session.ts";

/** The user who waits for an exec plugin. */
export interface PluginAudience {
  /** Ends the wait for a plugin. */
  readonly signal: AbortSignal;
  /** Receives a plugin's standard error, which may tell the user how to log in. */
  readonly onPluginStderr: (text: string) => void;
}

/** The clusters that one command talks to. They are closed together. */
export class Connections {
  readonly #env: Environment;
  readonly #userAgent: string;
  readonly #audience: PluginAudience | undefined;
  readonly #clients: ClusterClient[] = [];

  constructor(env: Environment, userAgent: string, audience?: PluginAudience) {
    this.#env = env;
    this.#userAgent = userAgent;
    this.#audience = audience;
  }

  /** Opens the cluster that the user chose. */
  open({ kubeconfig, context, preferredContext, impersonate }: ClusterChoice, as: string): Promise<Connection> {
    const onPluginStderr = this.#audience?.onPluginStderr;
    const credentials = loadKubeConfig({ kubeconfig, context, preferredContext, env: this.#env, onPluginStderr });
    return this.#connect(impersonate === undefined ? credentials : impersonating(credentials, impersonate), as);
  }

  /** Opens a cluster from a stored kubeconfig, which may neither run programs nor name files. */
  openText(kubeconfig: string, as: string): Promise<Connection> {
    return this.#connect(
      credentialsFromKubeconfigText(kubeconfig, { allowExec: false, source: as, env: this.#env }),
      as,
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async #connect(credentials: ClusterCredentials, cluster: string): Promise<Connection> {
    const client = createClusterClient({ cluster, credentials, userAgent: this.#userAgent });
    this.#clients.push(client);
    const { clusterName, tlsServerName, proxyUrl, namespace = "default" } = credentials;
    const { ca } = await kept(Promise.resolve(credentials.identity()), this.#audience?.signal);
    return {
      client,
      server: credentials.server,
      skipsTlsVerify: credentials.insecureSkipTlsVerify,
      namespace,
      clusterName,
      certificateAuthority: ca,
      tlsServerName,
      proxyUrl,
    };
  }
}

/** Waits for a promise, and keeps the process alive meanwhile, which a plugin alone does not. */
export async function kept<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  const timer = setInterval(() => {}, LONG_MS);
  try {
    return await (signal === undefined ? promise : unlessAborted(promise, signal));
  } finally {
    clearInterval(timer);
  }
}

const LONG_MS = 2 ** 30;

/** Returns the credentials with impersonation of another user. */
function impersonating(credentials: ClusterCredentials, user: string): ClusterCredentials {
  return {
    ...credentials,
    identity: async () => {
      const identity = await credentials.identity();
      return { ...identity, headers: { ...identity.headers, "impersonate-user": user } };
    },
  };
}
