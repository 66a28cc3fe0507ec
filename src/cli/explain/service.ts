import { type Cluster, joinedNetworkOf } from "../../api/cluster.ts";
import { clusterOfNode, RELAY_ANNOTATION } from "../../api/keys.ts";
import type { KubeEvent, Pod, Service, Stored } from "../../api/kubernetes.ts";
import { addressKindOf } from "../../api/service-fields.ts";
import { HOST_CONFIG_NAME, recordedHost } from "../../clusters/host-name.ts";
import { hasWholeLabel } from "../../copies/objects.ts";
import { hasSelector, SERVICE_NAME_LABEL, type ServiceObject } from "../../copies/services.ts";
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
  /** The Service to whose pods connections are carried. Undefined: it is not relayed. */
  readonly relay: string | undefined;
  /** This cluster first, then the members with pods of the namespace. */
  readonly clusters: readonly ServiceInCluster[];
  /** The Service as members have it, where they have it whole. */
  readonly whole?: WholeObjectStatus;
  readonly troubles: readonly Trouble[];
  readonly hidden: string | undefined;
}

export interface ServiceInCluster {
  /** Undefined: this cluster. */
  readonly cluster: string | undefined;
  readonly network: string | undefined;
  /** Endpoints that are pods of this cluster. */
  readonly ready: number;
  readonly notReady: number;
  /** Clusters, this one as `undefined`, to whose ready pods the Service leads from here. */
  readonly reaches: readonly (string | undefined)[];
  /** Why it leads to none of the pods of others. */
  readonly unreached: readonly { readonly cluster: string | undefined; readonly why: string }[];
}

/** The host's objects that tell of a Service. */
export interface ServiceFacts {
  readonly service: Stored<Service>;
  readonly slices: readonly ServiceObject[];
  /** Pods of the namespace that have a member. */
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

/** Reads a Service, its endpoints and the members of its namespace. Rejects with `Failure` if there is none, else with KubeError. */
export async function readService(
  client: ClusterClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<ServiceStatus> {
  const ref = { namespace, name };
  const readFacts = () =>
    Promise.all([
      listAll(client, endpointSlices, { namespace, labelSelector: `${SERVICE_NAME_LABEL}=${name}`, signal }),
      listAll(client, podResource, { namespace, labelSelector: OF_PROXIES, signal }),
      readable(findClusters(client, signal)),
      readable(recordedHost(client, signal)),
    ]);
  const { object: service, told, facts } = await readWhole(client, { resource: services, ref }, readFacts, signal);
  const [slices, proxies, clusters, host] = facts;
  const whole = hasWholeLabel(service)
    ? await readWholeObject(client, { word: "services", ...ref }, signal)
    : undefined;
  const hidden = [...(clusters === undefined ? [MEMBERS] : []), ...(host === undefined ? [HOST_NETWORK] : [])];
  return {
    ...serviceStatus({ service, slices, proxies, clusters: clusters ?? [], network: host?.network, told }),
    ...(whole === undefined ? {} : { whole }),
    hidden: hiddenLine(hidden),
  };
}

/** Describes a Service, as far as the host's objects tell. */
export function serviceStatus(facts: ServiceFacts): Omit<ServiceStatus, "whole" | "hidden"> {
  const { service, told } = facts;
  const { namespace = "", name } = service.metadata;
  const { type = "ClusterIP", ports = [] } = service.spec ?? {};
  const kind = addressKindOf(service);
  return {
    namespace,
    name,
    type: kind === "Headless" ? "headless" : type,
    relay: service.metadata.annotations?.[RELAY_ANNOTATION],
    ports: ports.map(({ port, protocol = "TCP" }) => `${port}/${protocol}`),
    clusters: clustersOf(facts),
    troubles: toldTroubles(told, ["NotInMember", "NotRelayed", "CopyContested", "CopyDeleted", "DeletionRefused"]),
  };
}

function clustersOf(facts: ServiceFacts): ServiceInCluster[] {
  const counts = countsOf(facts.slices);
  const withPods = facts.proxies.filter((pod) => !isTerminal(pod)).map(memberOf);
  const members = [...new Set([...withPods, ...counts.keys()])].filter((member) => member !== undefined).sort();
  const networks = new Map<string | undefined, string | undefined>(
    facts.clusters.map((cluster) => [cluster.metadata.name, joinedNetworkOf(cluster)]),
  ).set(undefined, facts.network);
  const all = [undefined, ...members];
  return all.map((cluster) => {
    const network = networks.get(cluster);
    const { ready = 0, notReady = 0 } = counts.get(cluster) ?? {};
    const others = all
      .filter((other) => (counts.get(other)?.ready ?? 0) > 0)
      .map((other) => ({
        cluster: other,
        why: whyNot(facts.service, [cluster, network], [other, networks.get(other)]),
      }));
    const isEverywhere = !hasSelector(facts.service) || hasWholeLabel(facts.service);
    const hasName = cluster === undefined || ready + notReady > 0 || network !== undefined || isEverywhere;
    const why = "it has no pod of the Service and is in no network, so it has no Service of that name";
    return {
      ...{ cluster, network, ready, notReady },
      reaches: hasName ? others.filter((other) => other.why === undefined).map((other) => other.cluster) : [],
      unreached: others.flatMap((other) => {
        const reason = hasName ? other.why : why;
        return reason === undefined ? [] : [{ cluster: other.cluster, why: reason }];
      }),
    };
  });
}

type InNetwork = readonly [cluster: string | undefined, network: string | undefined];

function whyNot(service: Stored<Service>, [from, ofFrom]: InNetwork, [to, ofTo]: InNetwork): string | undefined {
  const isRelayed = service.metadata.annotations?.[RELAY_ANNOTATION] !== undefined;
  if (isRelayed && from !== undefined) return "a relayed Service leads from this cluster alone";
  if (from === to || !hasSelector(service)) return undefined;
  if (hasWholeLabel(service)) return "of a whole Service, each cluster has its own pods alone";
  if (ofFrom !== undefined && ofFrom === ofTo) return undefined;
  if (from === undefined) return "it has their addresses, which lead there only if the pod networks are joined";
  return "the two are in no network together (spec.network)";
}

/** Counts a Service's endpoints by the cluster in which they are. A pod with two addresses is one. */
function countsOf(
  slices: readonly ServiceObject[],
): ReadonlyMap<string | undefined, { readonly ready: number; readonly notReady: number }> {
  const [{ addressType } = {}] = slices;
  const endpoints = slices
    .filter((slice) => slice.addressType === addressType)
    .flatMap((slice) => slice.endpoints ?? []);
  const grouped = Map.groupBy(endpoints, ({ nodeName }) => clusterOfNode(nodeName));
  return new Map(
    [...grouped].map(([cluster, those]) => {
      const ready = those.filter(({ conditions }) => conditions?.ready !== false).length;
      return [cluster, { ready, notReady: those.length - ready }];
    }),
  );
}
