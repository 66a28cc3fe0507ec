import { clusterOfNode } from "../api/keys.ts";
import type { Stored } from "../api/kubernetes.ts";
import { isOfSelector, type ServiceObject } from "./services.ts";
import { PerMember, type Source } from "./source.ts";

// Changes with every change of the slice, and says nothing of the part that a member is given.
const TRIGGERED_ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time";

// The zone and the node of endpoints in other clusters: none of the member's has that name.
const ELSEWHERE = "another-cluster";

export interface Networks {
  readonly host: string | undefined;
  readonly members: ReadonlyMap<string, string>;
}

/** Returns the network of a member, or of the host if the name is undefined. Undefined: none. */
export function networkOf({ host, members }: Networks, cluster: string | undefined): string | undefined {
  return cluster === undefined ? host : members.get(cluster);
}

type Endpoint = NonNullable<ServiceObject["endpoints"]>[number];
type Distribution = string | undefined;

/**
 * The host's EndpointSlices of Services with a selector as members of a network are given them: without their own pods, which the
 * member's controller has, and without those of clusters that they cannot reach.
 */
export class JoinedSlices {
  readonly #given = new PerMember<ServiceObject, readonly [Networks, Distribution]>();

  /** Returns what the member is given of the slice. `distribution`: the `trafficDistribution` of its Service. */
  of(
    slice: Stored<ServiceObject>,
    member: string,
    networks: Networks,
    distribution: Distribution,
  ): Source<ServiceObject> {
    const inputs = [networks, distribution] as const;
    return this.#given.of(slice, { member, inputs }, () => sourceFor(slice, member, networks, distribution));
  }
}

function sourceFor(
  slice: Stored<ServiceObject>,
  member: string,
  networks: Networks,
  distribution: Distribution,
): Source<ServiceObject> {
  const network = networks.members.get(member);
  if (network === undefined || !isOfSelector(slice)) return { state: "missing" };
  const endpoints = (slice.endpoints ?? []).flatMap((endpoint) => {
    const other = clusterOfNode(endpoint.nodeName);
    const isJoined = other !== member && networkOf(networks, other) === network;
    return isJoined ? [withHints(endpoint, distribution)] : [];
  });
  if (endpoints.length === 0) return { state: "missing" };
  const { [TRIGGERED_ANNOTATION]: _, ...annotations } = slice.metadata.annotations ?? {};
  return { state: "present", object: { ...slice, metadata: { ...slice.metadata, annotations }, endpoints } };
}

/**
 * Gives an endpoint the hints that the endpoints of the member itself have, for a place that is not near: kube-proxy uses hints only
 * where every ready endpoint has them, and all endpoints where no hint is for its own zone or node.
 */
export function withHints({ hints: _, ...endpoint }: Endpoint, distribution: Distribution): Endpoint {
  if (distribution === undefined || endpoint.conditions?.ready === false) return endpoint;
  const forZones = [{ name: endpoint.zone ?? ELSEWHERE }];
  return {
    ...endpoint,
    hints: distribution === "PreferSameNode" ? { forZones, forNodes: [{ name: ELSEWHERE }] } : { forZones },
  };
}
