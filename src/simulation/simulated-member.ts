import type { Cluster } from "../api/cluster.ts";
import { type DevicesStatus, SLOW } from "../api/cluster-status.ts";
import type { KubeNode, Stored } from "../api/kubernetes.ts";
import { parseAmounts } from "../api/quantity.ts";
import { DelegateRequests } from "../clusters/delegate-requests.ts";
import { NodeFits } from "../clusters/node-fits.ts";
import { fitsLargest } from "../clusters/node-totals.ts";
import type { Candidate } from "../placement/candidate.ts";
import { BEING_REMOVED, CORDONED, candidateOf, NO_VIRTUAL_NODE } from "../placement/member-candidate.ts";
import { isNodeReady } from "../placement/node-fit.ts";
import { type NodeKinds, nodesOf, untold } from "../placement/node-kinds.ts";
import type { PlacementMember } from "../scheduling/pod-rules.ts";

/** A member as the host knows it, without a connection. */
export class SimulatedMember implements PlacementMember {
  readonly name: string;
  // No connection fills gaps later.
  readonly read = true;
  readonly syncing = false;
  readonly roomVersion = "";
  /** Requests of the member's proxies, and of pods that a simulation adds. */
  readonly requests: DelegateRequests = new DelegateRequests((requests) =>
    fitsLargest(requests, this.#candidate.largestNode),
  );
  readonly #cluster: Stored<Cluster>;
  readonly #node: Stored<KubeNode> | undefined;
  readonly #candidate: Candidate;
  readonly #guesses = new Set<string>();

  constructor(cluster: Stored<Cluster>, node: Stored<KubeNode> | undefined) {
    this.name = cluster.metadata.name;
    this.#cluster = cluster;
    this.#node = node;
    this.#candidate = this.#makeCandidate();
  }

  candidate(): Candidate {
    return this.#candidate;
  }

  /** Facts that placement asked for and the host does not know. */
  get guesses(): readonly string[] {
    return [...this.#guesses];
  }

  /** Notes that a pod of the member must reach the host's API server. */
  needsHomeApi(): void {
    const { homeAPI, agent } = this.#cluster.spec;
    if (homeAPI !== undefined || agent?.homeAPI === true) return;
    this.#guesses.add(
      "whether its pods find the host's API server only the controller knows, since its Cluster has no spec.homeAPI: taken for granted",
    );
  }

  /** Returns the devices of the member, for a pod with claims. Undefined if the host does not know. */
  devicesForClaims(): DevicesStatus | undefined {
    const { devices } = this.#cluster.status ?? {};
    if (devices === undefined) {
      this.#guesses.add("which devices it has, the host is not told: that it has those of claims is taken for granted");
    }
    return devices;
  }

  #makeCandidate(): Candidate {
    const { status = {} } = this.#cluster;
    const allocatable = parseAmounts(status.allocatable);
    return candidateOf({
      cluster: this.#cluster,
      closed: this.#closed(),
      overdue: false,
      allocatable,
      largestNode: status.largestNode === undefined ? allocatable : parseAmounts(status.largestNode),
      used: this.requests.used,
      foreign: status.requestedByOthers === undefined ? undefined : parseAmounts(status.requestedByOthers),
      nodeTaints: this.#node?.spec?.taints ?? [],
      devices: status.devices,
      usedIn: (namespace) => this.requests.usedIn(namespace),
      reservedFor: (proxyUid) => this.requests.reservedFor(proxyUid),
      preemptible: (priority) => this.requests.below(priority),
      ...this.#nodesFor(),
    });
  }

  #nodesFor(): Pick<Candidate, "nodesFor" | "nodesHave"> {
    const { nodes = 0, nodeKinds, unlistedNodeLabels = [] } = this.#cluster.status ?? {};
    if (nodeKinds === undefined || (nodeKinds.length === 0 && nodes > 0)) {
      if (nodes > 0) {
        this.#guesses.add(
          "what its nodes are like, the host is not told: that one of them takes the pod is taken for granted",
        );
      }
      return {};
    }
    const kinds: NodeKinds = { kinds: nodeKinds, unlistedLabels: unlistedNodeLabels };
    const fits = new NodeFits(() => nodesOf(kinds, nodes));
    return {
      nodesHave: (key) =>
        unlistedNodeLabels.includes(key) || nodeKinds.some(({ labels = {} }) => Object.hasOwn(labels, key)),
      nodesFor: (needs) => {
        const unknown = untold(needs, kinds);
        if (unknown === undefined) return fits.fit(needs);
        this.#guesses.add(
          `the host is not told ${unknown}: that one of them is what the pod selects is taken for granted`,
        );
        // No rule asks further about a node that is large enough.
        return { nodes, selected: nodes, tolerated: nodes, largest: {}, large: true, against: new Map() };
      },
    };
  }

  #closed(): Candidate["closed"] {
    const { metadata, status } = this.#cluster;
    if (metadata.deletionTimestamp !== undefined) return BEING_REMOVED;
    if (this.#node?.spec?.unschedulable === true) return CORDONED;
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    if (ready === undefined) {
      return {
        reason: "ClusterNotReady",
        message: "no controller has reported on it: does `legation controller` run?",
      };
    }
    if (ready.reason === "NodeRefused") return NO_VIRTUAL_NODE;
    if (ready.reason === SLOW) return { reason: "ClusterNotReady", message: ready.message };
    // A member that answers may still be not ready: another identity, or pods that cannot be read.
    if (ready.status !== "True") return { reason: "ClusterNotReady", message: `it is not ready: ${ready.message}` };
    if (this.#node !== undefined && !isNodeReady(this.#node)) {
      this.#guesses.add(
        "its virtual node is not Ready, so what the host says of it may be old: does the controller run?",
      );
    }
    return undefined;
  }
}
