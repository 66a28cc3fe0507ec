import { unlessAborted } from "../kube/abort.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { ClusterCredentials } from "../kube/credentials.ts";
import { createClusterClient } from "../kube/http-client.ts";
import { credentialsFromKubeconfigText, loadKubeConfig } from "../kube/kubeconfig.ts";
import type { Environment } from "./flag.ts";
import type { ClusterChoice, Connection } from "./session.ts";

/** The user who waits for a kubeconfig's exec plugin. */
export interface PluginAudience {
  /** Ends the wait for a plugin, which goes with this process then. */
  readonly signal: AbortSignal;
  /** Gets what a plugin writes to its standard error: perhaps what the person has to do to log in. */
  readonly onPluginStderr: (text: string) => void;
}

/** All clusters that one command talks to; closed together when it ends. */
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

  /** Opens the cluster that a person chose. */
  open({ kubeconfig, context, impersonate }: ClusterChoice, as: string): Promise<Connection> {
    const chosen = {
      ...(kubeconfig === undefined ? {} : { kubeconfig }),
      ...(context === undefined ? {} : { context }),
    };
    const credentials = loadKubeConfig({
      ...chosen,
      env: this.#env,
      onPluginStderr: this.#audience?.onPluginStderr,
    });
    return this.#connect(impersonate === undefined ? credentials : impersonating(credentials, impersonate), as);
  }

  /** Opens a cluster from a stored kubeconfig, which may neither run programs nor name files here. */
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
    const identity = credentials.identity();
    // Credentials without a plugin are available at once, also for the undo after an interruption.
    const { ca } = identity instanceof Promise ? await kept(identity, this.#audience?.signal) : identity;
    return {
      client,
      server: credentials.server,
      skipsTlsVerify: credentials.insecureSkipTlsVerify,
      namespace,
      ...(clusterName === undefined ? {} : { clusterName }),
      ...(ca === undefined ? {} : { certificateAuthority: ca }),
      ...(tlsServerName === undefined ? {} : { tlsServerName }),
      ...(proxyUrl === undefined ? {} : { proxyUrl }),
    };
  }
}

/** Waits for what does not keep this process alive by itself: a plugin, which has a deadline of its own. */
async function kept<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const timer = setInterval(() => {}, LONG_MS);
  try {
    return await (signal === undefined ? promise : unlessAborted(promise, signal));
  } finally {
    clearInterval(timer);
  }
}

const LONG_MS = 2 ** 30;

/** The same credentials, acting as another user; the API server checks that they may. */
function impersonating(credentials: ClusterCredentials, user: string): ClusterCredentials {
  return {
    ...credentials,
    identity: async () => {
      const identity = await credentials.identity();
      return { ...identity, headers: { ...identity.headers, "impersonate-user": user } };
    },
  };
}
