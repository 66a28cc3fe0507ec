import { virtualNodeName } from "../api/keys.ts";
import { MemberNamespaces } from "../clusters/namespaces.ts";
import { Registry, type RegistryListener } from "../clusters/registry.ts";
import { yieldToEventLoop } from "../kube/event-loop.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { EventRecorder } from "../runtime/event-recorder.ts";
import { ClaimController } from "./claims/controller.ts";
import { type PodCopier, type PodCopierOptions, together } from "./copying/pod-copier.ts";
import type { Refusals } from "./delegation/actions/refused-writes.ts";
import { DelegationController } from "./delegation/controller.ts";
import { DependencyController } from "./dependencies/controller.ts";
import { CLASSES, NAMESPACED } from "./dependencies/family.ts";
import { HomeApiController } from "./home-api/controller.ts";
import { MemberTokenController } from "./member-token/controller.ts";
import { NetworkPolicyController } from "./network-policies/controller.ts";
import type { ControllersOptions } from "./options.ts";
import { OverflowController } from "./overflow/controller.ts";
import { OverflowPlacement } from "./overflow/placement.ts";
import { PodEventController } from "./pod-events/controller.ts";
import { PreferencesController } from "./preferences/controller.ts";
import { RestoredHost } from "./restored-host.ts";
import { ServiceController } from "./services/controller.ts";
import { VirtualNodeController } from "./virtual-node/controller.ts";
import { NodeServing } from "./virtual-node/serving.ts";

/** What the controllers are told beside what their process was started with. */
export interface HostOptions {
  readonly identity: HostIdentity;
  /** Where pods find the host's API server, unless their Cluster says otherwise. */
  readonly homeApiServer: string | undefined;
}

const EVENT_SOURCE = { component: "legation", reportingComponent: "legation.dev/controller" };

/** All controllers, and who of them hears of what. */
export class Controllers {
  readonly registry: Registry;
  readonly #options: ControllersOptions;
  readonly #podEvents: PodEventController | undefined;
  readonly #recorder: EventRecorder;
  readonly #tokens: MemberTokenController;
  readonly #homeApi: HomeApiController;
  readonly #copiers: readonly PodCopier[];
  readonly #virtualNodes: VirtualNodeController;
  readonly #delegation: DelegationController;
  readonly #overflow: OverflowController;
  readonly #preferences: PreferencesController;
  readonly #serving: NodeServing | undefined;

  constructor(options: ControllersOptions, { identity, homeApiServer }: HostOptions) {
    this.#options = options;
    const { host, connect, clock, log, metrics, podEvents, traces } = options;
    const running = { clock, log, ...(metrics === undefined ? {} : { metrics }) };
    const registry = new Registry({ host, hostId: identity.id, connect, clock, log, listener: this.#listener() });
    this.registry = registry;
    const proxies = () => this.#delegation.proxies;
    const recorder = new EventRecorder({ client: host, source: EVENT_SOURCE, clock, log });
    this.#recorder = recorder;
    this.#podEvents = podEvents && new PodEventController({ ...podEvents, registry, proxies, clock, log });
    this.#tokens = new MemberTokenController({ host, registry, ...running });
    const refusals: Pick<Refusals, "tell" | "over"> = {
      tell: (...refusal) => this.#delegation.refusals.tell(...refusal),
      over: (...write) => this.#delegation.refusals.over(...write),
    };
    this.#homeApi = new HomeApiController({
      host,
      identity,
      registry,
      recorder,
      refusals,
      server: homeApiServer,
      proxies,
      modeOf: (proxy) => this.#delegation.apiMode(proxy),
      onChange: () => this.#onMembers(),
      ...running,
    });
    const memberNamespaces = new MemberNamespaces(identity, clock);
    const copying: PodCopierOptions = {
      host,
      identity,
      registry,
      memberNamespaces,
      recorder,
      proxies,
      onProxy: (key) => this.#delegation.onDelegate(key),
      ...running,
    };
    const restoredHost = new RestoredHost({ election: options.election, log });
    const onRead = (): void => this.#delegation.onCapacity();
    const classes = new DependencyController({ ...copying, onRead, family: CLASSES });
    const policies = new NetworkPolicyController({ ...copying, onRead });
    this.#copiers = [
      new DependencyController({ ...copying, onRead, family: NAMESPACED }),
      classes,
      new ServiceController(copying),
      policies,
      new ClaimController({ ...copying, restoredHost, onRead }),
    ];
    const kubelets = options.kubelets?.({
      registry,
      proxies,
      proxiesOn: (node) => this.#delegation.proxiesOn(node),
      onChange: (name) => this.#virtualNodes.enqueue(name),
      clock,
      log,
    });
    this.#virtualNodes = new VirtualNodeController({
      host,
      registry,
      boundTo: (node) => this.#delegation.boundTo(node),
      waitingIn: (member) => this.#delegation.waitingIn(member) + this.#overflow.bindingTo(member),
      heldIn: (name) => this.#delegation.heldIn(name),
      onNodeSpec: () => this.#onMembers(),
      onReady: (name) => this.#delegation.onNodeReady(name),
      endpoint: (name) => kubelets?.endpoint(name),
      ...(options.nodePods === undefined ? {} : { nodePods: options.nodePods }),
      ...running,
    });
    this.#delegation = new DelegationController({
      host,
      identity,
      registry,
      dependencies: together(this.#copiers),
      memberNamespaces,
      recorder,
      virtualNodes: this.#virtualNodes.nodes,
      homeApi: (name) => this.#homeApi.of(name),
      restoredHost,
      notPlacedReason: options.notPlacedReason,
      traces,
      onBound: (name, key) => {
        this.#virtualNodes.enqueue(name);
        if (key !== undefined) this.#homeApi.enqueue(key);
      },
      onProxy: (proxy) => this.#preferences.onProxy(proxy),
      onRoom: () => this.#overflow.onRoom(),
      onDefaults: () => {
        this.#preferences.onDefaults();
        this.#overflow.onRoom();
      },
      ...running,
    });
    this.#overflow = new OverflowController({
      host,
      identity,
      registry,
      placement: new OverflowPlacement(this.#delegation.placementAccess),
      recorder,
      policyRefusal: (pod, member) => policies.refusal(pod, member),
      providesClasses: (pod, member) => classes.provides(pod, member),
      ...running,
    });
    this.#preferences = new PreferencesController({
      host,
      owned: this.#delegation.owned,
      proxies,
      sharing: (proxy) => this.#delegation.sharing(proxy),
      refusals: this.#delegation.refusals,
      ...running,
    });
    this.#serving =
      kubelets && new NodeServing({ kubelets, registry, nodes: () => this.#virtualNodes.nodes, clock, log });
  }

  /** Resolves when the host has been read, and all of them run. Rejects when that cannot be; they are to be stopped then. */
  async start(signal: AbortSignal): Promise<void> {
    await this.registry.start(signal);
    await this.#virtualNodes.start(signal);
    await this.#homeApi.start(signal);
    await this.#delegation.start(signal);
    this.#virtualNodes.onProxies();
    await this.#overflow.start(signal);
    for (const member of this.registry.members()) {
      this.#homeApi.onProxies(member);
      for (const copier of this.#copiers) copier.onProxies?.(member);
      // With a hundred members that is a second's work, and the Lease must be renewed meanwhile.
      await yieldToEventLoop();
    }
    this.#podEvents?.start();
    this.#serving?.start();
    this.#reportMembers();
  }

  /** Stops controllers before what they write through. */
  async stop(): Promise<void> {
    this.#options.metrics?.members.follow(undefined);
    await this.#serving?.stop();
    await this.#podEvents?.stop();
    await this.#preferences.stop();
    await this.#overflow.stop();
    await this.#delegation.stop();
    await this.#homeApi.stop();
    for (const copier of this.#copiers) await copier.stop();
    await this.#recorder.stop();
    await this.#virtualNodes.stop();
    await this.#tokens.stop();
    await this.registry.stop();
  }

  #listener(): RegistryListener {
    return {
      onCluster: (name) => {
        this.#tokens.enqueue(name);
        this.#virtualNodes.onMember(name);
        this.#serving?.onCluster(name);
        this.#homeApi.onMembers();
        for (const copier of this.#copiers) copier.onMembers();
        this.#onMembers();
        this.#podEvents?.refresh();
      },
      onClusterStatus: (name) => this.#virtualNodes.enqueue(name),
      onReconnected: (name) => this.#delegation.onReconnected(name),
      onDelegate: (member, key) => {
        for (const copier of this.#copiers) copier.onDelegate?.(member, key);
        this.#delegation.onDelegate(key, member);
        this.#homeApi.enqueue(key);
      },
      onEnded: (member, delegate) => {
        this.#delegation.onEnded(member.name, delegate);
        this.#onRoom();
        for (const copier of this.#copiers) copier.onEnded?.(member, delegate);
      },
      onCapacity: (member) => {
        this.#virtualNodes.enqueue(member.name);
        this.#onMembers();
      },
      onResponsive: () => this.#onRoom(),
      onConnection: (member) => {
        this.#tokens.enqueue(member.name);
        this.#virtualNodes.onMember(member.name);
        this.#homeApi.onConnection(member);
        for (const copier of this.#copiers) copier.onConnection(member);
        this.#delegation.onConnection(member);
        this.#overflow.onRoom();
        this.#preferences.onMembers();
        this.#podEvents?.refresh();
      },
    };
  }

  /** Pods that wait may have a place in a member now, and a division another shape. */
  #onMembers(): void {
    this.#delegation.onCapacity();
    this.#overflow.onRoom();
    this.#preferences.onMembers();
  }

  /** The same, of a member that has only got room. */
  #onRoom(): void {
    this.#delegation.onRoom();
    this.#overflow.onRoom();
    this.#preferences.onMembers();
  }

  #reportMembers(): void {
    const { registry } = this;
    const boundTo = (name: string): number => this.#delegation.boundTo(virtualNodeName(name)) ?? 0;
    this.#options.metrics?.members.follow({
      members: function* () {
        for (const { name, reachable, delegates } of registry.members()) {
          yield { name, reachable, delegates: delegates.size, proxies: boundTo(name) };
        }
      },
      waiting: () => this.#delegation.waiting(),
    });
  }
}
