import type { Cluster } from "../api/cluster.ts";
import { defined } from "../api/defined.ts";
import { virtualNodeName } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { ALL_NAMESPACES, isFirst } from "../api/shards.ts";
import { MemberNamespaces } from "../clusters/namespaces.ts";
import { type MemberConnection, Registry } from "../clusters/registry.ts";
import { shardClient } from "../clusters/shard-client.ts";
import { FAMILIES } from "../copies/named-by-pods.ts";
import { yieldToEventLoop } from "../kube/event-loop.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { completedSpec } from "../pods/host-admission.ts";
import { DepartedClusters } from "../runtime/departed-clusters.ts";
import { Events } from "../runtime/event-bus.ts";
import { EventRecorder } from "../runtime/event-recorder.ts";
import type { Reflector, ReflectorEvent } from "../runtime/reflector.ts";
import type { ReadStore } from "../runtime/store.ts";
import { proxyWrites } from "../scheduling/memories.ts";
import { type RunningType, runWholeTypes } from "../whole/adapters.ts";
import { AgentController } from "./agents/controller.ts";
import { ClaimController } from "./claims/controller.ts";
import { type PodCopier, type PodCopierOptions, subscribe, together } from "./copying/pod-copier.ts";
import { DelegationController } from "./delegation/controller.ts";
import { DependencyController } from "./dependencies/controller.ts";
import type { ControllerEvents } from "./events.ts";
import { Followers } from "./following/followers.ts";
import { HomeApiController } from "./home-api/controller.ts";
import { HostWide, waitingElsewhere } from "./host-wide.ts";
import { NetworkPolicyController } from "./network-policies/controller.ts";
import type { ControllersOptions } from "./options.ts";
import { OverflowController } from "./overflow/controller.ts";
import { OverflowPlacement } from "./overflow/placement.ts";
import { PodEventController } from "./pod-events/controller.ts";
import { PreferencesController } from "./preferences/controller.ts";
import { boundTo, reflectProxies } from "./proxies.ts";
import { RefusedWrites } from "./refused-writes.ts";
import { KeptDelegates, RestoredHost } from "./restored-host.ts";
import { ServiceController } from "./services/controller.ts";
import { ImportController } from "./services/imports/controller.ts";
import { ImportRemoval } from "./services/imports/removal.ts";
import { JoinedNetworks } from "./services/joined-networks.ts";
import { VirtualNodeController } from "./virtual-node/controller.ts";
import { TypesController } from "./whole/types-controller.ts";

export interface HostOptions {
  readonly identity: HostIdentity;
  /** The network of the host's pods. Undefined: members reach none of them. */
  readonly network: string | undefined;
  /** Legation implements the Multi-Cluster Services API in joined networks. */
  readonly mcs: boolean;
  readonly homeApiServer: string | undefined;
}

const EVENT_SOURCE = { component: "legation", reportingComponent: "legation.dev/controller" };

/** The controllers of a shard; those of the first also do what is one for the whole host. Each says itself of which events it hears: docs/architecture.md#events. */
export class Controllers {
  readonly registry: Registry;
  readonly #options: ControllersOptions;
  readonly #proxies: ReadStore<Pod>;
  /** The proxies of all shards, for the first of several. */
  readonly #allProxies: Reflector<Pod> | undefined;
  readonly #podEvents: PodEventController | undefined;
  readonly #recorder: EventRecorder;
  readonly #agents: AgentController;
  readonly #homeApi: HomeApiController;
  readonly #copiers: readonly PodCopier[];
  readonly #networks: JoinedNetworks;
  readonly #virtualNodes: VirtualNodeController;
  readonly #delegation: DelegationController;
  readonly #overflow: OverflowController;
  readonly #preferences: PreferencesController;
  readonly #whole: readonly RunningType[];
  readonly #types: TypesController;
  readonly #hostWide: HostWide | undefined;
  readonly #imports: ImportController | ImportRemoval;
  readonly #departed: DepartedClusters | undefined;
  #unfollow: (() => void) | undefined;

  constructor(options: ControllersOptions, { identity, network, mcs, homeApiServer }: HostOptions) {
    this.#options = options;
    const { shard = ALL_NAMESPACES, connect, clock, log, metrics, podEvents, traces } = options;
    const host = shardClient(options.host, shard);
    const events = new Events<ControllerEvents>();
    const connectTo = ({ metadata: { name }, spec }: Stored<Cluster>, kubeconfig: string): MemberConnection => {
      return connect(name, kubeconfig, spec.agent === undefined ? undefined : this.#agents.connectionOf(name));
    };
    const registry = new Registry({ host, hostId: identity.id, shard, connect: connectTo, clock, log, events });
    this.registry = registry;
    const proxyReflector = reflectProxies({ host, onEvent: (event) => events.emit("proxy", event), clock, log });
    const proxies = proxyReflector.store;
    const onAny = (event: ReflectorEvent<Pod>): void => events.emit("anyProxy", event);
    if (shard.count === 1) events.on("proxy", onAny);
    else if (isFirst(shard)) this.#allProxies = reflectProxies({ host: options.host, onEvent: onAny, clock, log });
    const allProxies = this.#allProxies?.store ?? proxies;
    const everywhere = this.#allProxies === undefined ? undefined : options.host;
    this.#proxies = proxies;
    const recorder = new EventRecorder({ client: host, source: EVENT_SOURCE, clock, log });
    this.#recorder = recorder;
    const running = { host, shard, registry, events, clock, log, ...defined({ metrics }) };
    if (metrics !== undefined) {
      const departed = new DepartedClusters({ exists: (name) => registry.cluster(name) !== undefined, metrics, clock });
      events.on("cluster", (name) => departed.noteChange(name));
      this.#departed = departed;
    }
    this.#podEvents = podEvents && new PodEventController({ ...running, ...podEvents, proxies });
    // Agents connect to the first shard's holder.
    const hub = isFirst(shard) ? options.hub : undefined;
    this.#agents = new AgentController({ ...running, hostId: identity.id, hub });
    const refusedWrites = new RefusedWrites({ writes: proxyWrites(clock), recorder, events });
    this.#homeApi = new HomeApiController({
      ...running,
      identity,
      recorder,
      refusedWrites,
      server: homeApiServer,
      agentAddress: (name) => this.#agents.homeAddress(name),
      proxies,
      modeOf: (proxy) => this.#delegation.placementState.eligibilities.apiMode(proxy),
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
    const kept = new KeptDelegates({ ...running, restoredHost });
    this.#virtualNodes = new VirtualNodeController({
      ...running,
      proxies: allProxies,
      waitingIn: (member) =>
        this.#delegation.waitingIn(member) +
        this.#overflow.bindingTo(member) +
        waitingElsewhere(allProxies.list(), { shard, cluster: registry.cluster(member), now: clock.wall() }),
      kept,
      networkProblem: (name) => networks.problem(name),
      endpoint: (name) => this.#hostWide?.kubelets?.endpoint(name),
      agent: (name) => this.#agents.agent(name),
      ...defined({ nodePods: options.nodePods }),
    });
    this.#delegation = new DelegationController({
      ...running,
      everywhere,
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
    const { divisions, eligibilities } = this.#delegation.placementState;
    this.#preferences = new PreferencesController({
      ...running,
      owned: divisions.proxies,
      proxies,
      eligibilities,
      refusedWrites,
    });
    const { podRules: rules } = this.#delegation.placementState;
    const whole = { ...running, everywhere, identity, memberNamespaces, recorder, restoredHost, rules };
    this.#whole = runWholeTypes(whole);
    for (const type of this.#whole) type.follow(running.events);
    this.#types = new TypesController({ ...whole, proxies, followers });
    if (isFirst(shard)) {
      this.#hostWide = new HostWide({
        ...running,
        host: options.host,
        recorder,
        proxies: allProxies,
        nodes: this.#virtualNodes.nodes,
        homeApiServer,
        hostAuthority: () => this.#homeApi.hostAuthority(),
        kubelets: options.kubelets,
        placement: (claiming) => {
          const known = claims.known(claiming);
          return known && { ...this.#delegation.placementObjects(), claims: known, followed: followers.types };
        },
        complete: (spec) => completedSpec(spec, this.#delegation.hostClasses),
        whole: [...this.#whole, this.#types],
      });
    }
    const { nodes } = this.#virtualNodes;
    this.#imports = mcs
      ? new ImportController({ ...running, identity, nodes, networks: () => networks.now })
      : new ImportRemoval({ ...running, identity });
  }

  /** Rejects when the host cannot be read; the controllers are to be stopped then. */
  async start(signal: AbortSignal): Promise<void> {
    await this.registry.start(signal);
    // Pods wait until it is known which objects follow them.
    this.#types.start();
    this.#allProxies?.start();
    // Twenty thousand proxies take seconds to read, and Leases of nodes are due meanwhile.
    await Promise.all([this.#delegation.read(signal), this.#startNodes(signal)]);
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
    this.#hostWide?.start();
    this.#imports.start();
    this.#podEvents?.start();
    this.#reportMembers();
  }

  /** Stops controllers before what they write through. */
  async stop(): Promise<void> {
    this.#unfollow?.();
    this.#departed?.stop();
    await this.#podEvents?.stop();
    await this.#imports.stop();
    await this.#hostWide?.stop();
    await this.#types.stop();
    for (const type of this.#whole) await type.stop();
    await this.#preferences.stop();
    await this.#overflow.stop();
    await this.#delegation.stop();
    await this.#homeApi.stop();
    for (const copier of this.#copiers) await copier.stop();
    await this.#recorder.stop();
    await this.#virtualNodes.stop();
    await this.#allProxies?.stop();
    await this.registry.stop();
    await this.#agents.stop();
  }

  async #startNodes(signal: AbortSignal): Promise<void> {
    await this.#agents.start();
    await this.#virtualNodes.start(signal);
    await this.#homeApi.start(signal);
  }

  #reportMembers(): void {
    const { registry } = this;
    const proxies = this.#proxies;
    const networks = this.#networks;
    this.#unfollow = this.#options.metrics?.members.follow({
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
