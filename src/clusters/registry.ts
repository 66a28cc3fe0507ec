import { CLUSTER_DEFAULTS, type Cluster } from "../api/cluster.ts";
import { jsonEqual } from "../api/json.ts";
import { SYSTEM_NAMESPACE } from "../api/keys.ts";
import { type ObjectKey, objectKey, type Secret, type Stored, secretText } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { clusters, secrets } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Holders } from "./holders.ts";
import { Member, type MemberListener } from "./member.ts";
import { Turns } from "./turns.ts";

/** What the registry tells its owner, beside what each member tells. */
export interface RegistryListener extends MemberListener {
  /** A Cluster came, changed or went. */
  onCluster(name: string): void;
  /** Nothing but its status has changed, which this controller itself writes, every few seconds in busy members. */
  onClusterStatus(name: string): void;
  /** Its connection was replaced by one to another address: nothing of it has been read. */
  onReconnected(name: string): void;
}

/** A member's client, and a way to go on with other credentials for the same server. */
export interface MemberConnection {
  readonly client: ClusterClient;
  /** URL of its API server. */
  readonly server: string;
  /** False when the kubeconfig is for another server: then a new connection must be made. Throws when it is unusable. */
  renew(kubeconfig: string): boolean;
}

interface Connected {
  readonly member: Member;
  readonly connection: MemberConnection;
  /** The kubeconfig it uses now. */
  kubeconfig: string;
}

/**
 * One `Member` per Cluster object, made from the kubeconfig in the Secret that it names, and made anew when that
 * Secret's content changes. What cannot be connected has a problem in words instead.
 */
export class Registry {
  readonly #clusters: Reflector<Cluster>;
  readonly #secrets: Reflector<Secret>;
  readonly #connections = new Map<string, Connected>();
  readonly #problems = new Map<string, string>();
  readonly #holders = new Holders();
  readonly #turns = new Turns();
  readonly #listener: MemberListener;
  readonly #options: RegistryOptions;

  constructor(options: RegistryOptions) {
    this.#options = options;
    const { host: client, clock, log, listener } = options;
    this.#listener = {
      onDelegate: (member, key) => {
        this.#holders.note(key, member.name);
        listener.onDelegate(member, key);
      },
      onEnded: (member, delegate) => listener.onEnded(member, delegate),
      onCapacity: (member) => listener.onCapacity(member),
      onPrompt: (member) => listener.onPrompt(member),
      onConnection: (member) => listener.onConnection(member),
    };
    this.#clusters = new Reflector({
      client,
      resource: clusters,
      clock,
      log,
      onEvent: (event) => {
        const { name } = event.object.metadata;
        if (event.type === "updated" && isStatusOnly(event.previous, event.object)) {
          listener.onClusterStatus(name);
          return;
        }
        this.#reconcile(name);
        listener.onCluster(name);
      },
    });
    this.#secrets = new Reflector({
      client,
      resource: secrets,
      namespace: SYSTEM_NAMESPACE,
      clock,
      log,
      onEvent: ({ object }) => this.#onSecret(object),
    });
  }

  /** Starts to watch; resolves when every Cluster there is has its connection or its problem. */
  async start(signal: AbortSignal): Promise<void> {
    this.#secrets.start();
    await this.#secrets.whenSynced(signal);
    this.#clusters.start();
    await this.#clusters.whenSynced(signal);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#clusters.stop(), this.#secrets.stop()]);
    await Promise.all([...this.#connections.values()].map(({ member }) => member.stop()));
    this.#connections.clear();
  }

  cluster(name: string): Stored<Cluster> | undefined {
    return this.#clusters.store.get(objectKey({ name }));
  }

  clusters(): Stored<Cluster>[] {
    return this.#clusters.store.list();
  }

  member(name: string): Member | undefined {
    return this.#connections.get(name)?.member;
  }

  members(): Member[] {
    return [...this.#connections.values()].map(({ member }) => member);
  }

  /** Where the connection to a member leads; undefined when there is none. */
  server(name: string): string | undefined {
    return this.#connections.get(name)?.connection.server;
  }

  /** The Clusters without a connection: what they have, nobody can tell. */
  unconnected(): Stored<Cluster>[] {
    if (this.#problems.size === 0) return [];
    return this.clusters().filter(({ metadata: { name } }) => !this.#connections.has(name));
  }

  /** The members that have, or had, a delegate under the key; a few that have none may be among them. */
  holders(key: ObjectKey): Member[] {
    return this.#holders.of(key).flatMap((name) => this.member(name) ?? []);
  }

  /** Neither proxy nor delegate is left under the key. */
  forget(key: ObjectKey): void {
    for (const member of this.holders(key)) member.delegates.forgetDeparted(key);
    this.#holders.forget(key);
  }

  /** The Secret with the Cluster's kubeconfig. */
  secret(cluster: Stored<Cluster>): Stored<Secret> | undefined {
    return this.#secrets.store.get(
      objectKey({ namespace: SYSTEM_NAMESPACE, name: cluster.spec.credentialsSecret.name }),
    );
  }

  /** Why the Cluster has no connection, or goes on with its old credentials, in words for its author. */
  problem(name: string): string | undefined {
    return this.#problems.get(name);
  }

  #onSecret(secret: Stored<Secret>): void {
    for (const { metadata, spec } of this.clusters()) {
      if (spec.credentialsSecret.name === secret.metadata.name) {
        this.#reconcile(metadata.name);
        this.#options.listener.onCluster(metadata.name);
      }
    }
  }

  #reconcile(name: string): void {
    const cluster = this.cluster(name);
    const existing = this.#connections.get(name);
    if (cluster === undefined) {
      this.#problems.delete(name);
      this.#disconnect(name);
      return;
    }
    if (existing !== undefined) existing.member.cluster = cluster;
    const kubeconfig = this.#kubeconfig(cluster);
    if (typeof kubeconfig !== "string") {
      // The connection that works is kept: a Secret that is being rewritten must not look like a lost member.
      this.#noteProblem(name, kubeconfig.problem);
      return;
    }
    if (existing?.kubeconfig === kubeconfig) {
      this.#problems.delete(name);
      return;
    }
    let connection: MemberConnection;
    try {
      if (existing?.connection.renew(kubeconfig) === true) {
        existing.kubeconfig = kubeconfig;
        this.#problems.delete(name);
        existing.member.noteRenewal();
        return;
      }
      connection = this.#options.connect(name, kubeconfig);
    } catch (error) {
      const { name: secret } = cluster.spec.credentialsSecret;
      const reason = error instanceof Error ? error.message : String(error);
      this.#noteProblem(name, `Secret ${SYSTEM_NAMESPACE}/${secret}: ${reason}`);
      return;
    }
    this.#problems.delete(name);
    this.#disconnect(name);
    const { hostId, clock, log } = this.#options;
    const running = { listener: this.#listener, turns: this.#turns, clock, log };
    const member = new Member({ cluster, client: connection.client, hostId, ...running });
    if (existing !== undefined) member.setVirtualNode(existing.member.virtualNode);
    this.#connections.set(name, { member, connection, kubeconfig });
    // Before anybody looks: what the earlier connection has shown, this one has still to show.
    if (existing !== undefined) this.#options.listener.onReconnected(name);
    member.start();
  }

  #noteProblem(name: string, problem: string): void {
    if (problem !== this.#problems.get(name)) this.#options.log.warn({ member: name }, problem);
    this.#problems.set(name, problem);
  }

  #disconnect(name: string): void {
    const connection = this.#connections.get(name);
    if (connection === undefined) return;
    this.#connections.delete(name);
    connection.member
      .stop()
      .catch((error: unknown) => this.#options.log.warn({ member: name, err: error }, "disconnect failed"));
  }

  #kubeconfig(cluster: Stored<Cluster>): string | { readonly problem: string } {
    const { name, key = CLUSTER_DEFAULTS.credentialsKey } = cluster.spec.credentialsSecret;
    const secret = this.secret(cluster);
    if (secret === undefined)
      return {
        problem: `Secret ${SYSTEM_NAMESPACE}/${name} is missing: run \`legation join ${cluster.metadata.name} --member-kubeconfig FILE\``,
      };
    return secretText(secret, key) ?? { problem: `Secret ${SYSTEM_NAMESPACE}/${name} has no key ${key}` };
  }
}

export interface RegistryOptions {
  readonly host: ClusterClient;
  readonly hostId: string;
  /** Makes the client of a member from its kubeconfig; throws with words for the author when it cannot be used. */
  readonly connect: (name: string, kubeconfig: string) => MemberConnection;
  readonly listener: RegistryListener;
  readonly clock: Clock;
  readonly log: Logger;
}

function isStatusOnly(before: Stored<Cluster>, after: Stored<Cluster>): boolean {
  const written = ({ metadata, spec }: Stored<Cluster>): unknown => {
    const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata;
    return [kept, spec];
  };
  return jsonEqual(written(before), written(after));
}
