import type { Cluster } from "../api/cluster.ts";
import type { KubeNode, Pod, Stored } from "../api/kubernetes.ts";
import type { CapacityProvider, ClusterQueue, ResourceFlavor } from "../api/kueue.ts";
import { resourceFlavors } from "../api/resources.ts";
import { isInShard, type Shard } from "../api/shards.ts";
import { renewMemberTokens } from "../clusters/member-tokens.ts";
import type { Registry } from "../clusters/registry.ts";
import type { TokenRenewal } from "../clusters/token-renewal.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isBound, isGated, isTerminal } from "../pods/pod-state.ts";
import type { ControllerOptions } from "../runtime/controller.ts";
import type { Events } from "../runtime/event-bus.ts";
import type { EventRecorder } from "../runtime/event-recorder.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { ReadStore } from "../runtime/store.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { QueuedWhole } from "../whole/type.ts";
import { ClusterProfileController } from "./cluster-profiles/controller.ts";
import type { ControllerEvents } from "./events.ts";
import type { ControllersOptions } from "./options.ts";
import { NODE_INDEX } from "./proxies.ts";
import { FlavorCapacities, followCapacities } from "./queues/flavor-capacities.ts";
import type { KueueController } from "./queues/kueue-controller.ts";
import { PROVIDERS } from "./queues/providers.ts";
import { QUOTAS } from "./queues/quotas.ts";
import { RoomController, type RoomOptions } from "./queues/room-controller.ts";
import { RelayController } from "./relays/controller.ts";
import type { Kubelets } from "./virtual-node/model.ts";
import { NodeServing } from "./virtual-node/serving.ts";

/** The host's API server as its own pods reach it. */
const IN_CLUSTER_SERVER = "https://kubernetes.default.svc";

// Other shards withdraw what waits in a member that leaves as soon as they see it.
const WITHDRAWN_AFTER_MS = 60_000;

/**
 * Returns how many pods of other shards without a node may have a delegate in a member that leaves. Nobody but their
 * shard's holder knows where: one that answers is given time, and one that does not is waited for.
 */
export function waitingElsewhere(
  proxies: readonly Stored<Pod>[],
  {
    shard,
    cluster,
    now,
  }: { readonly shard: Shard; readonly cluster: Stored<Cluster> | undefined; readonly now: number },
): number {
  const ready = cluster?.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
  const leftAt = Date.parse(cluster?.metadata.deletionTimestamp ?? "");
  if (shard.count === 1 || (ready && now - leftAt >= WITHDRAWN_AFTER_MS)) return 0;
  const isWaiting = (pod: Stored<Pod>): boolean => !isBound(pod) && !isGated(pod) && !isTerminal(pod);
  return proxies.filter((pod) => !isInShard(shard, pod.metadata.namespace) && isWaiting(pod)).length;
}

type HostState = NonNullable<ReturnType<RoomOptions["hostState"]>>;

export interface HostWideOptions extends ControllerOptions, Pick<ControllersOptions, "kubelets"> {
  /** Shows the objects of all shards. */
  readonly host: ClusterClient;
  readonly shard: Shard;
  readonly registry: Registry;
  readonly events: Events<ControllerEvents>;
  readonly metrics?: Metrics;
  readonly recorder: EventRecorder;
  /** The proxies of all shards. */
  readonly proxies: ReadStore<Pod>;
  readonly nodes: ReadStore<KubeNode>;
  readonly homeApiServer: string | undefined;
  readonly hostAuthority: () => string | undefined;
  readonly placement: (
    ...asked: Parameters<RoomOptions["hostState"]>
  ) => Omit<HostState, "clusters" | "nodes" | "proxies"> | undefined;
  readonly complete: RoomOptions["complete"];
  readonly whole: readonly QueuedWhole[];
}

/** Runs the controllers of what is one for the whole host. */
export class HostWide {
  readonly kubelets: Kubelets | undefined;
  readonly #tokens: TokenRenewal;
  readonly #profiles: ClusterProfileController;
  readonly #flavors: Reflector<ResourceFlavor>;
  readonly #capacities: FlavorCapacities;
  readonly #quotas: KueueController<ClusterQueue>;
  readonly #providers: KueueController<CapacityProvider>;
  readonly #room: RoomController;
  readonly #relays: RelayController;
  readonly #serving: NodeServing | undefined;

  constructor(options: HostWideOptions) {
    const { shard, registry, events, proxies, nodes, homeApiServer, whole, clock, log } = options;
    this.#tokens = renewMemberTokens(options);
    this.#profiles = new ClusterProfileController({
      ...options,
      hostAddress: () => {
        const authority = options.hostAuthority();
        return {
          server: homeApiServer ?? IN_CLUSTER_SERVER,
          certificateAuthorityData: authority === undefined ? undefined : Buffer.from(authority).toString("base64"),
        };
      },
    });
    // The first controller starts it that needs flavors.
    const flavors = new Reflector<ResourceFlavor>({
      ...{ client: options.host, clock, log },
      resource: resourceFlavors,
      onEvent: () => events.emit("flavors"),
      onState: () => events.emit("flavors"),
    });
    this.#flavors = flavors;
    this.#capacities = new FlavorCapacities({
      ...options,
      flavors,
      wholeInMember: (cluster) => whole.flatMap((type) => type.inMember(cluster)),
    });
    const queues = { ...options, capacities: this.#capacities };
    this.#quotas = followCapacities(QUOTAS, queues);
    this.#providers = followCapacities(PROVIDERS, queues);
    this.#room = new RoomController({
      ...options,
      flavors,
      hostState: (claiming) => {
        const known = options.placement(claiming);
        return known && { ...known, clusters: registry.clusters(), nodes: nodes.list(), proxies: proxies.list() };
      },
      wholeWork: () => whole.flatMap((type) => type.work()),
    });
    this.#relays = new RelayController(options);
    this.kubelets = options.kubelets?.({
      registry,
      proxies,
      proxiesOn: (node) => proxies.byIndex(NODE_INDEX, node),
      shard,
      onChange: (name) => events.emit("nodeEndpoint", name),
      clock,
      log,
    });
    this.#serving = this.kubelets && new NodeServing({ ...options, kubelets: this.kubelets });
  }

  start(): void {
    this.#profiles.start();
    this.#quotas.start();
    this.#providers.start();
    this.#room.start();
    this.#relays.start();
    this.#serving?.start();
  }

  async stop(): Promise<void> {
    await this.#serving?.stop();
    await this.#relays.stop();
    await this.#room.stop();
    await this.#profiles.stop();
    await this.#providers.stop();
    await this.#quotas.stop();
    this.#capacities.stop();
    await this.#flavors.stop();
    await this.#tokens.stop();
  }
}
