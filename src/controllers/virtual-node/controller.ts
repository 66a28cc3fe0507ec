import { jsonEqual } from "../../api/json.ts";
import { clusterOfNode, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../api/keys.ts";
import { type KubeNode, objectKey, type Stored } from "../../api/kubernetes.ts";
import { isFirst, type Shard } from "../../api/shards.ts";
import type { KubeletEndpoint } from "../../api/virtual-node.ts";
import { DelegateRequests } from "../../clusters/delegate-requests.ts";
import type { Member } from "../../clusters/member.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes } from "../../kube/resources.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { Controller, type ControllerOptions } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { KeyedTimers } from "../../runtime/keyed-timers.ts";
import { LONG_RESTS, PacedResync } from "../../runtime/paced-resync.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { ControllerEvents } from "../events.ts";
import { decide, RENEW_EVERY_MS } from "./decide.ts";
import { Executor } from "./execute.ts";
import { HostNodes } from "./host-nodes.ts";
import { type FactSources, memberFacts, ownTrouble } from "./member-facts.ts";
import type { Action, NodePods, Observed } from "./model.ts";

export interface VirtualNodeOptions extends ControllerOptions, FactSources {
  readonly host: ClusterClient;
  readonly events: Events<ControllerEvents>;
  /** Returns the kubelet endpoint of a Cluster's node. Undefined while it is not served. */
  readonly endpoint?: (cluster: string) => KubeletEndpoint | undefined;
  /** The first shard's holder writes nodes and Clusters; the others read the nodes. */
  readonly shard: Shard;
  /** Default `none`. */
  readonly nodePods?: NodePods;
}

// Bindings and deletions of many pods are counted together.
const COUNT_AFTER_MS = 200;

/** Keeps a Node, its Lease and the Cluster's status for each member. The key is the Cluster's name. */
export class VirtualNodeController {
  readonly #options: VirtualNodeOptions;
  readonly #nodes: Reflector<KubeNode>;
  readonly #hostNodes: HostNodes;
  readonly #loop: Controller<string, Observed, Action>;
  /** Clusters whose number of proxies has changed. */
  readonly #counts: KeyedTimers<string>;
  readonly #executor: Executor;
  /** Nodes that were deleted and are not there again, by Cluster, with that Cluster's uid. */
  readonly #deleted = new Map<string, { readonly cluster: string; readonly node: Stored<KubeNode> }>();
  /** Requests of the proxies bound to each node that have not ended, those of other shards among them. */
  readonly #requests = new Map<string, DelegateRequests>();
  #trouble: string | undefined;
  /** Looks at all members, each of which may have an event at the same time. */
  readonly #troubleCheck: PacedResync<never>;

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
    this.#executor = new Executor(options);
    this.#troubleCheck = new PacedResync<never>({
      clock,
      keys: () => [],
      reconcile: (_keys, done) => {
        const begunAt = performance.now();
        this.#noteTrouble();
        done(performance.now() - begunAt);
      },
      rests: LONG_RESTS,
    });
    this.#counts = new KeyedTimers(clock);
    this.#loop = new Controller<string, Observed, Action>(
      {
        name: "virtual-node",
        // A long backoff would keep the node's Lease from being renewed in time.
        maxBackoffMs: RENEW_EVERY_MS,
        observe: (name) => this.#observe(name),
        decide,
        execute: (action, { key, signal }) => this.#executor.execute(action, key, signal),
      },
      options,
    );
    const { events } = options;
    events.on("cluster", (name) => this.#loop.enqueue(name));
    events.on("connection", ({ name }) => this.#loop.enqueue(name));
    for (const name of ["cluster", "connection"] as const) events.on(name, () => this.#troubleCheck.request(0));
    events.on("memberNodes", ({ name }) => this.#loop.enqueue(name));
    events.on("bound", (cluster) => this.#counts.start(cluster, COUNT_AFTER_MS, () => this.#loop.enqueue(cluster)));
    events.on("networks", () => this.#enqueueAll());
    events.on("anyProxy", ({ type, object }) => {
      const { nodeName } = object.spec ?? {};
      if (nodeName === undefined) return;
      const requests = this.#requests.get(nodeName) ?? new DelegateRequests();
      this.#requests.set(nodeName, requests);
      if (type === "deleted") requests.forget(object);
      else requests.count(object, undefined);
    });
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
    this.#counts.stop();
    await this.#hostNodes.stop();
    await this.#nodes.stop();
    await this.#loop.stop();
  }

  #noteTrouble(): void {
    const trouble = ownTrouble(this.#options.registry);
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
      this.#executor.forget(name);
      this.#deleted.delete(name);
      return undefined;
    }
    const { nodePods = "none" } = this.#options;
    const hostNodes = this.#hostNodes.counted;
    const before = this.#deleted.get(name);
    const deleted = before !== undefined && before.cluster === cluster?.metadata.uid ? before.node : undefined;
    if (member !== undefined) this.#note(member);
    if (!isFirst(this.#options.shard)) return undefined;
    const { proxies } = this.#options;
    const requested = proxies.synced ? (this.#requests.get(virtualNodeName(name))?.usedIn() ?? {}) : undefined;
    const facts = { ...memberFacts(name, this.#trouble, this.#options), requested };
    const written = this.#executor.written(name);
    const members = registry.members().length;
    return { name, cluster, node, deleted, endpoint, unread, nodePods, members, hostNodes, facts, ...written };
  }
}

function hasChanged(previous: KubeNode, node: KubeNode): boolean {
  return (
    isNodeReady(previous) !== isNodeReady(node) || !jsonEqual(previous.spec?.taints ?? [], node.spec?.taints ?? [])
  );
}
