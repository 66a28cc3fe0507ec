import type { Service } from "./kubernetes.ts";

/** Names of relayed Services and of `legation relay`, which carries their connections: docs/relay.md. */

/** Namespace on the host of `legation relay`. */
export const RELAY_NAMESPACE = "legation-relay";
/** Service of that namespace whose endpoints are the replicas. */
export const RELAY_SERVICE = "legation-relay";
/** Manager, by its label, of the EndpointSlices of relayed Services. */
export const RELAY_SLICE_MANAGER = "relay.legation.dev";
/** Ports on which replicas listen for relayed Services: below Linux' ephemeral ports, which connections take. */
export const RELAY_PORTS = { first: 20_000, count: 10_000 } as const;

/** Returns the target's port of that number or name. `targetPort` of a relayed Service names a port of the Service that it leads to. */
export function portOf({ spec }: Service, wanted: string | number | undefined): { readonly name?: string } | undefined {
  return spec?.ports?.find(({ name, port }) => (typeof wanted === "string" ? name === wanted : port === wanted));
}
