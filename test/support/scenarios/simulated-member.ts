import type { Cluster } from "../../../src/api/cluster.ts";
import { type KubeNode, type ObjectKey, objectKey, type Pod, type Stored } from "../../../src/api/kubernetes.ts";
import type { Amounts } from "../../../src/api/quantity.ts";
import { addAmounts, parseAmounts } from "../../../src/api/quantity.ts";
import { DelegateRequests } from "../../../src/clusters/delegate-requests.ts";
import { NodeFits } from "../../../src/clusters/node-fits.ts";
import { fitsLargest, totalsOf } from "../../../src/clusters/node-totals.ts";
import type { MemberView } from "../../../src/controllers/delegation/decision/view.ts";
import { factsOf } from "../../../src/controllers/delegation/observe.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { CORDONED, candidateOf, notAnswering } from "../../../src/placement/member-candidate.ts";
import { fitOf, nodeRequirements } from "../../../src/placement/node-fit.ts";
import { podRequests } from "../../../src/placement/requests.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import type { PlacementMember } from "../../../src/scheduling/pod-rules.ts";
import { MEMBERS, type MemberName, PRIORITY_CLASSES } from "./members.ts";

/** A member without a cluster: its nodes, a scheduler that fills them, and what Legation counts of it. */
export class SimulatedMember implements PlacementMember {
  readonly name: MemberName;
  readonly read = true;
  readonly syncing = false;
  readonly requests: DelegateRequests = new DelegateRequests((requests) =>
    fitsLargest(requests, totalsOf(this.#nodes).largestNode),
  );
  closed: Candidate["closed"];
  readonly #cluster: Cluster;
  readonly #nodes: readonly KubeNode[];
  readonly #free: Map<string, Record<string, number>>;
  readonly #delegates = new Map<ObjectKey, Stored<Pod>>();
  readonly #fits: NodeFits;
  readonly #now: () => number;
  #version = 0;

  constructor(name: MemberName, now: () => number) {
    const { labels, spec, nodes } = MEMBERS[name];
    const conditions = [{ type: "Ready", status: "True" }];
    this.name = name;
    this.#now = now;
    this.#cluster = {
      apiVersion: "legation.dev/v1alpha1",
      kind: "Cluster",
      metadata: { name, labels },
      spec: { credentialsSecret: { name: "" }, ...spec },
    };
    this.#nodes = nodes.map((node) => ({ ...node, status: { ...node.status, conditions } }));
    this.#free = new Map(
      nodes.map(({ metadata, status }) => [metadata?.name ?? "", { ...parseAmounts(status?.allocatable) }]),
    );
    this.#fits = new NodeFits(() => this.#nodes);
  }

  get roomVersion(): string {
    return String(this.#version);
  }

  get scheduleTimeoutMs(): number {
    return (this.#cluster.spec.scheduleTimeoutSeconds ?? 30) * 1000;
  }

  candidate(): Candidate {
    const { allocatable, largestNode } = totalsOf(this.#nodes);
    return candidateOf({
      cluster: this.#cluster,
      closed: this.closed,
      overdue: false,
      allocatable,
      largestNode,
      used: this.requests.used,
      foreign: undefined,
      nodeTaints: [],
      usedIn: (namespace) => this.requests.usedIn(namespace),
      reservedFor: (proxyUid) => this.requests.reservedFor(proxyUid),
      nodesFor: (needs) => this.#fits.fit(needs),
    });
  }

  source(key: ObjectKey): { readonly candidate: Candidate; readonly connection: MemberView } {
    const delegate = this.#delegates.get(key);
    const candidate = this.candidate();
    const connection = {
      name: this.name,
      reachable: this.closed?.reason !== "ClusterNotReady",
      reachableSince: 0,
      read: true,
      scheduleTimeoutMs: this.scheduleTimeoutMs,
      nodesVersion: 0,
      ...(delegate === undefined ? {} : { delegate }),
      ...factsOf(candidate),
    };
    return { candidate, connection };
  }

  cordon(): void {
    this.closed = CORDONED;
  }

  lose(): void {
    this.closed = notAnswering("Timeout");
  }

  /** Creates the pod and looks for a node; returns why the API server refuses it, or undefined. */
  create(delegate: Pod): string | undefined {
    const { namespace = "", name = "" } = delegate.metadata ?? {};
    const priority = delegate.spec?.priorityClassName;
    if (priority !== undefined && PRIORITY_CLASSES[priority]?.includes(this.name) !== true) {
      return `no PriorityClass with name ${priority} was found`;
    }
    const metadata = {
      ...delegate.metadata,
      namespace,
      name,
      uid: `${this.name}/${namespace}/${name}`,
      resourceVersion: "1",
    };
    const made: Stored<Pod> = { ...delegate, metadata, status: { phase: "Pending" } };
    this.requests.count(made, ownerOf(made)?.uid);
    const node = this.#nodeFor(made);
    if (node !== undefined) addAmounts(this.#free.get(node) ?? {}, podRequests(made), -1);
    this.#delegates.set(objectKey(metadata), node === undefined ? this.#unschedulable(made) : onNode(made, node));
    return undefined;
  }

  delete(key: ObjectKey): void {
    const delegate = this.#delegates.get(key);
    if (delegate === undefined) return;
    this.#delegates.delete(key);
    this.requests.forget(delegate);
    const node = delegate.spec?.nodeName;
    if (node === undefined) return;
    addAmounts(this.#free.get(node) ?? {}, podRequests(delegate));
    this.#version += 1;
  }

  #nodeFor(delegate: Stored<Pod>): string | undefined {
    const requests = podRequests(delegate);
    const needs = nodeRequirements(delegate, requests);
    const fits = (free: Amounts): boolean =>
      Object.entries(requests).every(([resource, wanted]) => wanted <= (free[resource] ?? 0));
    return [...this.#nodes]
      .filter((node) => fitOf(needs, [node]).large)
      .map(({ metadata }) => metadata?.name ?? "")
      .find((name) => fits(this.#free.get(name) ?? {}));
  }

  #unschedulable(delegate: Stored<Pod>): Stored<Pod> {
    const message = `0/${this.#nodes.length} nodes are available`;
    const at = new Date(this.#now()).toISOString();
    const condition = {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message,
      lastTransitionTime: at,
    };
    return { ...delegate, status: { phase: "Pending", conditions: [condition] } };
  }
}

function onNode(delegate: Stored<Pod>, nodeName: string): Stored<Pod> {
  return { ...delegate, spec: { containers: [], ...delegate.spec, nodeName }, status: { phase: "Running" } };
}
