import { z } from "zod";
import { byName, jsonOrNothing } from "./json.ts";
import { RELAY_IN_MEMBERS_ANNOTATION } from "./keys.ts";
import type { KubeObject, Service } from "./kubernetes.ts";

/** Names of relayed Services and of `legation relay`, which carries their connections: docs/relay.md. */

/** Namespace on the host of `legation relay`. */
export const RELAY_NAMESPACE = "legation-relay";
/** Service of that namespace whose endpoints are the replicas. */
export const RELAY_SERVICE = "legation-relay";
/** Namespace of the proxies of relays in members. */
export const MEMBER_RELAY_NAMESPACE = "legation-relay-members";
/** Service of that namespace whose endpoints are these relays. */
export const MEMBER_RELAY_SERVICE = "legation-relay-members";
/** Manager, by its label, of the EndpointSlices of relayed Services. */
export const RELAY_SLICE_MANAGER = "relay.legation.dev";
/** Ports on which replicas listen for relayed Services: below Linux' ephemeral ports, which connections take. */
export const RELAY_PORTS = { first: 20_000, count: 10_000 } as const;
/** Ports on the loopback address of a relay in a member, to which the host's relay connects by port-forward. */
export const MEMBER_RELAY_PORTS = { control: 19_998, streams: 19_999 } as const;

/** Returns the target's port of that number or name. `targetPort` of a relayed Service names a port of the Service that it leads to. */
export function portOf({ spec }: Service, wanted: string | number | undefined): { readonly name?: string } | undefined {
  return spec?.ports?.find(({ name, port }) => (typeof wanted === "string" ? name === wanted : port === wanted));
}

/** Endpoints that are a member's own relays, by the member. */
export type EndpointsByMember = Record<
  string,
  { readonly addresses: string[]; readonly conditions: { readonly ready: boolean } }[]
>;

const endpointsByMember: z.ZodType<EndpointsByMember> = z.record(
  z.string(),
  z.array(z.object({ addresses: z.array(z.string()), conditions: z.object({ ready: z.boolean() }) })),
);

/** Returns the members whose pods may use the relayed Service of a slice, each with its relays. */
export function relaysInMembers({ metadata }: KubeObject): EndpointsByMember {
  const parsed = endpointsByMember.safeParse(jsonOrNothing(metadata?.annotations?.[RELAY_IN_MEMBERS_ANNOTATION] ?? ""));
  return byName(parsed.success ? parsed.data : {});
}
