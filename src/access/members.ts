import {
  ACCESS_ACCOUNT_PREFIX,
  ACCESS_KUBECONFIG_KEY,
  ACCESS_NAMESPACE,
  accessPrefixProblem,
  accessSecretName,
  RELAY_SECRET,
} from "../api/access.ts";
import type { Cluster } from "../api/cluster.ts";
import { SYSTEM_NAMESPACE } from "../api/keys.ts";
import { objectKey, type Secret, type Stored, secretText } from "../api/kubernetes.ts";
import { clusters } from "../api/resources.ts";
import { type FoundKubeconfig, MemberConnections, type RenewableConnection } from "../clusters/connections.ts";
import { type StoredToken, TokenRenewal } from "../clusters/token-renewal.ts";
import type { ClusterClient, Dial, Forwarder } from "../kube/client.ts";
import { renewable } from "../kube/credentials.ts";
import type { Environment } from "../kube/environment-proxy.ts";
import { createClusterClient, createForwarder } from "../kube/http-client.ts";
import { type ClusterCredentials, credentialsFromKubeconfigText } from "../kube/kubeconfig.ts";
import { secrets } from "../kube/resources.ts";
import { tokenClaims } from "../kube/service-account-token.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Relay } from "./relay.ts";

/** A member that takes users' requests. */
export interface AccessMember {
  readonly name: string;
  /** Precedes the names of users and groups in the member. */
  readonly prefix: string;
  readonly forwarder: Forwarder;
  /** Returns why the member does not answer, as the controller has found. Undefined when it does. */
  trouble(): string | undefined;
}

export type FoundMember =
  | { readonly member: AccessMember }
  | {
      readonly member?: never;
      readonly reason: "NotFound" | "Forbidden" | "ServiceUnavailable";
      readonly message: string;
    };

interface Connected extends RenewableConnection {
  readonly forwarder: Forwarder;
}

export interface AccessMembersOptions {
  readonly host: ClusterClient;
  /** Environment of this process, which may name a proxy. */
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: (name: string) => void;
}

/** The members that users reach through the host: each Cluster with `spec.access`, by the kubeconfig in its Secret. */
export class AccessMembers {
  readonly #options: AccessMembersOptions;
  readonly #clusters: Reflector<Cluster>;
  readonly #secrets: Reflector<Secret>;
  readonly #connections: MemberConnections<Connected>;
  readonly #relay = new Relay();
  readonly #renewal: TokenRenewal;

  constructor(options: AccessMembersOptions) {
    this.#options = options;
    const { host: client, clock, log, onChange } = options;
    this.#connections = new MemberConnections({
      connect: (cluster, kubeconfig) => this.#connectTo(cluster.metadata.name, kubeconfig),
      onConnected: ({ metadata }) => this.#renewal.note(metadata.name),
      onRenewed: (name) => this.#renewal.note(name),
      // Ends every request of the member, too: its users' rights may be over.
      close: ({ forwarder }) => forwarder.close(),
      source: () => "",
      log,
    });
    this.#clusters = new Reflector({
      client,
      resource: clusters,
      clock,
      log,
      onEvent: ({ object }) => {
        const { name } = object.metadata;
        this.#reconcile(name);
        onChange(name);
      },
    });
    this.#secrets = new Reflector({
      client,
      resource: secrets,
      namespace: ACCESS_NAMESPACE,
      clock,
      log,
      onEvent: ({ object }) => {
        if (object.metadata.name === RELAY_SECRET) this.#relay.update(this.#secret(RELAY_SECRET));
        for (const { metadata } of this.#clusters.store.list()) this.#reconcile(metadata.name);
      },
    });
    this.#renewal = new TokenRenewal({
      name: "access-token",
      find: (name) => this.#storedToken(name),
      store: async ({ secret, annotations, data }, signal) => {
        const metadata = { ...secret.metadata, annotations: { ...secret.metadata.annotations, ...annotations } };
        // A precondition, as the version comes along: a join may have written other credentials.
        await client.replace(secrets, { ...secret, metadata, data: { ...secret.data, ...data } }, { signal });
      },
      clock,
      log,
    });
  }

  /** Resolves when every Cluster is known. */
  async start(signal: AbortSignal): Promise<void> {
    this.#secrets.start();
    await this.#secrets.whenSynced(signal);
    this.#clusters.start();
    await this.#clusters.whenSynced(signal);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#clusters.stop(), this.#secrets.stop(), this.#renewal.stop()]);
    await this.#connections.stop();
    await this.#relay.close();
  }

  exists(name: string): boolean {
    return this.#cluster(name) !== undefined;
  }

  find(name: string): FoundMember {
    const cluster = this.#cluster(name);
    if (cluster === undefined) return { reason: "NotFound", message: `clusters.legation.dev "${name}" not found` };
    const { access } = cluster.spec;
    if (access === undefined) {
      const message = `Cluster ${name} takes no requests of users: an administrator has to run \`legation join ${name} --access\``;
      return { reason: "Forbidden", message };
    }
    const wrongPrefix = accessPrefixProblem(access.prefix);
    if (wrongPrefix !== undefined) {
      return { reason: "ServiceUnavailable", message: `Cluster ${name}: spec.access.prefix ${wrongPrefix}` };
    }
    const connected = this.#connections.get(name);
    if (connected !== undefined) {
      const { forwarder } = connected;
      return { member: { name, prefix: access.prefix, forwarder, trouble: () => this.#trouble(name) } };
    }
    return {
      reason: "ServiceUnavailable",
      message: `Cluster ${name}: ${this.#connections.problem(name) ?? "it is not connected yet"}`,
    };
  }

  #trouble(name: string): string | undefined {
    const ready = this.#cluster(name)?.status?.conditions?.find(({ type }) => type === "Ready");
    return ready === undefined || ready.status === "True" ? undefined : ready.message;
  }

  #cluster(name: string): Stored<Cluster> | undefined {
    return this.#clusters.store.get(objectKey({ name }));
  }

  #reconcile(name: string): void {
    const cluster = this.#cluster(name);
    const kubeconfig = cluster?.spec.access === undefined ? undefined : this.#kubeconfig(name);
    // Without its Secret a member is closed to users, too.
    if (cluster === undefined || typeof kubeconfig !== "string") {
      this.#connections.end(name);
      if (typeof kubeconfig === "object") this.#connections.noteProblem(name, kubeconfig.problem);
      return;
    }
    this.#connections.update(cluster, kubeconfig);
  }

  #connectTo(name: string, kubeconfig: string): Connected {
    const credentials = renewable(this.#read(name, kubeconfig));
    const forwarder = createForwarder({ cluster: name, credentials: credentials.credentials, ...this.#way(name) });
    return { forwarder, renew: (text) => credentials.renew(this.#read(name, text)) };
  }

  /** Returns the token by which a member is reached. Undefined if users do not reach it. */
  #storedToken(name: string): StoredToken | undefined {
    const secret = this.#connections.get(name) && this.#secret(accessSecretName(name));
    if (secret === undefined) return undefined;
    const connect: StoredToken["connect"] = (kubeconfig) => {
      const credentials = this.#read(name, kubeconfig);
      const client = createClusterClient({ cluster: name, credentials, untrusted: true, ...this.#way(name) });
      return { client, close: () => client.close() };
    };
    return { secret, key: ACCESS_KUBECONFIG_KEY, connect };
  }

  #hasAgent(name: string): boolean {
    return this.#cluster(name)?.spec.agent !== undefined;
  }

  /** Returns how the member is reached where its address is not. */
  #way(name: string): { readonly dial?: Dial } {
    return this.#hasAgent(name) ? { dial: this.#relay.dial(name) } : {};
  }

  #secret(name: string): Stored<Secret> | undefined {
    return this.#secrets.store.get(objectKey({ namespace: ACCESS_NAMESPACE, name }));
  }

  #read(name: string, kubeconfig: string): ClusterCredentials {
    const source = `Secret ${ACCESS_NAMESPACE}/${accessSecretName(name)}`;
    const account = tokenClaims(kubeconfig);
    // Any other account has rights of its own, with which a request might be answered.
    if (account?.namespace !== SYSTEM_NAMESPACE || !account.name.startsWith(ACCESS_ACCOUNT_PREFIX)) {
      throw new Error(
        `${source} has no token of ${SYSTEM_NAMESPACE}/${ACCESS_ACCOUNT_PREFIX}…: run \`legation join ${name} --access\` again`,
      );
    }
    return credentialsFromKubeconfigText(kubeconfig, { allowExec: false, source, env: this.#options.env });
  }

  #kubeconfig(name: string): FoundKubeconfig {
    const secret = accessSecretName(name);
    const stored = this.#secret(secret);
    const text = secretText(stored, ACCESS_KUBECONFIG_KEY);
    if (text !== undefined) return text;
    const lacking = stored === undefined ? "is missing" : `has no key ${ACCESS_KUBECONFIG_KEY}`;
    return { problem: `Secret ${ACCESS_NAMESPACE}/${secret} ${lacking}: run \`legation join ${name} --access\` again` };
  }
}
