import { CLUSTER_FINALIZER, NODE_LEASE_NAMESPACE, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../api/keys.ts";
import type { KubeNode, Lease, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient, Patch } from "../../kube/client.ts";
import { ignoring, isKubeError, isRefusal } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { leases, nodes } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Expectation } from "../../runtime/controller.ts";
import { isBefore } from "../../runtime/resource-version.ts";
import { LEASE_SECONDS } from "./decide.ts";
import { takenBy } from "./decide-node.ts";
import type { Action, Observed } from "./model.ts";

export interface ExecutorOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "cluster">;
  readonly clock: Clock;
}

/** The last writes of this controller for a Cluster. */
type Written = Pick<Observed, "renewedAt" | "heartbeatAt" | "reportedAt" | "features" | "refused">;

// Leases that were renewed together, as a leader does when it begins, come apart.
const JITTER_MS = 1_000;
const NEVER: Written = { renewedAt: 0, heartbeatAt: 0, reportedAt: 0 };

/** Writes Nodes, Leases and Clusters, and notes when it last did. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #written = new Map<string, Written>();

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  written(name: string): Written {
    return this.#written.get(name) ?? NEVER;
  }

  forget(name: string): void {
    this.#written.delete(name);
  }

  /** Sends a write that keeps the node alive out of turn: no burst of pods makes the node look dead. */
  async execute(action: Action, name: string, signal: AbortSignal): Promise<Expectation<Observed> | undefined> {
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
        this.#write(name, { renewedAt: clock.now() - Math.random() * JITTER_MS });
        return undefined;
      case "patchClusterStatus": {
        this.#write(name, { reportedAt: clock.now() });
        const patch: Patch = { type: "merge", body: { status: action.status } };
        const written = host.patch(clusters, { name }, patch, { subresource: "status", signal, outOfTurn: true });
        const version = (await ignoring(written, "NotFound"))?.metadata.resourceVersion;
        if (version === undefined) return undefined;
        return ({ cluster }) => cluster === undefined || !isBefore(cluster.metadata.resourceVersion, version);
      }
      case "addFinalizer":
      case "removeFinalizer": {
        const { finalizers = [], resourceVersion } = this.#options.registry.cluster(name)?.metadata ?? {};
        const others = finalizers.filter((finalizer) => finalizer !== CLUSTER_FINALIZER);
        const wanted = action.type === "addFinalizer" ? [...others, CLUSTER_FINALIZER] : others;
        const body = { metadata: { finalizers: wanted, resourceVersion } };
        await ignoring(host.patch(clusters, { name }, { type: "merge", body }, { signal }), "NotFound");
        return ({ cluster }) => cluster?.metadata.resourceVersion !== resourceVersion;
      }
      case "deleteNode":
        await ignoring(host.delete(nodes, ref, { uid: action.uid, signal }), "NotFound");
        await ignoring(host.delete(leases, { ...ref, namespace: NODE_LEASE_NAMESPACE }, { signal }), "NotFound");
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
      await ignoring(host.patch(nodes, ref, { type: "merge", body }, { signal }), "NotFound");
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
    const written = await ignoring(write, "NotFound");
    if (written === undefined) return undefined;
    const { uid, resourceVersion } = written.metadata;
    return ({ node }) => node?.metadata.uid !== uid || !isBefore(node.metadata.resourceVersion, resourceVersion);
  }

  async #renewLease(name: string, nodeUid: string, signal: AbortSignal): Promise<void> {
    const { host, clock } = this.#options;
    const ref = { namespace: NODE_LEASE_NAMESPACE, name };
    const renewTime = new Date(clock.wall()).toISOString().replace("Z", "000Z");
    const spec = { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime };
    const options = { signal, outOfTurn: true };
    const renewed = await ignoring(host.patch(leases, ref, { type: "merge", body: { spec } }, options), "NotFound");
    if (renewed !== undefined) return;
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name, uid: nodeUid }];
    const lease: Lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { ...ref, ownerReferences },
      spec,
    };
    await ignoring(host.create(leases, lease, options), "AlreadyExists");
  }

  #write(name: string, written: Partial<Written>): void {
    this.#written.set(name, { ...this.written(name), ...written });
  }
}
