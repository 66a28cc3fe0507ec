import { clusterOfNode, RELAY_ANNOTATION } from "../../../src/api/keys.ts";
import type { EndpointSlice, Pod, Service, Stored } from "../../../src/api/kubernetes.ts";
import { RELAY_NAMESPACE, RELAY_PORTS, RELAY_SERVICE, RELAY_SLICE_MANAGER } from "../../../src/api/relay.ts";
import { clusters } from "../../../src/api/resources.ts";
import { hasSelector, SLICE_MANAGER_LABEL, selects, serviceOfSlice } from "../../../src/copies/services.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { endpointSlices, services } from "../../../src/kube/resources.ts";
import { conditionOf, isDeleting, isTerminal } from "../../../src/pods/pod-state.ts";
import { podsOf } from "../../support/harness/pods-of.ts";
import type { Scene } from "../scene.ts";

/** The network of the host. */
export const HOST_NETWORK = "corp";

type Port = NonNullable<NonNullable<Service["spec"]>["ports"]>[number];

/** Returns the EndpointSlices of a namespace, of one manager or of all. */
export async function slicesIn(
  client: ClusterClient,
  namespace: string,
  manager?: string,
): Promise<Stored<EndpointSlice>[]> {
  const only = manager === undefined ? {} : { labelSelector: `${SLICE_MANAGER_LABEL}=${manager}` };
  return (await client.list(endpointSlices, { namespace, ...only })).items;
}

/** Where a pod runs: the name of its member, or the host's. */
function placeOf({ spec }: Pod): string {
  return clusterOfNode(spec?.nodeName) ?? "host";
}

/** Returns Services that lead from a member to other pods than they should, and relayed ones that do not lead to the relay. */
export async function wrongServices(scene: Scene): Promise<string[]> {
  const { clients, namespace } = scene;
  const [all, found, members] = await Promise.all([
    podsOf(clients.host, namespace),
    clients.host.list(services, { namespace }),
    clients.host.list(clusters),
  ]);
  const networks = new Map([
    ["host", HOST_NETWORK],
    ...members.items.flatMap(({ metadata, spec }): [string, string][] =>
      spec.network === undefined ? [] : [[metadata.name, spec.network]],
    ),
  ]);
  const live = all.filter((pod) => !isTerminal(pod) && !isDeleting(pod));
  const inMembers = (["west", "east"] as const).map(async (member) => {
    const [copies, slices] = await Promise.all([
      clients[member].list(services, { namespace }),
      slicesIn(clients[member], namespace),
    ]);
    const view = { member, networks, live, copies: copies.items, slices };
    const names = new Set(found.items.map(({ metadata }) => metadata.name));
    const left = [...copies.items.map(({ metadata }) => metadata.name), ...slices.map(serviceOfSlice)];
    return [
      ...found.items.flatMap((service) => wrongIn(view, service)),
      ...[...new Set(left)]
        .filter((name) => !names.has(name))
        .map((name) => `${member}: Service ${name} was left behind`),
    ];
  });
  return [...(await Promise.all(inMembers)).flat(), ...(await wrongRelays(scene, found.items))];
}

/** A member as a run left it, and the pods of the host, where they run. */
export interface MemberView {
  readonly member: string;
  readonly networks: ReadonlyMap<string, string>;
  readonly live: readonly Stored<Pod>[];
  readonly copies: readonly Stored<Service>[];
  readonly slices: readonly Stored<EndpointSlice>[];
}

/** Returns how a Service in a member differs from what it should be: the ready pods of the member and its network, once each. */
export function wrongIn({ member, networks, live, copies, slices }: MemberView, service: Stored<Service>): string[] {
  const { name } = service.metadata;
  const network = networks.get(member);
  const here = live.filter((pod) => placeOf(pod) === member);
  const copy = copies.find(({ metadata }) => metadata.name === name);
  const own = slices.filter((slice) => serviceOfSlice(slice) === name);
  if (here.length === 0) return copy === undefined && own.length === 0 ? [] : [`${member}: ${name} outlives its pods`];
  const isSelected = (pod: Stored<Pod>): boolean => selects(service, pod.metadata.labels ?? {});
  if (copy === undefined) {
    const isNeeded = !hasSelector(service) || network !== undefined || here.some(isSelected);
    return isNeeded ? [`${member}: there is no copy of ${name}`] : [];
  }
  if ((copy.spec?.clusterIP === "None") !== (service.spec?.clusterIP === "None"))
    return [`${member}: ${name} has another kind of address`];
  const isReached = (pod: Stored<Pod>): boolean => {
    const place = placeOf(pod);
    return place === member || (network !== undefined && networks.get(place) === network);
  };
  const isReady = (pod: Stored<Pod>): boolean =>
    service.spec?.publishNotReadyAddresses === true || conditionOf(pod, "Ready")?.status === "True";
  const wanted = live
    .filter((pod) => isSelected(pod) && isReached(pod) && isReady(pod))
    .map(({ status }) => status?.podIP);
  const seen = own.flatMap(({ endpoints, ports }) =>
    (endpoints ?? []).flatMap(({ addresses, conditions }) =>
      conditions?.ready === false ? [] : addresses.map((address) => ({ address, ports })),
    ),
  );
  const addresses = [seen.map(({ address }) => address), wanted].map((each) => each.toSorted().join());
  const wrongPorts = seen.filter(({ ports }) => numbersOf(ports) !== numbersOf(service.spec?.ports));
  return [
    ...(addresses[0] === addresses[1] ? [] : [`${member}: ${name} leads to ${addresses[0]}, not to ${addresses[1]}`]),
    ...(wrongPorts.length === 0
      ? []
      : [`${member}: ${name} has other ports at ${wrongPorts.map(({ address }) => address)}`]),
  ];
}

function numbersOf(ports: EndpointSlice["ports"] | readonly Port[] | undefined): string {
  const numbers = (ports ?? []).map(
    (each) => `${each.name ?? ""} ${"targetPort" in each ? each.targetPort : each.port}`,
  );
  return numbers.sort().join();
}

/** Each relayed Service has one slice, with the relay's replicas and ports that no other has; no other Service has any. */
async function wrongRelays(
  { clients: { host }, namespace }: Scene,
  found: readonly Stored<Service>[],
): Promise<string[]> {
  const [slices, ofRelay] = await Promise.all([
    slicesIn(host, namespace, RELAY_SLICE_MANAGER),
    host.list(endpointSlices, {
      namespace: RELAY_NAMESPACE,
      labelSelector: `kubernetes.io/service-name=${RELAY_SERVICE}`,
    }),
  ]);
  const addressesOf = (some: readonly Stored<EndpointSlice>[]): string =>
    some
      .flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses))
      .toSorted()
      .join();
  const replicas = addressesOf(ofRelay.items);
  const used = slices.flatMap(({ ports }) => (ports ?? []).map(({ port }) => port ?? 0));
  const relayed = found.filter(({ metadata }) => metadata.annotations?.[RELAY_ANNOTATION] !== undefined);
  const names = new Set(relayed.map(({ metadata }) => metadata.name));
  return [
    ...(new Set(used).size === used.length ? [] : [`relayed Services share a port: ${used}`]),
    ...used
      .filter((port) => port < RELAY_PORTS.first || port >= RELAY_PORTS.first + RELAY_PORTS.count)
      .map((port) => `${port} is no port of the relay`),
    ...slices
      .filter((slice) => !names.has(serviceOfSlice(slice)))
      .map(({ metadata }) => `${metadata.name} leads to the relay, and its Service does not`),
    ...relayed.flatMap(({ metadata: { name }, spec }) => {
      const own = slices.filter((slice) => serviceOfSlice(slice) === name);
      const ports = (spec?.ports ?? [])
        .filter(({ protocol }) => protocol === "TCP")
        .map((port) => port.name)
        .join();
      if (own.length === 1 && addressesOf(own) === replicas && own[0]?.ports?.map((port) => port.name).join() === ports)
        return [];
      return [
        `${name} leads to ${addressesOf(own)} by ${JSON.stringify(own.map((slice) => slice.ports))}, not to the relay's ${replicas}`,
      ];
    }),
  ];
}
