import { clusterProxyPath } from "../../api/access.ts";
import { unlessAborted } from "../../kube/abort.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { ClusterCredentials } from "../../kube/credentials.ts";
import type { Environment } from "../../kube/environment-proxy.ts";
import { createClusterClient, type SharedConnections, shareConnections } from "../../kube/http-client.ts";
import { credentialsFromKubeconfigText, loadKubeConfig } from "../../kube/kubeconfig.ts";
import type { ClusterChoice, Connection, ReadingClient } from "./session.ts";

export interface PluginAudience {
  readonly signal: AbortSignal;
  /** Receives a plugin's standard error, which may tell the user how to log in. */
  readonly onPluginStderr: (text: string) => void;
}

/** The clusters that one command talks to. They are closed together. */
export class CommandConnections {
  readonly #env: Environment;
  readonly #userAgent: string;
  readonly #audience: PluginAudience | undefined;
  readonly #clients: ClusterClient[] = [];
  /** Credentials by the user's choice: members that are reached through one host share the run of an exec plugin. */
  readonly #loaded = new Map<string, ClusterCredentials>();
  /** By the credentials of the host through which members are reached. */
  readonly #shared = new Map<ClusterCredentials, SharedConnections>();

  constructor(env: Environment, userAgent: string, audience?: PluginAudience) {
    this.#env = env;
    this.#userAgent = userAgent;
    this.#audience = audience;
  }

  open(choice: ClusterChoice, as: string): Promise<Connection> {
    return this.#connect(this.#load(choice), as);
  }

  /** Opens a cluster from a stored kubeconfig, which may neither run programs nor name files. */
  openText(kubeconfig: string, as: string): Promise<Connection> {
    return this.#connect(
      credentialsFromKubeconfigText(kubeconfig, { allowExec: false, source: as, env: this.#env }),
      as,
    );
  }

  /** Opens a member through the host's API server with the credentials for the host, or without a name the host itself. */
  async openReading(host: ClusterChoice, member?: string): Promise<ReadingClient> {
    const loaded = this.#load(host);
    await kept(Promise.resolve(loaded.identity()), this.#audience?.signal);
    if (member === undefined) return this.#client({ cluster: "host", credentials: loaded });
    const credentials: ClusterCredentials = {
      ...loaded,
      server: loaded.server + clusterProxyPath(member),
      identity: () => loaded.identity(),
      refresh: () => loaded.refresh(),
    };
    const connections = this.#shared.get(loaded) ?? shareConnections(loaded);
    this.#shared.set(loaded, connections);
    return this.#client({ cluster: member, credentials, connections, untrusted: true });
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    const closed = new Error("the command has ended");
    await Promise.all([...this.#shared.values()].map((connections) => connections.destroy(closed)));
  }

  #load(choice: ClusterChoice): ClusterCredentials {
    const { kubeconfig, context, preferredContext, impersonate } = choice;
    const key = JSON.stringify([kubeconfig, context, preferredContext, impersonate]);
    const known = this.#loaded.get(key);
    if (known !== undefined) return known;
    const onPluginStderr = this.#audience?.onPluginStderr;
    const read = loadKubeConfig({ kubeconfig, context, preferredContext, env: this.#env, onPluginStderr });
    const credentials = impersonate === undefined ? read : impersonating(read, impersonate);
    this.#loaded.set(key, credentials);
    return credentials;
  }

  async #connect(credentials: ClusterCredentials, cluster: string): Promise<Connection> {
    const client = this.#client({ cluster, credentials });
    const { clusterName, tlsServerName, proxyUrl, environmentProxyUrl, namespace = "default" } = credentials;
    const first = credentials.identity();
    const { ca } = await kept(Promise.resolve(first), this.#audience?.signal);
    return {
      client,
      server: credentials.server,
      skipsTlsVerify: credentials.insecureSkipTlsVerify,
      namespace,
      clusterName,
      // A file changes while an agent runs. No plugin runs for it.
      get certificateAuthority() {
        const now = first instanceof Promise ? undefined : credentials.identity();
        return now instanceof Promise ? ca : (now?.ca ?? ca);
      },
      tlsServerName,
      proxyUrl,
      environmentProxyUrl,
    };
  }

  #client(
    options: Omit<Parameters<typeof createClusterClient>[0], "userAgent">,
  ): ReturnType<typeof createClusterClient> {
    const client = createClusterClient({ ...options, userAgent: this.#userAgent });
    this.#clients.push(client);
    return client;
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

function impersonating(credentials: ClusterCredentials, user: string): ClusterCredentials {
  return {
    ...credentials,
    identity: async () => {
      const identity = await credentials.identity();
      return { ...identity, headers: { ...identity.headers, "impersonate-user": user } };
    },
  };
}
