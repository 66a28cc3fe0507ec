/** Names of relayed Services and of `legation relay`, which carries their connections: docs/relay.md. */

/** Namespace on the host of `legation relay`. */
export const RELAY_NAMESPACE = "legation-relay";
/** Service of that namespace whose endpoints are the replicas. */
export const RELAY_SERVICE = "legation-relay";
/** Manager, by its label, of the EndpointSlices of relayed Services. */
export const RELAY_SLICE_MANAGER = "relay.legation.dev";
/** Ports on which replicas listen for relayed Services: below Linux' ephemeral ports, which connections take. */
export const RELAY_PORTS = { first: 20_000, count: 10_000 } as const;
