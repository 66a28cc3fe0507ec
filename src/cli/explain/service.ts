import { type Cluster, joinedNetworkOf } from "../../api/cluster.ts";
import { RELAY_ANNOTATION } from "../../api/keys.ts";
import type { EndpointSlice, KubeEvent, Pod, Service, Stored } from "../../api/kubernetes.ts";
import { relaysInMembers } from "../../api/relay.ts";
import { addressKindOf } from "../../api/service-fields.ts";
import { HOST_CONFIG_NAME, recordedHost } from "../../clusters/host-name.ts";
import { hasWholeLabel } from "../../copies/objects.ts";
import { serviceEndpoints, takingConnections } from "../../copies/service-endpoints.ts";
import { hasSelector, isOfSelector, SERVICE_NAME_LABEL } from "../../copies/services.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { endpointSlices, pods as podResource, services } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { type Hidden, hiddenLine, MEMBERS } from "../shared/hidden.ts";
import { findClusters, OF_PROXIES, readable } from "../shared/reading.ts";
import type { Trouble } from "./model.ts";
import { readWhole, toldTroubles } from "./whole.ts";
import { readWholeObject, type WholeObjectStatus } from "./whole-object.ts";

/** A Service, where its pods are, and which of them are reached from where. */
export interface ServiceStatus {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  /** The ports, each as `80/TCP`. */
  readonly ports: readonly string[];
  /** The Service to whose pods connections are carried, and the replicas of the relay that are ready. Undefined: it is not relayed. */
  readonly relay: { readonly to: string; readonly replicas: number } | undefined;
  /** This cluster first, then the members with pods of the namespace. */
  readonly clusters: readonly ServiceInCluster[];
  /** The Service as members have it, where they have it whole. */
  readonly whole?: WholeObjectStatus;
  readonly troubles: readonly Trouble[];
  readonly hidden: string | undefined;
}

/** `local`: within the cluster. `joined`: over a network that both are in. `relay`: by `legation relay`. `address`: to an address that its slices have. */
export type ServiceWay = "local" | "joined" | "relay" | "address";

export interface ServiceInCluster {
  /** Undefined: this cluster. */
  readonly cluster: string | undefined;
  readonly network: string | undefined;
  /** Endpoints of this cluster; of a relayed Service those that it leads to. */
  readonly ready: number;
  readonly notReady: number;
  /** Clusters, this one as `undefined`, to whose endpoints the Service leads from here. */
  readonly reaches: readonly { readonly cluster: string | undefined; readonly how: ServiceWay }[];
  /** Why it leads to no endpoint of others. */
  readonly unreached: readonly { readonly cluster: string | undefined; readonly why: string }[];
}

/** The host's objects that tell of a Service. */
export interface ServiceFacts {
  readonly service: Stored<Service>;
  readonly slices: readonly Stored<EndpointSlice>[];
  /** The slices of the Service that a relayed one leads to, made for its selector. Undefined: it is not relayed. */
  readonly targets: readonly Stored<EndpointSlice>[] | undefined;
  readonly proxies: readonly Stored<Pod>[];
  readonly clusters: readonly Stored<Cluster>[];
  /** The network of this cluster's own pods. */
  readonly network: string | undefined;
  readonly told: readonly KubeEvent[];
}

const HOST_NETWORK: Hidden = {
  what: "the network of this cluster's own pods",
  right: `the right to get ConfigMap ${HOST_CONFIG_NAME} of Legation's namespace`,
};

interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

/** Reads a Service and where its pods are. Rejects with `Failure` if there is none, else with KubeError. */
export async function readService(
  client: ClusterClient,
  ref: ServiceName,
  signal: AbortSignal,
): Promise<ServiceStatus> {
  const { facts, hidden } = await readServiceFacts(client, ref, signal);
  const whole = hasWholeLabel(facts.service)
    ? await readWholeObject(client, { word: "services", ...ref }, signal)
    : undefined;
  return { ...serviceStatus(facts), ...(whole === undefined ? {} : { whole }), hidden: hiddenLine(hidden) };
}

/** Reads a Service, its endpoints and the members of its namespace. Rejects like `readService`. */
export async function readServiceFacts(
  client: ClusterClient,
  { namespace, name }: ServiceName,
  signal: AbortSignal,
): Promise<{ readonly facts: ServiceFacts; readonly hidden: readonly Hidden[] }> {
  const slicesOf = (service: string): Promise<Stored<EndpointSlice>[]> =>
    listAll(client, endpointSlices, { namespace, labelSelector: `${SERVICE_NAME_LABEL}=${service}`, signal });
  const readFacts = ({ metadata }: Stored<Service>) => {
    const relay = metadata.annotations?.[RELAY_ANNOTATION];
    return Promise.all([
      slicesOf(name),
      relay === undefined ? undefined : slicesOf(relay),
      listAll(client, podResource, { namespace, labelSelector: OF_PROXIES, signal }),
      readable(findClusters(client, signal)),
      readable(recordedHost(client, signal)),
    ]);
  };
  const read = { resource: services, ref: { namespace, name } };
  const { object: service, told, facts } = await readWhole(client, read, readFacts, signal);
  const [slices, ofTarget, proxies, clusters, host] = facts;
  const targets = ofTarget?.filter(isOfSelector);
  return {
    facts: { service, slices, targets, proxies, clusters: clusters ?? [], network: host?.network, told },
    hidden: [...(clusters === undefined ? [MEMBERS] : []), ...(host === undefined ? [HOST_NETWORK] : [])],
  };
}

/** Describes a Service, as far as the host's objects tell. */
export function serviceStatus(facts: ServiceFacts): Omit<ServiceStatus, "whole" | "hidden"> {
  const { service, slices, told } = facts;
  const { namespace = "", name, annotations = {} } = service.metadata;
  const to = annotations[RELAY_ANNOTATION];
  return {
    namespace,
    name,
    ...typeAndPorts(service),
    relay: to === undefined ? undefined : { to, replicas: readyReplicas(slices) },
    clusters: clustersOf(facts),
    troubles: toldTroubles(told, ["NotInMember", "NotRelayed", "CopyContested", "CopyDeleted", "DeletionRefused"]),
  };
}

/** Returns a Service's type, `headless` where it has no address, and its ports as `80/TCP`. */
export function typeAndPorts(service: Stored<Service>): Pick<ServiceStatus, "type" | "ports"> {
  const { type = "ClusterIP", ports = [] } = service.spec ?? {};
  return {
    type: addressKindOf(service) === "Headless" ? "headless" : type,
    ports: ports.map(({ port, protocol = "TCP" }) => `${port}/${protocol}`),
  };
}

function clustersOf(facts: ServiceFacts): ServiceInCluster[] {
  const endpoints = serviceEndpoints(facts.targets ?? facts.slices);
  const there = Map.groupBy(endpoints, ({ cluster }) => cluster);
  const withPods = facts.proxies.filter((pod) => !isTerminal(pod)).map(memberOf);
  const members = [...new Set([...withPods, ...there.keys()])].filter((member) => member !== undefined).sort();
  const networks = new Map<string | undefined, string | undefined>(
    facts.clusters.map((cluster) => [cluster.metadata.name, joinedNetworkOf(cluster)]),
  ).set(undefined, facts.network);
  const all = [undefined, ...members];
  return all.map((cluster) => {
    const network = networks.get(cluster);
    const own = there.get(cluster) ?? [];
    const ready = own.filter(({ state }) => state === "ready").length;
    const isEverywhere = !hasSelector(facts.service) || hasWholeLabel(facts.service);
    const hasName = cluster === undefined || own.length > 0 || network !== undefined || isEverywhere;
    const ways = all
      .filter((to) => there.get(to)?.some(({ state }) => state !== "notReady"))
      .map((to) => ({
        cluster: to,
        ...(hasName ? wayTo(facts, [cluster, network], [to, networks.get(to)]) : { why: NO_NAME }),
      }));
    const open = new Set(ways.flatMap((way) => ("how" in way ? [way.cluster] : [])));
    const taking = new Set(
      takingConnections(endpoints.filter((each) => open.has(each.cluster))).map((each) => each.cluster),
    );
    return {
      ...{ cluster, network, ready, notReady: own.length - ready },
      reaches: ways.flatMap((way) => ("how" in way && taking.has(way.cluster) ? [way] : [])),
      unreached: ways.flatMap((way) => ("why" in way ? [way] : [])),
    };
  });
}

const NO_NAME = "it has no pod of the Service and is in no network, so it has no Service of that name";

type InNetwork = readonly [cluster: string | undefined, network: string | undefined];
type Way = { readonly how: ServiceWay } | { readonly why: string };

function wayTo({ service, slices, targets }: ServiceFacts, [from, ofFrom]: InNetwork, [to, ofTo]: InNetwork): Way {
  if (targets !== undefined) {
    if (from !== undefined && !hasReadyRelay(slices, from)) return { why: "no relay runs in it that is ready" };
    if (readyReplicas(slices) > 0) return { how: "relay" };
    return { why: "no replica of legation relay is ready (legation install --relay installs it)" };
  }
  if (!hasSelector(service)) return { how: from === to ? "local" : "address" };
  if (from === to) return { how: "local" };
  if (hasWholeLabel(service)) return { why: "of a whole Service, each cluster has its own pods alone" };
  if (ofFrom !== undefined && ofFrom === ofTo) return { how: "joined" };
  if (from === undefined)
    return { why: "it has their addresses, which lead there only if the pod networks are joined" };
  return { why: "the two are in no network together (spec.network)" };
}

function hasReadyRelay(slices: readonly Stored<EndpointSlice>[], member: string): boolean {
  return slices.some((slice) => relaysInMembers(slice)[member]?.some(({ conditions }) => conditions.ready));
}

function readyReplicas(slices: readonly EndpointSlice[]): number {
  return serviceEndpoints(slices).filter(({ state }) => state === "ready").length;
}
