import { clusterOfNode } from "../api/keys.ts";
import type { Stored } from "../api/kubernetes.ts";
import { isOfSelector, type ServiceObject } from "./services.ts";
import type { Source } from "./source.ts";

// Changes with every change of the slice, and says nothing of the part that a member is given.
const TRIGGERED_ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time";

/** Names of the networks that clusters are in. */
export interface Networks {
  readonly host: string | undefined;
  readonly members: ReadonlyMap<string, string>;
}

interface Given {
  readonly networks: Networks;
  readonly source: Source<ServiceObject>;
}

/**
 * The host's EndpointSlices of Services with a selector as members of a network are given them: without their own pods, which the
 * member's controller has, and without those of clusters that they cannot reach. Each is made once: the copier compares by identity.
 */
export class JoinedSlices {
  readonly #given = new WeakMap<Stored<ServiceObject>, Map<string, Given>>();

  /** Returns what the member is given of the slice. */
  of(slice: Stored<ServiceObject>, member: string, networks: Networks): Source<ServiceObject> {
    const known = this.#given.get(slice) ?? new Map<string, Given>();
    const before = known.get(member);
    if (before?.networks === networks) return before.source;
    const source = sourceFor(slice, member, networks);
    this.#given.set(slice, known.set(member, { networks, source }));
    return source;
  }
}

function sourceFor(slice: Stored<ServiceObject>, member: string, networks: Networks): Source<ServiceObject> {
  const network = networks.members.get(member);
  if (network === undefined || !isOfSelector(slice)) return { state: "missing" };
  const endpoints = (slice.endpoints ?? []).filter(({ nodeName }) => {
    const other = clusterOfNode(nodeName);
    if (other === undefined) return networks.host === network;
    return other !== member && networks.members.get(other) === network;
  });
  if (endpoints.length === 0) return { state: "missing" };
  const { [TRIGGERED_ANNOTATION]: _, ...annotations } = slice.metadata.annotations ?? {};
  return { state: "present", object: { ...slice, metadata: { ...slice.metadata, annotations }, endpoints } };
}
