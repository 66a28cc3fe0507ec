import type { Cluster } from "../api/cluster.ts";
import { defined } from "../api/defined.ts";
import { virtualNodeName } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { renewMemberTokens } from "../clusters/member-tokens.ts";
import { MemberNamespaces } from "../clusters/namespaces.ts";
import { type MemberConnection, Registry } from "../clusters/registry.ts";
import type { TokenRenewal } from "../clusters/token-renewal.ts";
import { FAMILIES } from "../copies/named-by-pods.ts";
import { yieldToEventLoop } from "../kube/event-loop.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { completedSpec } from "../pods/host-admission.ts";
import { DepartedClusters } from "../runtime/departed-clusters.ts";
import { Events } from "../runtime/event-bus.ts";
import { EventRecorder } from "../runtime/event-recorder.ts";
import type { ReadStore } from "../runtime/store.ts";
import { proxyWrites } from "../scheduling/memories.ts";
import { type RunningType, runWholeTypes } from "../whole/adapters.ts";
import { AgentController } from "./agents/controller.ts";
import { ClaimController } from "./claims/controller.ts";
import { ClusterProfileController } from "./cluster-profiles/controller.ts";
import { type PodCopier, type PodCopierOptions, subscribe, together } from "./copying/pod-copier.ts";
import { DelegationController } from "./delegation/controller.ts";
import { DependencyController } from "./dependencies/controller.ts";
import type { ControllerEvents } from "./events.ts";
import { Followers } from "./following/followers.ts";
import { HomeApiController } from "./home-api/controller.ts";
import { NetworkPolicyController } from "./network-policies/controller.ts";
import type { ControllersOptions } from "./options.ts";
import { OverflowController } from "./overflow/controller.ts";
import { OverflowPlacement } from "./overflow/placement.ts";
import { PodEventController } from "./pod-events/controller.ts";
import { PreferencesController } from "./preferences/controller.ts";
import { boundTo, NODE_INDEX, reflectProxies } from "./proxies.ts";
import { FlavorCapacities } from "./queues/flavor-capacities.ts";
import { reflectFlavors } from "./queues/flavors.ts";
import { ProviderController } from "./queues/provider-controller.ts";
import { QuotaController } from "./queues/quota-controller.ts";
import { RoomController } from "./queues/room-controller.ts";
import { objectsInMember, workOfObject } from "./queues/whole-work.ts";
import { RefusedWrites } from "./refused-writes.ts";
import { RelayController } from "./relays/controller.ts";
import { KeptDelegates, RestoredHost } from "./restored-host.ts";
import { ServiceController } from "./services/controller.ts";
import { ImportController } from "./services/imports/controller.ts";
import { JoinedNetworks } from "./services/joined-networks.ts";
import { VirtualNodeController } from "./virtual-node/controller.ts";
import { NodeServing } from "./virtual-node/serving.ts";
import { TypesController } from "./whole/types-controller.ts";

export interface HostOptions {
  readonly identity: HostIdentity;
  /** The network of the host's pods. Undefined: members reach none of them. */
  readonly network: string | undefined;
  /** Legation implements the Multi-Cluster Services API in joined networks. */
  readonly mcs: boolean;
  readonly homeApiServer: string | undefined;
}

/** The host's API server as its own pods reach it. */
const IN_CLUSTER_SERVER = "https://kubernetes.default.svc";
const EVENT_SOURCE = { component: "legation", reportingComponent: "legation.dev/controller" };

/** All controllers. Each says itself of which events it hears: docs/architecture.md#events. */
export class Controllers {
  readonly registry: Registry;
  readonly #options: ControllersOptions;
  readonly #proxies: ReadStore<Pod>;
  readonly #podEvents: PodEventController | undefined;
  readonly #recorder: EventRecorder;
  readonly #agents: AgentController;
  readonly #tokens: TokenRenewal;
  readonly #homeApi: HomeApiController;
  readonly #profiles: ClusterProfileController;
  readonly #copiers: readonly PodCopier[];
  readonly #networks: JoinedNetworks;
  readonly #virtualNodes: VirtualNodeController;
  readonly #delegation: DelegationController;
  readonly #overflow: OverflowController;
  readonly #preferences: PreferencesController;
  readonly #flavors: ReturnType<typeof reflectFlavors>;
  readonly #capacities: FlavorCapacities;
  readonly #quotas: QuotaController;
  readonly #providers: ProviderController;
  readonly #whole: readonly RunningType[];
  readonly #types: TypesController;
  readonly #room: RoomController;
  readonly #relays: RelayController;
  readonly #imports: ImportController | undefined;
  readonly #serving: NodeServing | undefined;
  readonly #departed: DepartedClusters | undefined;

  constructor(options: ControllersOptions, { identity, network, mcs, homeApiServer }: HostOptions) {
    this.#options = options;
    const { host, connect, clock, log, metrics, podEvents, traces } = options;
    const events = new Events<ControllerEvents>();
    const connectTo = ({ metadata: { name }, spec }: Stored<Cluster>, kubeconfig: string): MemberConnection => {
      return connect(name, kubeconfig, spec.agent === undefined ? undefined : this.#agents.connectionOf(name));
    };
    const registry = new Registry({ host, hostId: identity.id, connect: connectTo, clock, log, events });
    this.registry = registry;
    const proxyReflector = reflectProxies({ host, events, clock, log });
    const proxies = proxyReflector.store;
    this.#proxies = proxies;
    const recorder = new EventRecorder({ client: host, source: EVENT_SOURCE, clock, log });
    this.#recorder = recorder;
    const running = { host, registry, events, clock, log, ...defined({ metrics }) };
    if (metrics !== undefined) {
      const departed = new DepartedClusters({ exists: (name) => registry.cluster(name) !== undefined, metrics, clock });
      events.on("cluster", (name) => departed.noteChange(name));
      this.#departed = departed;
    }
    this.#podEvents = podEvents && new PodEventController({ ...running, ...podEvents, proxies });
    this.#agents = new AgentController({ ...running, hostId: identity.id, hub: options.hub });
    this.#tokens = renewMemberTokens(running);
    const refusedWrites = new RefusedWrites({ writes: proxyWrites(clock), recorder, events });
    this.#homeApi = new HomeApiController({
      ...running,
      identity,
      recorder,
      refusedWrites,
      server: homeApiServer,
      agentAddress: (name) => this.#agents.agent(name)?.homeAddress,
      proxies,
      modeOf: (proxy) => this.#delegation.placementState.eligibilities.apiMode(proxy),
    });
    this.#profiles = new ClusterProfileController({
      ...running,
      recorder,
      hostAddress: () => {
        const authority = this.#homeApi.hostAuthority();
        return {
          server: homeApiServer ?? IN_CLUSTER_SERVER,
          certificateAuthorityData: authority === undefined ? undefined : Buffer.from(authority).toString("base64"),
        };
      },
    });
    const memberNamespaces = new MemberNamespaces(identity, clock);
    const copying: PodCopierOptions = { ...running, identity, memberNamespaces, recorder, proxies };
    const restoredHost = new RestoredHost({ election: options.election, log });
    const dependencies = Object.values(FAMILIES).map((family) => new DependencyController({ ...copying, family }));
    const policies = new NetworkPolicyController(copying);
    const followers = new Followers(copying);
    const claims = new ClaimController({ ...copying, restoredHost });
    const networks = new JoinedNetworks({ ...running, network });
    this.#networks = networks;
    const services = new ServiceController({ ...copying, networks, mcs });
    events.on("networks", () => services.onNetworks());
    this.#copiers = [...dependencies, services, policies, claims, followers];
    for (const copier of this.#copiers) subscribe(copier, events);
    const kubelets = options.kubelets?.({
      registry,
      proxies,
      proxiesOn: (node) => proxies.byIndex(NODE_INDEX, node),
      onChange: (name) => events.emit("nodeEndpoint", name),
      clock,
      log,
    });
    const kept = new KeptDelegates({ ...running, restoredHost });
    this.#virtualNodes = new VirtualNodeController({
      ...running,
      proxies,
      waitingIn: (member) => this.#delegation.waitingIn(member) + this.#overflow.bindingTo(member),
      kept,
      networkProblem: (name) => networks.problem(name),
      endpoint: (name) => kubelets?.endpoint(name),
      agent: (name) => this.#agents.agent(name),
      ...defined({ nodePods: options.nodePods }),
    });
    this.#delegation = new DelegationController({
      ...running,
      identity,
      proxies: proxyReflector,
      preparer: together(this.#copiers),
      confinement: (pod) => followers.groupOf(pod),
      memberNamespaces,
      recorder,
      virtualNodes: this.#virtualNodes.nodes,
      homeApi: (name) => this.#homeApi.of(name),
      restoredHost,
      kept,
      refusedWrites,
      notPlacedReason: options.notPlacedReason,
      traces,
    });
    this.#overflow = new OverflowController({
      ...running,
      identity,
      placement: new OverflowPlacement(this.#delegation.placementAccess),
      recorder,
      copyRefusal: (pod, member) => policies.refusal(pod, member) ?? followers.refusal(pod, member),
      providesClasses: (pod, member) =>
        dependencies.every((family) => !family.areClasses || family.provides(pod, member)),
    });
    const flavors = reflectFlavors(running);
    this.#flavors = flavors;
    this.#capacities = new FlavorCapacities({
      ...running,
      flavors,
      proxies,
      wholeInMember: (cluster) => [
        ...this.#whole.flatMap((type) => type.inMember(cluster)),
        ...this.#types.queuedObjects().flatMap((queued) => objectsInMember(cluster, queued)),
      ],
    });
    const queues = { ...running, capacities: this.#capacities };
    this.#quotas = new QuotaController({ ...queues, recorder });
    this.#providers = new ProviderController(queues);
    const { divisions, eligibilities } = this.#delegation.placementState;
    this.#preferences = new PreferencesController({
      ...running,
      owned: divisions.proxies,
      proxies,
      eligibilities,
      refusedWrites,
    });
    const { podRules: rules } = this.#delegation.placementState;
    const whole = { ...running, identity, memberNamespaces, recorder, restoredHost, rules };
    this.#whole = runWholeTypes(whole);
    for (const type of this.#whole) type.follow(running.events);
    this.#types = new TypesController({ ...whole, proxies, followers });
    this.#room = new RoomController({
      ...running,
      flavors,
      proxies,
      hostState: (claiming) => {
        const known = claims.known(claiming);
        return (
          known && {
            ...this.#delegation.placementObjects(),
            clusters: registry.clusters(),
            nodes: this.#virtualNodes.nodes.list(),
            proxies: proxies.list(),
            claims: known,
            followed: followers.types,
          }
        );
      },
      wholeWork: () => [
        ...this.#whole.flatMap((type) => type.work()),
        ...this.#types.queuedObjects().flatMap((queued) => queued.objects.map((one) => workOfObject(one, queued))),
      ],
      complete: (spec) => completedSpec(spec, this.#delegation.hostClasses),
    });
    this.#relays = new RelayController({ ...running, recorder, proxies });
    if (mcs) {
      const { nodes } = this.#virtualNodes;
      this.#imports = new ImportController({ ...running, identity, nodes, networks: () => networks.now });
    }
    this.#serving = kubelets && new NodeServing({ ...running, kubelets, nodes: this.#virtualNodes.nodes });
  }

  /** Rejects when the host cannot be read; the controllers are to be stopped then. */
  async start(signal: AbortSignal): Promise<void> {
    await this.registry.start(signal);
    await this.#agents.start();
    await this.#virtualNodes.start(signal);
    await this.#homeApi.start(signal);
    // Pods wait until it is known which objects follow them.
    this.#types.start();
    await this.#delegation.start(signal);
    this.#virtualNodes.onProxies();
    await this.#overflow.start(signal);
    for (const member of this.registry.members()) {
      this.#homeApi.onProxies(member);
      for (const copier of this.#copiers) copier.onProxies?.(member);
      // With a hundred members that is a second's work, and the Lease must be renewed meanwhile.
      await yieldToEventLoop();
    }
    for (const type of this.#whole) type.start();
    this.#profiles.start();
    this.#quotas.start();
    this.#providers.start();
    this.#room.start();
    this.#relays.start();
    this.#imports?.start();
    this.#podEvents?.start();
    this.#serving?.start();
    this.#reportMembers();
  }

  /** Stops controllers before what they write through. */
  async stop(): Promise<void> {
    this.#options.metrics?.members.follow(undefined);
    this.#departed?.stop();
    await this.#serving?.stop();
    await this.#podEvents?.stop();
    await this.#imports?.stop();
    await this.#relays.stop();
    await this.#room.stop();
    await this.#profiles.stop();
    await this.#providers.stop();
    await this.#quotas.stop();
    this.#capacities.stop();
    await this.#flavors.stop();
    await this.#types.stop();
    for (const type of this.#whole) await type.stop();
    await this.#preferences.stop();
    await this.#overflow.stop();
    await this.#delegation.stop();
    await this.#homeApi.stop();
    for (const copier of this.#copiers) await copier.stop();
    await this.#recorder.stop();
    await this.#virtualNodes.stop();
    await this.#tokens.stop();
    await this.registry.stop();
    await this.#agents.stop();
  }

  #reportMembers(): void {
    const { registry } = this;
    const proxies = this.#proxies;
    const networks = this.#networks;
    this.#options.metrics?.members.follow({
      members: function* () {
        for (const { name, reachable, unresponsiveMs, delegates, cluster } of registry.members()) {
          const unresponsiveSeconds = unresponsiveMs / 1000;
          const bound = boundTo(proxies, virtualNodeName(name)) ?? 0;
          const joined = cluster.spec.network === undefined ? undefined : networks.isJoined(name);
          yield { name, reachable, joined, unresponsiveSeconds, delegates: delegates.size, proxies: bound };
        }
      },
      waiting: () => this.#delegation.waiting(),
    });
  }
}
