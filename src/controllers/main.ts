import { SYSTEM_NAMESPACE, virtualNodeName } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { MemberNamespaces } from "../clusters/namespaces.ts";
import { type MemberConnection, Registry } from "../clusters/registry.ts";
import type { ClusterClient } from "../kube/client.ts";
import { configMaps, namespaces } from "../kube/resources.ts";
import { turn } from "../kube/turn.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ControllerOptions } from "../runtime/controller.ts";
import type { LeaderElector } from "../runtime/leader-election.ts";
import type { ReadStore } from "../runtime/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Traces } from "../telemetry/traces.ts";
import { ClaimController } from "./claims/controller.ts";
import type { Copier, CopyingOptions } from "./copying/options.ts";
import { together } from "./copying/together.ts";
import { DelegationController } from "./delegation/controller.ts";
import { DependencyController } from "./dependencies/controller.ts";
import { publishedServer } from "./home-api/address.ts";
import { HomeApiController } from "./home-api/controller.ts";
import { MemberTokenController } from "./member-token/controller.ts";
import { NetworkPolicyController } from "./network-policies/controller.ts";
import { OverflowController } from "./overflow/controller.ts";
import { PodEventController } from "./pod-events/controller.ts";
import type { EventOutcome } from "./pod-events/writer.ts";
import { PreferencesController } from "./preferences/controller.ts";
import { ServiceController } from "./services/controller.ts";
import { VirtualNodeController } from "./virtual-node/controller.ts";
import type { Kubelets } from "./virtual-node/model.ts";
import { NodeServing } from "./virtual-node/serving.ts";

export interface ControllersOptions extends ControllerOptions {
  readonly host: ClusterClient;
  /** Makes the client of a member from its kubeconfig. */
  readonly connect: (name: string, kubeconfig: string) => MemberConnection;
  /** How delegates' events are told on their proxies; absent: they are not. */
  readonly podEvents?: {
    /** The host again, as a client of its own: events must take no request's place. */
    readonly host: ClusterClient;
    /** Only events of type Warning. */
    readonly warningsOnly: boolean;
    readonly onOutcome?: (outcome: EventOutcome) => void;
  };
  /** Makes the kubelet API of the virtual nodes; without it they have none. */
  readonly kubelets?: (context: KubeletContext) => Kubelets;
  /** What tells a host that was set back to a backup. */
  readonly election?: Pick<LeaderElector, "unled" | "confirm">;
  /** Address of the host's API server for pods of members whose Cluster names none. */
  readonly homeApiServer?: string;
  /** Where pods' ways are told; absent: nowhere. */
  readonly traces?: Traces | undefined;
}

/** What the kubelet API of the virtual nodes is made of. */
export interface KubeletContext {
  readonly registry: Registry;
  /** The host's proxies. */
  readonly proxies: () => ReadStore<Pod>;
  readonly proxiesOn: (node: string) => readonly Stored<Pod>[];
  /** A node's endpoint came or went. */
  readonly onChange: (cluster: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Everything that runs while this process leads. */
export interface RunningControllers {
  readonly registry: Registry;
  stop(): Promise<void>;
}

/** Starts all controllers; resolves when the host has been read. Call it only while leading. */
export async function startControllers(options: ControllersOptions, signal: AbortSignal): Promise<RunningControllers> {
  const { host, connect, clock, log, metrics } = options;
  const running: ControllerOptions = { clock, log, ...(metrics === undefined ? {} : { metrics }) };
  const identity = await readIdentity(host, signal);
  const homeApiServer = options.homeApiServer ?? (await publishedServer(host, signal));
  /** Pods that wait may have a place in a member now, and a division another shape. */
  const onMembers = (): void => {
    delegation.onCapacity();
    overflow.onRoom();
    preferences.onMembers();
  };
  const registry: Registry = new Registry({
    host,
    hostId: identity.id,
    connect,
    clock,
    log,
    listener: {
      onCluster: (name) => {
        tokens.enqueue(name);
        virtualNodes.onMember(name);
        serving?.onCluster(name);
        homeApi.onMembers();
        for (const copier of copiers) copier.onMembers();
        onMembers();
        events?.refresh(name);
      },
      onClusterStatus: (name) => virtualNodes.enqueue(name),
      onReconnected: (name) => delegation.onReconnected(name),
      onDelegate: (member, key) => {
        for (const copier of copiers) copier.onDelegate?.(member, key);
        delegation.onDelegate(key, member);
        homeApi.enqueue(key);
      },
      onEnded: (member, delegate) => {
        delegation.onRoom();
        overflow.onRoom();
        preferences.onMembers();
        for (const copier of copiers) copier.onEnded?.(member, delegate);
      },
      onCapacity: (member) => {
        virtualNodes.enqueue(member.name);
        onMembers();
      },
      onPrompt: () => {
        delegation.onRoom();
        preferences.onMembers();
      },
      onConnection: (member) => {
        tokens.enqueue(member.name);
        virtualNodes.onMember(member.name);
        homeApi.onConnection(member);
        for (const copier of copiers) copier.onConnection(member);
        delegation.onConnection(member);
        overflow.onRoom();
        preferences.onMembers();
        events?.refresh(member.name);
      },
    },
  });
  const events: PodEventController | undefined =
    options.podEvents === undefined
      ? undefined
      : new PodEventController({ ...options.podEvents, registry, proxies: () => delegation.proxies, clock, log });
  const tokens: MemberTokenController = new MemberTokenController({ host, registry, ...running });
  const homeApi: HomeApiController = new HomeApiController({
    host,
    identity,
    registry,
    server: homeApiServer,
    proxies: () => delegation.proxies,
    modeOf: (proxy) => delegation.apiMode(proxy),
    onChange: onMembers,
    ...running,
  });
  const memberNamespaces = new MemberNamespaces(identity, clock);
  const copying: CopyingOptions = {
    host,
    identity,
    registry,
    memberNamespaces,
    proxies: () => delegation.proxies,
    onProxy: (key) => delegation.onDelegate(key),
    ...running,
  };
  const leading = {
    unled: options.election?.unled ?? [],
    confirmLease: async (signal: AbortSignal) => (await options.election?.confirm(signal)) ?? true,
  };
  const onRead = (): void => delegation.onCapacity();
  const copiers: readonly Copier[] = [
    new DependencyController({ ...copying, onRead }),
    new ServiceController(copying),
    new NetworkPolicyController({ ...copying, onRead }),
    new ClaimController({ ...copying, ...leading, onRead }),
  ];
  const virtualNodes: VirtualNodeController = new VirtualNodeController({
    host,
    registry,
    boundTo: (node) => delegation.boundTo(node),
    waitingIn: (member) => delegation.waitingIn(member),
    heldIn: (name) => delegation.heldIn(name),
    onNodeSpec: onMembers,
    onReady: (name) => delegation.onNodeReady(name),
    endpoint: (name) => kubelets?.endpoint(name),
    ...running,
  });
  const delegation: DelegationController = new DelegationController({
    host,
    identity,
    registry,
    dependencies: together(copiers),
    memberNamespaces,
    virtualNodes: virtualNodes.nodes,
    homeApi: (name) => homeApi.of(name),
    ...leading,
    traces: options.traces,
    onBound: (name) => virtualNodes.enqueue(name),
    onProxy: (proxy) => preferences.onProxy(proxy),
    onDefaults: () => {
      preferences.onDefaults();
      overflow.onRoom();
    },
    ...running,
  });
  const overflow: OverflowController = new OverflowController({
    host,
    identity,
    registry,
    placement: delegation.overflow,
    ...running,
  });
  const preferences: PreferencesController = new PreferencesController({
    host,
    owned: delegation.owned,
    proxies: () => delegation.proxies,
    sharing: (proxy) => delegation.sharing(proxy),
    ...running,
  });
  const kubelets: Kubelets | undefined = options.kubelets?.({
    registry,
    proxies: () => delegation.proxies,
    proxiesOn: (node) => delegation.proxiesOn(node),
    onChange: (name) => virtualNodes.enqueue(name),
    clock,
    log,
  });
  const serving: NodeServing | undefined =
    kubelets === undefined
      ? undefined
      : new NodeServing({ kubelets, registry, nodes: () => virtualNodes.nodes, clock, log });
  const stop = async (): Promise<void> => {
    metrics?.members.follow(undefined);
    await serving?.stop();
    await events?.stop();
    await preferences.stop();
    await overflow.stop();
    await delegation.stop();
    await homeApi.stop();
    for (const copier of copiers) await copier.stop();
    await virtualNodes.stop();
    await tokens.stop();
    await registry.stop();
  };
  try {
    await registry.start(signal);
    await virtualNodes.start(signal);
    await homeApi.start(signal);
    await delegation.start(signal);
    await overflow.start(signal);
  } catch (error) {
    // What has begun would go on for ever, and a process that has lost its lease would not end.
    await stop();
    throw error;
  }
  for (const member of registry.members()) {
    homeApi.onProxies(member);
    for (const copier of copiers) copier.onProxies?.(member);
    // With a hundred members that is a second's work, and the Lease must be renewed meanwhile.
    await turn();
  }
  events?.start();
  serving?.start();
  metrics?.members.follow({
    members: function* () {
      for (const { name, reachable, delegateCount } of registry.members()) {
        yield { name, reachable, delegates: delegateCount, proxies: delegation.boundTo(virtualNodeName(name)) };
      }
    },
    waiting: () => delegation.waiting(),
  });
  log.info({ host: identity.name, clusters: registry.clusters().length }, "controllers started");
  return {
    registry,
    stop,
  };
}

/** The host's id is its kube-system namespace's uid; its name is what `legation install` wrote down. */
async function readIdentity(host: ClusterClient, signal: AbortSignal): Promise<HostIdentity> {
  const system = await host.get(namespaces, { name: "kube-system" }, { signal });
  const settings = await host.find(configMaps, { namespace: SYSTEM_NAMESPACE, name: "legation" }, { signal });
  return { id: system.metadata.uid, name: settings?.data?.["cluster-name"] ?? "host" };
}
