import { clusterOfNode } from "../api/keys.ts";
import type { EndpointSlice } from "../api/kubernetes.ts";

/** An endpoint of a Service: a pod, with all its addresses, or an address that somebody wrote. */
export interface ServiceEndpoint {
  readonly endpoint: NonNullable<EndpointSlice["endpoints"]>[number];
  readonly slice: EndpointSlice;
  readonly address: string;
  /** Undefined: it is on the host. */
  readonly cluster: string | undefined;
  /** `ending`: it terminates, and serves until it is gone. */
  readonly state: "ready" | "ending" | "notReady";
}

/** Returns the endpoints of a Service's slices on the host. A pod with two addresses, which is in two slices, is one. */
export function serviceEndpoints(slices: readonly EndpointSlice[]): ServiceEndpoint[] {
  const found = new Map<string, ServiceEndpoint>();
  for (const slice of slices) {
    for (const endpoint of slice.endpoints ?? []) {
      const [address] = endpoint.addresses ?? [];
      const key = endpoint.targetRef?.uid ?? address;
      if (address === undefined || key === undefined || found.has(key)) continue;
      found.set(key, { endpoint, slice, address, cluster: clusterOfNode(endpoint.nodeName), state: stateOf(endpoint) });
    }
  }
  return [...found.values()];
}

/** Returns the endpoints that kube-proxy chooses among: the ready ones, else those that end. */
export function takingConnections(endpoints: readonly ServiceEndpoint[]): readonly ServiceEndpoint[] {
  const ready = endpoints.filter(({ state }) => state === "ready");
  return ready.length > 0 ? ready : endpoints.filter(({ state }) => state === "ending");
}

function stateOf({ conditions = {} }: ServiceEndpoint["endpoint"]): ServiceEndpoint["state"] {
  if (conditions.ready !== false) return "ready";
  return conditions.serving === true && conditions.terminating === true ? "ending" : "notReady";
}
