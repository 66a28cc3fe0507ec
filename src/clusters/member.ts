import { getHeapStatistics } from "node:v8";
import type { Cluster } from "../api/cluster.ts";
import { jsonEqual } from "../api/json.ts";
import type { KubeNode, Stored } from "../api/kubernetes.ts";
import type { Amounts } from "../api/quantity.ts";
import { ALL_NAMESPACES } from "../api/shards.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError, type KubeError } from "../kube/errors.ts";
import { ByteBudget } from "../kube/limits.ts";
import type { Candidate } from "../placement/candidate.ts";
import { candidateOf } from "../placement/member-candidate.ts";
import type { NodeKinds } from "../placement/node-kinds.ts";
import type { Events } from "../runtime/event-bus.ts";
import { Mutex } from "../runtime/mutex.ts";
import type { Rest } from "../runtime/reflector.ts";
import { confirmedClient } from "./confirmed-client.ts";
import { CreateThrottle } from "./create-throttle.ts";
import { CurrentCandidate } from "./current-candidate.ts";
import { DelegateRequests } from "./delegate-requests.ts";
import { type ForeignByNode, ForeignUsage, recordedForeignUsage } from "./foreign-usage.ts";
import { JoinedIdentity, recordedUid } from "./identity.ts";
import { KnownDevices } from "./known-devices.ts";
import { LatencyMonitor, UnresponsiveTime } from "./latency-monitor.ts";
import { MemberDelegates } from "./member-delegates.ts";
import { MemberNodes } from "./member-nodes.ts";
import type { MemberEvents, MemberOptions } from "./member-options.ts";
import { fitsLargest, type NodeTotals } from "./node-totals.ts";
import { Probe, type ProbeResult, probeSettingsOf, Reachability } from "./probe.ts";
import { connectionState, isSyncing, type VirtualNode, whyClosed } from "./readiness.ts";
import { shardClient } from "./shard-client.ts";
import { type Unreadable, WatchHealth, type WatchHealthOptions } from "./watch-health.ts";

// The objects of a member may fill this share of the heap, so that it cannot exhaust the memory for all.
const SHARE_OF_HEAP = 0.5;

/** The connection to one member. Shares no connection, queue or deadline with others: a hanging member delays none. */
export class Member {
  readonly name: string;
  /** Sends nothing to a cluster other than the one that joined. */
  readonly client: ClusterClient;
  /** Like `client`, and shows the objects of all shards. */
  readonly everywhere: ClusterClient;
  readonly watches: Set<{ readonly plural?: string; retry(): void; need?(): void }> = new Set();
  readonly rest: Omit<Rest, "spreadMs"> = { mutex: new Mutex(), share: Math.random() };
  readonly delegates: MemberDelegates;
  readonly requests: DelegateRequests = new DelegateRequests(
    (requests) => fitsLargest(requests, this.nodeTotals.largestNode, this.devices.known),
    () => this.#candidate.noteAmounts(),
  );
  readonly devices: KnownDevices = new KnownDevices(() => this.#nodes.touch());
  readonly memory: ByteBudget = new ByteBudget(getHeapStatistics().heap_size_limit * SHARE_OF_HEAP);
  readonly #reachability: Reachability;
  readonly #nodes: MemberNodes;
  readonly #identity: JoinedIdentity;
  readonly #probe: Probe;
  readonly #latency: LatencyMonitor;
  readonly #unresponsive: UnresponsiveTime;
  readonly #createThrottle: CreateThrottle;
  readonly #noted = new WeakSet<KubeError>();
  readonly #foreign: ForeignUsage;
  readonly #watchHealth: WatchHealth;
  readonly #events: Pick<Events<MemberEvents<Member>>, "emit">;
  #probed: ProbeResult = { reachable: false, undecided: true, message: "not yet asked" };
  #emittedState = "";
  #heardAt = Number.NEGATIVE_INFINITY;
  #stopped = false;
  #cluster: Stored<Cluster>;
  #virtualNode: VirtualNode | undefined;
  readonly #candidate: CurrentCandidate;

  constructor(options: MemberOptions<Member>) {
    const { cluster, hostId, shard = ALL_NAMESPACES, events, mutex = new Mutex(), clock } = options;
    this.name = cluster.metadata.name;
    this.#cluster = cluster;
    this.#candidate = new CurrentCandidate(() => this.#makeCandidate(), options.onCandidate ?? (() => {}));
    this.#identity = new JoinedIdentity({
      client: options.client,
      cluster: () => this.#cluster,
      clock,
      onFound: (uid) => options.onIdentity?.(uid),
      onChange: () => this.#onIdentity(),
    });
    this.#createThrottle = new CreateThrottle(this.name, clock);
    // A response is due once the create was sent. A queued create does not make the member late.
    const throttle: Pick<CreateThrottle, "of"> = {
      of: (create, send) => this.#createThrottle.of(create, () => this.answerOf(send())),
    };
    this.everywhere = confirmedClient(options.client, this.#identity, throttle);
    const client = shardClient(this.everywhere, shard);
    this.client = client;
    this.#reachability = new Reachability(clock);
    this.#events = events;
    const log = options.log.child({ member: this.name });
    this.delegates = new MemberDelegates({
      client,
      hostId,
      requests: this.requests,
      budget: this.memory,
      clock,
      log,
      onChange: (key) => {
        this.#heardAt = clock.now();
        events.emit("delegate", this, key);
      },
      onEnded: (delegate) => events.emit("ended", this, delegate),
      onState: () => this.#onDelegatesState(),
    });
    this.#nodes = new MemberNodes({
      client,
      budget: this.memory,
      clock,
      log,
      onChange: () => {
        this.#candidate.forget();
        events.emit("memberNodes", this);
      },
      onState: () => this.#onConnection(),
    });
    this.#unresponsive = new UnresponsiveTime(clock);
    this.#latency = new LatencyMonitor({
      clock,
      onChange: () => {
        this.#candidate.forget();
        this.#noteResponsive();
        if (this.#latency.overdue) this.#probe.hurry();
        else events.emit("responsive", this);
      },
    });
    this.#foreign = new ForeignUsage({
      client: this.everywhere,
      hostId,
      shard,
      mutex,
      clock,
      onChange: () => this.#candidate.forget(),
      log,
    });
    this.watches.add(this.delegates.reflector).add(this.#nodes.reflector).add(this.#foreign);
    this.#watchHealth = new WatchHealth({
      clock,
      mistaken: () => this.mistaken,
      failing: () => this.#failing(),
      onDue: () => this.#onConnection(),
    });
    this.#probe = new Probe({
      client: options.client,
      clock,
      settings: () => probeSettingsOf(this.#cluster),
      heardAt: () => this.#heardAt,
      due: (timeoutMs) => this.#identity.confirmWhenDue(timeoutMs),
      onResult: (result) => this.#onProbe(result),
    });
  }

  start(): void {
    this.delegates.reflector.start();
    this.#nodes.reflector.start();
    this.#probe.start();
    this.#foreign.start();
  }

  async stop(): Promise<void> {
    this.#probe.stop();
    this.#identity.stop();
    this.#stopped = true;
    this.#watchHealth.stop();
    await Promise.all([this.delegates.reflector.stop(), this.#nodes.stop(), this.#foreign.stop()]);
    await this.client.close();
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  get cluster(): Stored<Cluster> {
    return this.#cluster;
  }

  set cluster(cluster: Stored<Cluster>) {
    const isAnother = recordedUid(cluster) !== recordedUid(this.#cluster);
    this.#cluster = cluster;
    this.#candidate.forget();
    if (!isAnother) return;
    this.#identity.doubt();
    this.#identity.look();
  }

  get virtualNode(): VirtualNode | undefined {
    return this.#virtualNode;
  }

  /** Returns true when the virtual node changed. */
  setVirtualNode(node: VirtualNode | undefined): boolean {
    if (jsonEqual(node, this.#virtualNode)) return false;
    this.#virtualNode = node;
    this.#candidate.forget();
    return true;
  }

  get probed(): ProbeResult {
    return this.#probed;
  }

  get mistaken(): string | undefined {
    return this.#identity.problem;
  }

  /** The API server answers, and the watch of delegates is open. */
  get reachable(): boolean {
    return this.#probed.reachable && this.mistaken === undefined && this.delegates.watched;
  }

  /**
   * Reports whether `failureThreshold` probes failed in a row, or another cluster answers. A member that is being probed,
   * or whose watches reopen, is not lost.
   */
  get lost(): boolean {
    return this.mistaken !== undefined || (!this.#probed.reachable && this.#probed.undecided !== true);
  }

  /** When the member last became reachable; epoch ms. */
  get reachableSince(): number {
    return this.#reachability.since;
  }

  /** The delegates were listed since this connection began. */
  get read(): boolean {
    return this.delegates.read;
  }

  /** The first lists of delegates and nodes are pending, and nothing indicates that they will fail. */
  get syncing(): boolean {
    return isSyncing(this);
  }

  get nodesRead(): boolean {
    return this.#nodes.read;
  }

  /** The reasons why the member cannot be read although its API server answers. */
  get unreadable(): Unreadable {
    return this.#watchHealth.unreadable;
  }

  #failing(): ReturnType<WatchHealthOptions["failing"]> {
    const { periodMs, failureThreshold } = probeSettingsOf(this.#cluster);
    const pods = this.delegates.reflector;
    const nodes = this.nodesRead ? undefined : this.#nodes.reflector;
    return {
      pods: pods.failing,
      nodes: nodes?.failing,
      listing: { pods: pods.listingSince, nodes: nodes?.listingSince },
      patienceMs: periodMs * failureThreshold,
    };
  }

  get nodesVersion(): number {
    return this.#nodes.version;
  }

  /** Changes when the member may accept a pod that it rejected: its nodes changed, or a delegate ended. */
  get roomVersion(): string {
    return `${this.#nodes.version}.${this.delegates.endedVersion}`;
  }

  get nodeTotals(): NodeTotals {
    return this.#nodes.totals;
  }

  /** Returns undefined when there are too many kinds. */
  get nodeKinds(): NodeKinds | undefined {
    return this.#nodes.kinds;
  }

  get foreign(): Amounts | undefined {
    return this.#foreign.sum;
  }

  /** Returns what others use of each node. Undefined until it was read, which this asks for. */
  foreignByNode(): ForeignByNode | undefined {
    return this.#foreign.byNode();
  }

  get nodes(): readonly Stored<KubeNode>[] {
    return this.#nodes.reflector.store.list();
  }

  /** Settles as the response does. While one is overdue, placement prefers other members. */
  async answerOf<T>(answer: Promise<T>): Promise<T> {
    const value = await this.#latency.of(answer);
    this.#latency.answered();
    return value;
  }

  /** How long, in total, the API server was late to answer or answered nothing: other members were preferred then. */
  get unresponsiveMs(): number {
    return this.#unresponsive.totalMs;
  }

  /** Records a failed request once per error. */
  noteFailure(error: unknown): void {
    if (!isKubeError(error, "AnswerLost", "NotSent", "ServerError") || this.#noted.has(error)) return;
    this.#noted.add(error);
    this.#latency.failed();
    this.noteRenewal();
  }

  noteRenewal(): void {
    this.#identity.doubt();
    this.#probe.hurry();
  }

  /** Returns another candidate whenever something of it changes, amounts that are updated in place among them. */
  candidate(): Candidate {
    this.#foreign.ask();
    return this.#candidate.get();
  }

  #makeCandidate(): Candidate {
    const { allocatable, largestNode } = this.nodeTotals;
    this.requests.recount();
    return candidateOf({
      cluster: this.#cluster,
      closed: whyClosed(this),
      overdue: this.#latency.overdue,
      allocatable,
      largestNode,
      used: this.requests.used,
      tracked: true,
      foreign: this.#foreign.occupied ?? recordedForeignUsage(this.#cluster),
      nodeTaints: this.#virtualNode?.taints ?? [],
      devices: this.devices.known,
      usedIn: (namespace) => this.requests.usedIn(namespace),
      reservedFor: (proxyUid) => this.requests.reservedFor(proxyUid),
      preemptible: (priority) => this.requests.below(priority),
      nodesFor: this.#nodes.fitting,
      nodesHave: (key) => this.#nodes.have(key),
    });
  }

  #onProbe(result: ProbeResult): void {
    const changed = !jsonEqual(this.#probed, result);
    const answers = result.message === undefined;
    if (answers && this.#probed.message !== undefined) {
      this.#watchHealth.answering();
      this.#retryWatches();
    }
    if (!result.reachable) this.#watchHealth.unreachable();
    this.#probed = result;
    if (answers) {
      this.#latency.answered();
      this.#createThrottle.answered();
      this.#identity.look();
    } else {
      this.#identity.doubt();
    }
    this.#noteReachable();
    this.#noteResponsive();
    this.#candidate.forget();
    if (changed) this.#events.emit("connection", this);
  }

  /** Retries the watches once the right cluster answers, because they fail at once against another. */
  #onIdentity(): void {
    if (this.mistaken === undefined) this.#retryWatches();
    this.#onConnection();
  }

  #noteReachable(): void {
    // The first watch that reopens finds a member again that was cut off between two probes.
    if (this.#reachability.note(this.reachable)) this.#retryWatches();
  }

  #noteResponsive(): void {
    this.#unresponsive.note(this.reachable && this.#probed.message === undefined && !this.#latency.overdue);
  }

  #retryWatches(): void {
    for (const watch of this.watches) watch.retry();
  }

  /** Probes soon when the watch of delegates finds a lost member again. */
  #onDelegatesState(): void {
    if (this.delegates.watched && !this.#probed.reachable) this.#probe.hurry();
    this.#onConnection();
  }

  #onConnection(): void {
    this.#noteReachable();
    this.#noteResponsive();
    this.#candidate.forget();
    this.#watchHealth.reported(this.unreadable);
    const state = connectionState(this);
    if (state === this.#emittedState) return;
    this.#emittedState = state;
    this.#events.emit("connection", this);
  }
}
