import { getHeapStatistics } from "node:v8";
import { CLUSTER_DEFAULTS, type Cluster } from "../api/cluster.ts";
import { jsonEqual } from "../api/json.ts";
import type { ObjectKey, Pod, Stored, Taint } from "../api/kubernetes.ts";
import { type Amounts, parseAmounts } from "../api/quantity.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError, type KubeError } from "../kube/errors.ts";
import { ByteBudget } from "../kube/limits.ts";
import type { Candidate } from "../placement/candidate.ts";
import { BEING_REMOVED, CORDONED, candidateOf, NO_VIRTUAL_NODE, notAnswering } from "../placement/member-candidate.ts";
import type { NodeKinds } from "../placement/node-kinds.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Capacity, fitsLargest } from "./capacity.ts";
import { ConfirmedClient } from "./confirmed-client.ts";
import { CreatePace } from "./create-pace.ts";
import { ForeignUsage } from "./foreign-usage.ts";
import { Identity, recordedUid } from "./identity.ts";
import { Load } from "./load.ts";
import { MemberDelegates } from "./member-delegates.ts";
import { MemberNodes } from "./member-nodes.ts";
import { Probe, type ProbeResult, type ProbeSettings } from "./probe.ts";
import { Promptness } from "./promptness.ts";
import { type Counted, type Unreadable, unreadable } from "./reading.ts";
import { Turns } from "./turns.ts";

/** What a member tells the controllers. */
export interface MemberListener {
  /** A delegate under this key came, changed or went; `departed` is its last state when it went. */
  onDelegate(member: Member, key: ObjectKey): void;
  /** A delegate there has ended or gone: what it used is free. */
  onEnded(member: Member, delegate: Stored<Pod>): void;
  /** Its nodes changed in a way that matters to placement. */
  onCapacity(member: Member): void;
  /** It answers in time again. */
  onPrompt(member: Member): void;
  /** Whether it can be reached, or has been read, changed. */
  onConnection(member: Member): void;
}

/** What placement is to know of a member's virtual node. */
export interface VirtualNode {
  /** Its `spec.unschedulable`. */
  readonly cordoned: boolean;
  /** Those that it has from its Cluster among them. */
  readonly taints: readonly Taint[];
}

// Of the heap that this process may have: one member may not take it from the others, whatever it holds.
const SHARE_OF_HEAP = 0.5;
// A watch is opened again in less, where nothing but its connection was cut.
const CUT_MS = 3_000;
const NOT_PROBED: ProbeResult = { reachable: false, undecided: true, message: "not yet asked" };

/**
 * The connection to one member cluster and what is known of it: its delegates and nodes by watch, whether it answers by
 * probe, and what delegates request there. Everything that can hang is this member's own.
 */
export class Member {
  readonly name: string;
  /** Sends nothing to a cluster that is another than the one that joined. */
  readonly client: ClusterClient;
  /** All that is watched there: tried again at once when it answers again. */
  readonly watches: Set<{ retry(): void }> = new Set();
  /** What this host has there. */
  readonly delegates: MemberDelegates;
  readonly load: Load = new Load((requests) => fitsLargest(requests, this.capacity.largestNode));
  /** For all that is stored of it. */
  readonly memory: ByteBudget = new ByteBudget(getHeapStatistics().heap_size_limit * SHARE_OF_HEAP);
  readonly #clock: Clock;
  readonly #nodes: MemberNodes;
  readonly #identity: Identity;
  readonly #probe: Probe;
  readonly #promptness: Promptness;
  readonly #creates: CreatePace;
  readonly #noted = new WeakSet<KubeError>();
  readonly #foreign: ForeignUsage;
  readonly #listener: MemberListener;
  #probed: ProbeResult = NOT_PROBED;
  #wasReachable = false;
  #reachableSince = 0;
  #lostAt: number | undefined;
  #toldState = "";
  #failureTimer: Timer | undefined;
  #stopped = false;
  #answeringSince: number | undefined;
  #countedFailures: Counted = {};
  #cluster: Stored<Cluster>;
  #virtualNode: VirtualNode | undefined;
  #candidate: Candidate | undefined;

  constructor(options: {
    readonly cluster: Stored<Cluster>;
    readonly client: ClusterClient;
    readonly hostId: string;
    readonly listener: MemberListener;
    /** Shared by all members, for what one of them is read of at a time. */
    readonly turns?: Turns;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    const { cluster, hostId, listener, turns = new Turns(), clock } = options;
    this.name = cluster.metadata.name;
    this.#cluster = cluster;
    this.#identity = new Identity({
      client: options.client,
      cluster: () => this.#cluster,
      clock,
      onChange: () => this.#onIdentity(),
    });
    this.#creates = new CreatePace(this.name, clock);
    // A create that waits for its turn says nothing of the member: its answer is due only once it was sent.
    const pace: Pick<CreatePace, "of"> = {
      of: (create, send) => this.#creates.of(create, () => this.answerOf(send())),
    };
    const client = new ConfirmedClient(options.client, this.#identity, pace);
    this.client = client;
    this.#clock = clock;
    this.#listener = listener;
    const log = options.log.child({ member: this.name });
    this.delegates = new MemberDelegates({
      client,
      hostId,
      load: this.load,
      budget: this.memory,
      clock,
      log,
      onChange: (key) => listener.onDelegate(this, key),
      onEnded: (delegate) => listener.onEnded(this, delegate),
      onState: () => this.#onDelegatesState(),
    });
    this.#nodes = new MemberNodes({
      client,
      budget: this.memory,
      clock,
      log,
      onChange: () => {
        this.#candidate = undefined;
        listener.onCapacity(this);
      },
      onState: () => this.#onConnection(),
    });
    this.#promptness = new Promptness({
      clock,
      onChange: () => {
        this.#candidate = undefined;
        if (this.#promptness.overdue) this.#probe.hurry();
        else listener.onPrompt(this);
      },
    });
    this.#foreign = new ForeignUsage({
      client,
      hostId,
      turns,
      clock,
      onChange: () => {
        this.#candidate = undefined;
      },
      log,
    });
    this.watches.add(this.delegates).add(this.#nodes).add(this.#foreign);
    this.#probe = new Probe({
      client: options.client,
      clock,
      settings: () => this.#probeSettings(),
      onResult: (result) => this.#onProbe(result),
    });
  }

  start(): void {
    this.delegates.start();
    this.#nodes.start();
    this.#probe.start();
    this.#foreign.start();
  }

  async stop(): Promise<void> {
    this.#probe.stop();
    this.#identity.stop();
    this.#stopped = true;
    this.#failureTimer?.cancel();
    await Promise.all([this.delegates.stop(), this.#nodes.stop(), this.#foreign.stop()]);
    await this.client.close();
  }

  /** The connection has ended, for good. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** The Cluster object as last seen. */
  get cluster(): Stored<Cluster> {
    return this.#cluster;
  }

  set cluster(cluster: Stored<Cluster>) {
    const isAnother = recordedUid(cluster) !== recordedUid(this.#cluster);
    this.#cluster = cluster;
    this.#candidate = undefined;
    if (!isAnother) return;
    this.#identity.doubt();
    this.#identity.look();
  }

  /** Its virtual node on the host, as last seen; undefined while there is none. */
  get virtualNode(): VirtualNode | undefined {
    return this.#virtualNode;
  }

  /** Takes note of the virtual node; true when it has changed: pods that wait may go there now, or may not stay. */
  setVirtualNode(node: VirtualNode | undefined): boolean {
    if (jsonEqual(node, this.#virtualNode)) return false;
    this.#virtualNode = node;
    this.#candidate = undefined;
    return true;
  }

  get probed(): ProbeResult {
    return this.#probed;
  }

  /** Why what answers is not the cluster that has joined, and what to do; undefined: it is, as far as known. */
  get mistaken(): string | undefined {
    return this.#identity.problem;
  }

  /** Its API server answers, and its watches are up to date. */
  get reachable(): boolean {
    return this.#probed.reachable && this.mistaken === undefined && this.delegates.watched;
  }

  /** When it last began to be reachable; epoch ms. */
  get reachableSince(): number {
    return this.#reachableSince;
  }

  /** Its delegates have been listed since this connection began. */
  get read(): boolean {
    return this.delegates.read;
  }

  /** Its delegates and nodes have still to be read, and nothing says yet that they cannot be. */
  get settling(): boolean {
    if (this.read && this.nodesRead) return false;
    const { pods: podsProblem, nodes: nodesProblem } = this.unreadable;
    if (podsProblem !== undefined || nodesProblem !== undefined) return false;
    return this.#probed.reachable || this.#probed.undecided === true;
  }

  /** Its nodes have been listed since this connection began: what they offer is known. */
  get nodesRead(): boolean {
    return this.#nodes.read;
  }

  #probeSettings(): ProbeSettings {
    const { periodSeconds, timeoutSeconds, failureThreshold } = {
      ...CLUSTER_DEFAULTS.probe,
      ...this.cluster.spec.probe,
    };
    return { periodMs: periodSeconds * 1000, timeoutMs: timeoutSeconds * 1000, failureThreshold };
  }

  /** What cannot be read of it for a while, and why, though its API server answers. */
  get unreadable(): Unreadable {
    if (this.mistaken !== undefined) return { pods: this.mistaken };
    const { periodMs, failureThreshold } = this.#probeSettings();
    const state = {
      pods: this.delegates.failing,
      nodes: this.nodesRead ? undefined : this.#nodes.failing,
      counted: this.#countedFailures,
      answeringSince: this.#answeringSince,
      patienceMs: periodMs * failureThreshold,
    };
    return unreadable(state, this.#clock.now());
  }

  get nodesVersion(): number {
    return this.#nodes.version;
  }

  /** Changes with everything that may let it take a pod that it has refused: its nodes, and delegates that ended. */
  get roomVersion(): string {
    return `${this.#nodes.version}.${this.delegates.endedVersion}`;
  }

  get capacity(): Capacity {
    return this.#nodes.capacity;
  }

  /** Its nodes in few words, for the host; undefined when there are too many kinds. */
  get nodeKinds(): NodeKinds | undefined {
    return this.#nodes.kinds;
  }

  /** What pods that are not this host's request there, as last read. */
  get foreign(): Amounts | undefined {
    return this.#foreign.sum;
  }

  /** Settles as the answer to a request that was sent to the member; one that is overdue makes others preferred. */
  async answerOf<T>(answer: Promise<T>): Promise<T> {
    const value = await this.#promptness.of(answer);
    this.#promptness.answered();
    return value;
  }

  /** A request failed in a way that may mean trouble for the whole member. One failure counts once, however often it is told. */
  noteFailure(error: unknown): void {
    if (!isKubeError(error, "AnswerLost", "NotSent", "ServerError") || this.#noted.has(error)) return;
    this.#noted.add(error);
    this.#promptness.failed();
    this.#identity.doubt();
    this.#probe.hurry();
  }

  /** Its credentials were replaced: whether it answers by these is asked now, however long its probe's period is. */
  noteRenewal(): void {
    this.#identity.doubt();
    this.#probe.hurry();
  }

  /** What placement needs to know; `used` in it stays current by itself. */
  candidate(): Candidate {
    this.#candidate ??= this.#makeCandidate();
    return this.#candidate;
  }

  #makeCandidate(): Candidate {
    const { allocatable, largestNode } = this.capacity;
    this.load.recount();
    return candidateOf({
      cluster: this.#cluster,
      closed: this.#closed(),
      overdue: this.#promptness.overdue,
      allocatable,
      largestNode,
      used: this.load.used,
      foreign: this.#foreign.sum ?? earlierForeign(this.#cluster),
      nodeTaints: this.#virtualNode?.taints ?? [],
      usedIn: (namespace) => this.load.usedIn(namespace),
      keptFor: (proxyUid) => this.load.keptFor(proxyUid),
      preemptible: (priority) => this.load.below(priority),
      nodesFor: this.#nodes.fitting,
      nodesHave: (key) => this.#nodes.have(key),
    });
  }

  #closed(): Candidate["closed"] {
    if (this.cluster.metadata.deletionTimestamp !== undefined) return BEING_REMOVED;
    if (this.#virtualNode?.cordoned === true) return CORDONED;
    if (this.#probed.message !== undefined) return notAnswering(this.#probed.message);
    if (this.reachable && this.read && this.nodesRead)
      return this.#virtualNode === undefined ? NO_VIRTUAL_NODE : undefined;
    const { pods: podsProblem, nodes: nodesProblem } = this.unreadable;
    const message = podsProblem ?? nodesProblem ?? "its pods and nodes are still being read";
    return { reason: "ClusterNotReady", message };
  }

  #onProbe(result: ProbeResult): void {
    const changed =
      this.#probed.reachable !== result.reachable ||
      this.#probed.undecided !== result.undecided ||
      this.#probed.message !== result.message ||
      this.#probed.version !== result.version;
    const answers = result.message === undefined;
    if (answers && this.#probed.message !== undefined) this.#onAnswering();
    if (!result.reachable) this.#answeringSince = undefined;
    this.#probed = result;
    if (answers) {
      this.#promptness.answered();
      this.#creates.answered();
      this.#identity.look();
    } else {
      this.#identity.doubt();
    }
    this.#noteReachable();
    this.#candidate = undefined;
    if (changed) this.#listener.onConnection(this);
  }

  /** What still fails now is not for want of an answer. */
  #onAnswering(): void {
    this.#answeringSince ??= this.#clock.now();
    this.#retryWatches();
    this.#lookAgain(this.unreadable.dueAt);
  }

  /** What is asked of another cluster fails at once: it is asked again when this is the member. */
  #onIdentity(): void {
    if (this.mistaken === undefined) this.#retryWatches();
    this.#onConnection();
  }

  #noteReachable(): void {
    const now = this.#clock.now();
    const isNews = this.reachable && !this.#wasReachable;
    if (this.#wasReachable && !this.reachable) this.#lostAt = now;
    this.#wasReachable = this.reachable;
    if (!isNews) return;
    // A watch that was cut and opened again at once says nothing of the member.
    if (this.#lostAt === undefined || now - this.#lostAt >= CUT_MS) this.#reachableSince = now;
    // A connection that was cut between two probes is found again by the first watch that tries.
    this.#retryWatches();
  }

  /** Its watches need not wait any longer. */
  #retryWatches(): void {
    for (const watch of this.watches) watch.retry();
  }

  /** A watch that has found a lost member again need not wait for the probe's period to end. */
  #onDelegatesState(): void {
    if (this.delegates.watched && !this.#probed.reachable) this.#probe.hurry();
    this.#onConnection();
  }

  #onConnection(): void {
    this.#noteReachable();
    this.#candidate = undefined;
    const { dueAt, ...problems } = this.unreadable;
    this.#countedFailures = {
      pods: problems.pods === undefined ? undefined : this.delegates.failing?.since,
      nodes: problems.nodes === undefined ? undefined : this.#nodes.failing?.since,
    };
    this.#lookAgain(dueAt);
    const state = JSON.stringify([this.reachable && this.read, this.nodesRead, this.settling, problems]);
    if (state === this.#toldState) return;
    this.#toldState = state;
    this.#listener.onConnection(this);
  }

  /** A failure that lasts is news, though nothing happens then. */
  #lookAgain(at: number | undefined): void {
    this.#failureTimer?.cancel();
    if (at === undefined || this.#stopped) return;
    this.#failureTimer = this.#clock.after(at - this.#clock.now(), () => this.#onConnection());
  }
}

/** What an earlier controller, or connection, has read of others' pods. */
function earlierForeign({ status }: Cluster): Amounts | undefined {
  return status?.requestedByOthers && parseAmounts(status.requestedByOthers);
}
