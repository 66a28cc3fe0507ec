import { JOINED_TWICE } from "../../api/cluster.ts";
import { jsonEqual } from "../../api/json.ts";
import { CLUSTER_FINALIZER, clusterOfNode, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../api/keys.ts";
import { type KubeNode, type Lease, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { KubeletEndpoint } from "../../api/virtual-node.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient, Patch } from "../../kube/client.ts";
import { isKubeError, isRefusal } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { leases, nodes } from "../../kube/resources.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import { isBefore } from "../../runtime/resource-version.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { ControllerEvents } from "../events.ts";
import { boundTo } from "../proxies.ts";
import type { KeptDelegates } from "../restored-host.ts";
import { decide, isHostLikelyCutOff, LEASE_SECONDS, RENEW_EVERY_MS } from "./decide.ts";
import { takenBy } from "./decide-node.ts";
import { HostNodes } from "./host-nodes.ts";
import type { Action, MemberFacts, NodePods, Observed } from "./model.ts";

export interface VirtualNodeOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly registry: Registry;
  readonly events: Events<ControllerEvents>;
  readonly proxies: ReadStore<Pod>;
  /** Returns the kubelet endpoint of a Cluster's node. Undefined while it is not served. */
  readonly endpoint?: (cluster: string) => KubeletEndpoint | undefined;
  /** Default `none`. */
  readonly nodePods?: NodePods;
  /** Returns the number of pods without a node whose delegates are in a member, or that are being bound to its node. */
  readonly waitingIn: (member: string) => number;
  readonly kept: Pick<KeptDelegates, "countIn">;
  /** Returns the connected agent of a member. */
  readonly agent?: (cluster: string) => { readonly version?: string; readonly since: number } | undefined;
}

interface Written {
  renewedAt: number;
  heartbeatAt: number;
  reportedAt: number;
  features?: readonly string[] | undefined;
  refused?: string | undefined;
}

const LEASE_NAMESPACE = "kube-node-lease";
const NEVER: Written = { renewedAt: 0, heartbeatAt: 0, reportedAt: 0 };

/** Keeps a Node, its Lease and the Cluster's status for each member. The key is the Cluster's name. */
export class VirtualNodeController {
  readonly #options: VirtualNodeOptions;
  readonly #nodes: Reflector<KubeNode>;
  readonly #hostNodes: HostNodes;
  readonly #loop: Controller<string, Observed, Action>;
  readonly #written = new Map<string, Written>();
  /** Nodes that were deleted and are not there again, by Cluster, with that Cluster's uid. */
  readonly #deleted = new Map<string, { readonly cluster: string; readonly node: Stored<KubeNode> }>();
  #trouble: string | undefined;

  constructor(options: VirtualNodeOptions) {
    this.#options = options;
    const { host: client, clock, log } = options;
    this.#nodes = new Reflector({
      client,
      resource: nodes,
      labelSelector: VIRTUAL_NODE_LABEL,
      clock,
      log,
      onEvent: (event) => this.#onNode(event),
    });
    this.#hostNodes = new HostNodes({ host: client, clock, log, onChange: () => this.#enqueueAll() });
    this.#loop = new Controller<string, Observed, Action>(
      {
        name: "virtual-node",
        // A long backoff would keep the node's Lease from being renewed in time.
        maxBackoffMs: RENEW_EVERY_MS,
        observe: (name) => this.#observe(name),
        decide,
        execute: (action, { key, signal }) => this.#execute(action, key, signal),
      },
      options,
    );
    const { events } = options;
    events.on("cluster", (name) => this.#onMember(name));
    events.on("connection", ({ name }) => this.#onMember(name));
    events.on("memberNodes", ({ name }) => this.#loop.enqueue(name));
    events.on("bound", (cluster) => this.#loop.enqueue(cluster));
    for (const name of ["clusterStatus", "kept", "nodeEndpoint", "agent"] as const) {
      events.on(name, (cluster) => this.#loop.enqueue(cluster));
    }
  }

  get nodes(): ReadStore<KubeNode> {
    return this.#nodes.store;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#nodes.start();
    await Promise.all([this.#nodes.whenSynced(signal), this.#hostNodes.start()]);
    for (const { metadata } of this.#nodes.store.list()) {
      const name = clusterOfNode(metadata.name);
      if (name !== undefined) this.#loop.enqueue(name);
    }
    this.#enqueueAll();
  }

  onProxies(): void {
    this.#enqueueAll();
  }

  async stop(): Promise<void> {
    await this.#hostNodes.stop();
    await this.#nodes.stop();
    await this.#loop.stop();
  }

  #onMember(name: string): void {
    this.#loop.enqueue(name);
    const trouble = this.#ownTrouble();
    if (trouble === this.#trouble) return;
    const isNew = this.#trouble === undefined;
    this.#trouble = trouble;
    // The nodes of all lost members show their number, which changed.
    if (trouble !== undefined && isNew) this.#options.log.warn({ trouble }, "virtual nodes stay ready");
    this.#enqueueAll();
  }

  #enqueueAll(): void {
    for (const { metadata } of this.#options.registry.clusters()) this.#loop.enqueue(metadata.name);
  }

  /** Returns why the loss of members is taken for a failure of the host's network. Undefined if it is not. */
  #ownTrouble(): string | undefined {
    const { registry } = this.#options;
    const known = registry.clusters().filter(({ metadata, status }) => {
      // Members that never answered, leave or are refused do not count as lost.
      if (registry.member(metadata.name) !== undefined) return true;
      if (registry.joinedAs(metadata.name) !== undefined) return false;
      return metadata.deletionTimestamp === undefined && status?.version !== undefined;
    });
    const lost = known.filter(({ metadata: { name } }) => {
      const member = registry.member(name);
      return member === undefined ? registry.problem(name) !== undefined : !isHeard(member) && !member.syncing;
    }).length;
    if (!isHostLikelyCutOff(lost, known.length)) return undefined;
    return `${lost} of ${known.length} members do not answer, so the trouble is probably here: nothing is evicted for it`;
  }

  #onNode(event: ReflectorEvent<KubeNode>): void {
    const { object } = event;
    const name = clusterOfNode(object.metadata.name);
    // The node is the host's own and was only given the label.
    if (name === undefined) return;
    const { registry } = this.#options;
    const { uid: cluster, creationTimestamp: since = "" } = registry.cluster(name)?.metadata ?? {};
    if (event.type !== "deleted") this.#deleted.delete(name);
    // A node older than its Cluster belonged to an earlier Cluster, which was cordoned since it left.
    else if (cluster !== undefined && (object.metadata.creationTimestamp ?? "") >= since)
      this.#deleted.set(name, { cluster, node: object });
    const member = registry.member(name);
    if (member !== undefined) this.#note(member);
    this.#loop.enqueue(name);
    if (event.type !== "updated" || hasChanged(event.previous, object)) {
      this.#options.events.emit("nodeReadiness", name);
    }
  }

  #nodeOf(name: string): Stored<KubeNode> | undefined {
    return this.#nodes.store.get(objectKey({ name: virtualNodeName(name) }));
  }

  #note(member: Member): void {
    const node = this.#nodeOf(member.name);
    const { unschedulable = false, taints = [] } = node?.spec ?? {};
    const changed = member.setVirtualNode(node === undefined ? undefined : { cordoned: unschedulable, taints });
    if (changed) this.#options.events.emit("nodeSpec");
  }

  #observe(name: string): Observed | undefined {
    const { registry } = this.#options;
    if (!this.#nodes.store.synced) return undefined;
    const cluster = registry.cluster(name);
    const node = this.#nodeOf(name);
    // A new leader does not know the member yet, so the node's status stays. Its Lease is renewed without the member's nodes.
    const member = registry.member(name);
    const endpoint = this.#options.endpoint?.(name);
    const isSlow = member?.unreadable.slow !== undefined;
    const unread = member?.syncing === true && (node === undefined || !member.read) && !isSlow;
    if (unread && node === undefined) return undefined;
    if (cluster === undefined && node === undefined) {
      this.#written.delete(name);
      this.#deleted.delete(name);
      return undefined;
    }
    const { nodePods = "none" } = this.#options;
    const hostNodes = this.#hostNodes.counted;
    const before = this.#deleted.get(name);
    const deleted = before !== undefined && before.cluster === cluster?.metadata.uid ? before.node : undefined;
    const facts = this.#facts(name);
    const written = this.#written.get(name) ?? NEVER;
    return { name, cluster, node, deleted, endpoint, unread, nodePods, hostNodes, facts, ...written };
  }

  #facts(name: string): MemberFacts {
    const { registry } = this.#options;
    const member = registry.member(name);
    const proxies = boundTo(this.#options.proxies, virtualNodeName(name));
    const isLeaving = registry.cluster(name)?.metadata.deletionTimestamp !== undefined;
    const waiting = isLeaving ? this.#options.waitingIn(name) : 0;
    const { version: agentVersion, since } = this.#options.agent?.(name) ?? {};
    const agent = agentVersion === undefined || since === undefined ? {} : { agent: { version: agentVersion, since } };
    if (member === undefined) {
      const message = registry.problem(name) ?? "it is not connected";
      const isRefused = registry.joinedAs(name) !== undefined;
      return {
        reachable: false,
        message,
        ...agent,
        ...(isRefused ? { notMember: JOINED_TWICE } : {}),
        ...(this.#trouble === undefined || isRefused ? {} : { spared: this.#trouble }),
        nodesRead: false,
        nodes: 0,
        capacity: {},
        allocatable: {},
        features: [],
        proxies,
        waiting,
      };
    }
    this.#note(member);
    const { nodes: count, capacity, allocatable, largestNode, features } = member.nodeTotals;
    const { foreign } = member;
    const nodeKinds = count === 0 ? undefined : member.nodeKinds;
    const { version } = member.probed;
    const server = registry.server(name);
    const failure = member.mistaken ?? member.probed.message ?? member.unreadable.pods;
    const problem = registry.problem(name);
    const message = failure === undefined || problem === undefined ? failure : `${failure}; ${problem}`;
    const { slow } = member.unreadable;
    const reachable = isHeard(member) && (member.read || slow !== undefined);
    const spared = reachable ? undefined : this.#trouble;
    return {
      reachable,
      answers: isHeard(member),
      ...(slow === undefined ? {} : { slow }),
      ...agent,
      nodesRead: member.nodesRead,
      ...(message === undefined ? {} : { message }),
      ...(member.mistaken === undefined ? {} : { notMember: "AnotherCluster" as const }),
      ...(spared === undefined ? {} : { spared }),
      ...(version === undefined ? {} : { version }),
      ...(server === undefined ? {} : { server }),
      nodes: count,
      capacity,
      allocatable,
      // Values that a member has not confirmed since this controller began stay.
      ...(count === 0 ? {} : { largestNode, ...(nodeKinds === undefined ? {} : { nodeKinds }) }),
      ...(foreign === undefined ? {} : { foreign }),
      features,
      proxies,
      waiting,
      held: this.#options.kept.countIn(name),
    };
  }

  /** Sends a write that keeps the node alive out of turn: no burst of pods makes the node look dead. */
  async #execute(action: Action, name: string, signal: AbortSignal): Promise<Expectation<Observed> | undefined> {
    const { host, clock } = this.#options;
    const ref = { name: virtualNodeName(name) };
    switch (action.type) {
      case "createNode": {
        await this.#notingRefusal(name, this.#createNode(action.node, name, signal));
        this.#write(name, { heartbeatAt: clock.now(), features: action.node.status?.declaredFeatures });
        return ({ node }) => node !== undefined;
      }
      case "patchNode":
        return this.#patchNode(
          this.#notingRefusal(name, host.patch(nodes, ref, { type: "merge", body: action.patch }, { signal })),
        );
      case "patchNodeEndpoint":
        return this.#patchNode(this.#patchNodeStatus(ref, action.patch, signal));
      case "patchNodeStatus": {
        this.#write(name, { heartbeatAt: clock.now() });
        const { declaredFeatures } = action.patch.status;
        const expected = await this.#patchNode(this.#patchNodeStatus(ref, action.patch, signal));
        if (declaredFeatures !== undefined) this.#write(name, { features: declaredFeatures });
        return expected;
      }
      case "renewLease":
        await this.#renewLease(ref.name, action.nodeUid, signal);
        this.#write(name, { renewedAt: clock.now() });
        return undefined;
      case "patchClusterStatus": {
        this.#write(name, { reportedAt: clock.now() });
        const patch: Patch = { type: "merge", body: { status: action.status } };
        const written = host.patch(clusters, { name }, patch, { subresource: "status", signal, outOfTurn: true });
        const version = (await ignoring("NotFound", written))?.metadata.resourceVersion;
        if (version === undefined) return undefined;
        return ({ cluster }) => cluster === undefined || !isBefore(cluster.metadata.resourceVersion, version);
      }
      case "addFinalizer":
      case "removeFinalizer": {
        const { finalizers = [], resourceVersion } = this.#options.registry.cluster(name)?.metadata ?? {};
        const others = finalizers.filter((finalizer) => finalizer !== CLUSTER_FINALIZER);
        const wanted = action.type === "addFinalizer" ? [...others, CLUSTER_FINALIZER] : others;
        const body = { metadata: { finalizers: wanted, resourceVersion } };
        await ignoring("NotFound", host.patch(clusters, { name }, { type: "merge", body }, { signal }));
        return ({ cluster }) => cluster?.metadata.resourceVersion !== resourceVersion;
      }
      case "deleteNode":
        await ignoring("NotFound", host.delete(nodes, ref, { uid: action.uid, signal }));
        await ignoring("NotFound", host.delete(leases, { ...ref, namespace: LEASE_NAMESPACE }, { signal }));
        return ({ node }) => node?.metadata.uid !== action.uid;
    }
  }

  /** Handles a node of that name that the watch does not show: it lost its label, or is not Legation's. */
  async #createNode(node: KubeNode, name: string, signal: AbortSignal): Promise<void> {
    const { host } = this.#options;
    const ref = { name: virtualNodeName(name) };
    try {
      await host.create(nodes, node, { signal });
    } catch (error) {
      if (!isKubeError(error, "AlreadyExists")) throw error;
      const there = await findByList(host, nodes, ref, signal);
      if (there === undefined) return;
      if (there.spec?.providerID !== node.spec?.providerID) {
        this.#write(name, { refused: takenBy(there, name) });
        throw error;
      }
      const { uid } = there.metadata;
      const body = { metadata: { uid, labels: { [VIRTUAL_NODE_LABEL]: name } } };
      await ignoring("NotFound", host.patch(nodes, ref, { type: "merge", body }, { signal }));
    }
  }

  /** Notes why the API server refuses the Cluster's labels or taints on the node, for the Cluster's status. */
  async #notingRefusal<T>(name: string, write: Promise<T>): Promise<T> {
    try {
      const written = await write;
      this.#write(name, { refused: undefined });
      return written;
    } catch (error) {
      if (isRefusal(error)) this.#write(name, { refused: error.detail });
      throw error;
    }
  }

  #patchNodeStatus(ref: { readonly name: string }, body: object, signal: AbortSignal): Promise<Stored<KubeNode>> {
    const options = { subresource: "status", signal, outOfTurn: true } as const;
    return this.#options.host.patch(nodes, ref, { type: "strategic", body }, options);
  }

  async #patchNode(write: Promise<Stored<KubeNode>>): Promise<Expectation<Observed> | undefined> {
    const written = await ignoring("NotFound", write);
    if (written === undefined) return undefined;
    const { uid, resourceVersion } = written.metadata;
    return ({ node }) => node?.metadata.uid !== uid || !isBefore(node.metadata.resourceVersion, resourceVersion);
  }

  async #renewLease(name: string, nodeUid: string, signal: AbortSignal): Promise<void> {
    const { host, clock } = this.#options;
    const ref = { namespace: LEASE_NAMESPACE, name };
    const renewTime = new Date(clock.wall()).toISOString().replace("Z", "000Z");
    const spec = { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime };
    const options = { signal, outOfTurn: true };
    const renewed = await ignoring("NotFound", host.patch(leases, ref, { type: "merge", body: { spec } }, options));
    if (renewed !== undefined) return;
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name, uid: nodeUid }];
    const lease: Lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { ...ref, ownerReferences },
      spec,
    };
    await ignoring("AlreadyExists", host.create(leases, lease, options));
  }

  #write(name: string, written: Partial<Written>): void {
    this.#written.set(name, { ...(this.#written.get(name) ?? NEVER), ...written });
  }
}

function hasChanged(previous: KubeNode, node: KubeNode): boolean {
  return (
    isNodeReady(previous) !== isNodeReady(node) || !jsonEqual(previous.spec?.taints ?? [], node.spec?.taints ?? [])
  );
}

/** Reports whether the member answers and its pods can be read. */
function isHeard({ probed, unreadable }: Member): boolean {
  return probed.reachable && unreadable.pods === undefined;
}

/** `undefined`: the write failed with the code that means that nothing is left to do. */
async function ignoring<T>(code: "NotFound" | "AlreadyExists", write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    if (isKubeError(error, code)) return undefined;
    throw error;
  }
}
