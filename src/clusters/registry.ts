import { CLUSTER_DEFAULTS, type Cluster } from "../api/cluster.ts";
import { joinCommandOf } from "../api/join-command.ts";
import { jsonEqual } from "../api/json.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../api/keys.ts";
import { type ObjectKey, objectKey, type Secret, type Stored, secretText } from "../api/kubernetes.ts";
import { memoized } from "../api/memoized.ts";
import { clusters } from "../api/resources.ts";
import type { Shard } from "../api/shards.ts";
import type { ClusterClient } from "../kube/client.ts";
import { yieldToEventLoop } from "../kube/event-loop.ts";
import { secrets } from "../kube/resources.ts";
import type { Candidate } from "../placement/candidate.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/event-bus.ts";
import { Mutex } from "../runtime/mutex.ts";
import { Reflector } from "../runtime/reflector.ts";
import { ReverseIndex } from "../runtime/reverse-index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type FoundKubeconfig, MemberConnections, type RenewableConnection } from "./connections.ts";
import { DelegateIndex } from "./delegate-index.ts";
import { isUid, recordedUid } from "./identity.ts";
import { type FoundIdentity, identityKeys, joinedTwice, joinedTwiceProblem } from "./joined-twice.ts";
import { Member } from "./member.ts";
import type { MemberEvents } from "./member-options.ts";

export interface RegistryEvents extends MemberEvents<Member> {
  /** A Cluster was added, updated or deleted. */
  readonly cluster: [name: string];
  /** Only the Cluster's status changed, which this controller itself writes every few seconds. */
  readonly clusterStatus: [name: string];
  /** A Secret of Legation's namespace was added, updated or deleted. */
  readonly secret: [name: string];
  /** The member's connection was replaced by one to another address; nothing was read through it yet. */
  readonly reconnected: [name: string];
}

export interface MemberConnection extends RenewableConnection {
  readonly client: ClusterClient;
  readonly server: string;
}

interface Connected extends RenewableConnection {
  readonly member: Member;
  readonly server: string;
}

// Each member is asked for its candidate this often, as it counts what others use of it for those who ask.
const ASK_EVERY_MS = 1_000;
const NONE_LISTED = { members: [], candidates: [] };

/** The members, one per Cluster, connected with the kubeconfig in the Secret that the Cluster names. */
export class Registry {
  readonly #clusters: Reflector<Cluster>;
  readonly #secrets: Reflector<Secret>;
  readonly #connections: MemberConnections<Connected>;
  /** The identities that members gave, with the kubeconfig that led to each. */
  readonly #found = new Map<string, FoundIdentity & { readonly kubeconfig: string }>();
  #joinedTwice: ReadonlyMap<string, string> = new Map();
  readonly #identityKeys = new ReverseIndex<string, string>();
  readonly #delegateIndex = new DelegateIndex();
  readonly #foreignUsageMutex = new Mutex();
  /** Members of the first list, until each has been started. */
  readonly #unstarted = new Set<Member>();
  /** Members that have another candidate than the one in the list. */
  readonly #outdated = new Set<Member>();
  #listed: { readonly members: readonly Member[]; readonly candidates: readonly Candidate[] } = NONE_LISTED;
  #askAt = Number.NEGATIVE_INFINITY;
  readonly #options: RegistryOptions;

  constructor(options: RegistryOptions) {
    this.#options = options;
    const { host: client, clock, log, events } = options;
    this.#connections = new MemberConnections({
      connect: (cluster, kubeconfig) => this.#connectTo(cluster, kubeconfig),
      onConnected: (cluster, connected, previous) => this.#onConnected(cluster, connected, previous),
      onRenewed: (name) => this.member(name)?.noteRenewal(),
      close: ({ member }) => member.stop(),
      source: ({ spec }) => `Secret ${SYSTEM_NAMESPACE}/${spec.credentialsSecret.name}: `,
      log,
    });
    // Before anyone else hears of the delegate.
    events.on("delegate", (member, key) => this.#delegateIndex.note(key, member.name));
    this.#clusters = new Reflector({
      client,
      resource: clusters,
      clock,
      log,
      onEvent: (event) => {
        const { name } = event.object.metadata;
        if (event.type === "updated" && isStatusOnly(event.previous, event.object)) {
          events.emit("clusterStatus", name);
          return;
        }
        this.#reconcile(name);
        events.emit("cluster", name);
      },
    });
    this.#secrets = new Reflector({
      client,
      resource: secrets,
      namespace: SYSTEM_NAMESPACE,
      clock,
      log,
      onEvent: ({ object }) => {
        this.#onSecret(object);
        events.emit("secret", object.metadata.name);
      },
    });
  }

  /** Resolves when every Cluster has a connection or a problem. The members are read from then on. */
  async start(signal: AbortSignal): Promise<void> {
    this.#secrets.start();
    await this.#secrets.whenSynced(signal);
    this.#clusters.start();
    await this.#clusters.whenSynced(signal);
    void this.#startMembers();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#clusters.stop(), this.#secrets.stop()]);
    await this.#connections.stop();
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

  members(): readonly Member[] {
    return membersOf(this.#connections.all());
  }

  /** Returns the members' candidates in the order of `members`: another list whenever one of them changes. */
  candidates(): readonly Candidate[] {
    const members = this.members();
    const now = this.#options.clock.now();
    if (members !== this.#listed.members || now >= this.#askAt) {
      this.#askAt = now + ASK_EVERY_MS;
      const candidates = members.map((member) => member.candidate());
      const listed = this.#listed;
      const isSame = members === listed.members && candidates.every((one, index) => one === listed.candidates[index]);
      if (!isSame) this.#listed = { members, candidates };
    } else if (this.#outdated.size > 0) {
      const candidates = [...this.#listed.candidates];
      for (const member of this.#outdated) {
        const index = members.indexOf(member);
        if (index !== -1) candidates[index] = member.candidate();
      }
      this.#listed = { members, candidates };
    }
    this.#outdated.clear();
    return this.#listed.candidates;
  }

  server(name: string): string | undefined {
    return this.#connections.get(name)?.server;
  }

  unconnected(): Stored<Cluster>[] {
    if (!this.#connections.hasProblems) return [];
    return this.clusters().filter(({ metadata: { name } }) => this.member(name) === undefined);
  }

  joinedAs(name: string): string | undefined {
    return this.#joinedTwice.get(name);
  }

  /** May include members without the delegate. */
  holders(key: ObjectKey): Member[] {
    return this.#delegateIndex.of(key).flatMap((name) => this.member(name) ?? []);
  }

  /** Drops all records of a key without proxy and delegate. */
  forget(key: ObjectKey): void {
    for (const member of this.holders(key)) member.delegates.forgetDeparted(key);
    this.#delegateIndex.forget(key);
  }

  secret(cluster: Stored<Cluster>): Stored<Secret> | undefined {
    return this.#secrets.store.get(
      objectKey({ namespace: SYSTEM_NAMESPACE, name: cluster.spec.credentialsSecret.name }),
    );
  }

  /** Returns a Secret of Legation's namespace. */
  systemSecret(name: string): Stored<Secret> | undefined {
    return this.#secrets.store.get(objectKey({ namespace: SYSTEM_NAMESPACE, name }));
  }

  /** Returns why the Cluster has no connection, or keeps its old credentials. */
  problem(name: string): string | undefined {
    return this.#connections.problem(name);
  }

  #onSecret(secret: Stored<Secret>): void {
    for (const { metadata, spec } of this.clusters()) {
      if (spec.credentialsSecret.name === secret.metadata.name) {
        this.#reconcile(metadata.name);
        this.#options.events.emit("cluster", metadata.name);
      }
    }
  }

  #reconcile(name: string): void {
    const cluster = this.cluster(name);
    const existing = this.#connections.get(name);
    if (cluster === undefined) {
      this.#connections.forgetProblem(name);
      this.#found.delete(name);
      this.#connections.end(name);
      this.#refuseSecondNames(name);
      return;
    }
    if (existing !== undefined) existing.member.cluster = cluster;
    // A refused Cluster with new credentials may lead to a member of its own.
    else if (this.#found.get(name)?.kubeconfig !== this.#kubeconfig(cluster)) this.#found.delete(name);
    this.#refuseSecondNames(name, name);
    this.#connect(name, cluster);
  }

  #connect(name: string, cluster: Stored<Cluster>): void {
    if (!this.#joinedTwice.has(name)) this.#connections.update(cluster, this.#kubeconfig(cluster));
  }

  #connectTo(cluster: Stored<Cluster>, kubeconfig: string): Connected {
    const { name } = cluster.metadata;
    const connection = this.#options.connect(cluster, kubeconfig);
    const { hostId, shard, events, clock, log } = this.#options;
    const { client, server } = connection;
    const onIdentity = (uid: string | undefined): void => {
      const current = this.#connections.kubeconfig(name);
      if (current !== undefined && this.member(name) === member)
        this.#onIdentity(name, { uid, server, kubeconfig: current });
    };
    const onCandidate = (): void => void this.#outdated.add(member);
    const running = { events, mutex: this.#foreignUsageMutex, clock, log };
    const member = new Member({ cluster, client, hostId, shard, onIdentity, onCandidate, ...running });
    return { member, server, renew: (text) => connection.renew(text) };
  }

  #onConnected({ metadata: { name } }: Stored<Cluster>, { member }: Connected, previous: Connected | undefined): void {
    if (previous !== undefined) {
      member.setVirtualNode(previous.member.virtualNode);
      // Sent before `start`, since the new connection has read nothing yet.
      this.#options.events.emit("reconnected", name);
    }
    if (this.#clusters.store.synced) member.start();
    else this.#unstarted.add(member);
  }

  /** Starts the members of the first list one by one: the answers of a thousand would hold up all that the host answers. */
  async #startMembers(): Promise<void> {
    for (const member of this.#unstarted) {
      if (!member.stopped) member.start();
      await yieldToEventLoop();
    }
    this.#unstarted.clear();
  }

  #onIdentity(name: string, found: FoundIdentity & { readonly kubeconfig: string }): void {
    const before = this.#found.get(name);
    this.#found.set(name, found);
    if (before === undefined || before.uid !== found.uid || before.server !== found.server)
      this.#refuseSecondNames(name);
    if (found.uid !== undefined && isUid(found.uid)) this.#record(name, found.uid);
  }

  /** Records the member that an agent led to first: `join` could not read it, and no other may be taken for it. */
  #record(name: string, memberUid: string): void {
    const cluster = this.cluster(name);
    if (cluster?.spec.agent === undefined || recordedUid(cluster) !== undefined || this.#joinedTwice.has(name)) return;
    const { uid, resourceVersion } = cluster.metadata;
    const body = { metadata: { uid, resourceVersion, annotations: { [MEMBER_UID_ANNOTATION]: memberUid } } };
    // The next check tries again.
    this.#options.host
      .patch(clusters, { name }, { type: "merge", body })
      .catch((err: unknown) => this.#options.log.warn({ member: name, err }, "the member's uid was not recorded"));
  }

  /** Reports whether another Cluster may lead to the same member as this one, or led there before. */
  #sharesMember(name: string): boolean {
    const cluster = this.cluster(name);
    const earlier = this.#identityKeys.delete(name);
    const now = cluster === undefined ? [] : identityKeys({ cluster, found: this.#found.get(name) });
    const isShared = [...earlier, ...now].some((key) => this.#identityKeys.has(key));
    this.#identityKeys.set(name, now);
    return isShared;
  }

  /**
   * Disconnects Clusters whose member joined under another name, and connects those that are no longer refused, except `own`.
   * `changed` is the Cluster of which something changed.
   */
  #refuseSecondNames(changed: string, own?: string): void {
    // All Clusters are compared below, and a thousand of them come at once.
    if (!this.#sharesMember(changed)) return;
    const before = this.#joinedTwice;
    const joined = this.clusters().map((cluster) => ({ cluster, found: this.#found.get(cluster.metadata.name) }));
    this.#joinedTwice = joinedTwice(joined);
    for (const { cluster } of joined) {
      const { name } = cluster.metadata;
      const keeper = this.#joinedTwice.get(name);
      if (keeper === before.get(name)) continue;
      if (keeper === undefined) {
        this.#connections.forgetProblem(name);
        if (name !== own) this.#connect(name, cluster);
      } else {
        this.#connections.end(name);
        this.#connections.noteProblem(name, joinedTwiceProblem(name, keeper));
      }
      if (name !== own) this.#options.events.emit("cluster", name);
    }
  }

  #kubeconfig(cluster: Stored<Cluster>): FoundKubeconfig {
    const { name, key = CLUSTER_DEFAULTS.credentialsKey } = cluster.spec.credentialsSecret;
    const secret = this.secret(cluster);
    if (secret === undefined)
      return {
        problem: `Secret ${SYSTEM_NAMESPACE}/${name} is missing: run \`${joinCommandOf(cluster)}\``,
      };
    const text = secretText(secret, key);
    if (text !== undefined) return text;
    if (cluster.spec.agent === undefined) return { problem: `Secret ${SYSTEM_NAMESPACE}/${name} has no key ${key}` };
    const apply = `apply the manifest of \`${joinCommandOf(cluster)}\` in the member`;
    return { problem: `its agent has not connected yet: ${apply}, and look at the agent's log` };
  }
}

export interface RegistryOptions {
  readonly host: ClusterClient;
  readonly hostId: string;
  readonly shard: Shard;
  /** Throws a message for the operator when the kubeconfig is unusable. */
  readonly connect: (cluster: Stored<Cluster>, kubeconfig: string) => MemberConnection;
  readonly events: Events<RegistryEvents>;
  readonly clock: Clock;
  readonly log: Logger;
}

const membersOf = memoized((connected: readonly Connected[]) => connected.map(({ member }) => member));

function isStatusOnly(before: Stored<Cluster>, after: Stored<Cluster>): boolean {
  const written = ({ metadata, spec }: Stored<Cluster>): unknown => {
    const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata;
    return [kept, spec];
  };
  return jsonEqual(written(before), written(after));
}
