import { Socket } from "node:net";
import type { ClusterClient, Dial, PathUpgrades } from "../kube/client.ts";
import type { ClusterCredentials } from "../kube/credentials.ts";
import { createClusterClient } from "../kube/http-client.ts";
import { DIAL_MS } from "./dialled.ts";
import { messageOf, upgradeTo } from "./messages.ts";

/** Connections of `legation access`, and of controllers of other shards, to members with agents, through the hub. */

export const RELAY_PROTOCOL = "legation-relay";
/** Path of the hub's API, before the Cluster's name. */
export const RELAY_PATH = "/relay/v1/clusters/";
/** Common name of the client certificate of `legation access`. No Cluster can have it, so no agent. */
export const RELAY_NAME = "legation:access";

/** Common name of the client certificate by which a controller of another shard reaches members. */
export const CONTROLLER_NAME = "legation:controller";

/** Name in the hub's certificate that its clients verify, whatever the address. */
export const RELAY_SERVER_NAME = "legation-hub.legation-system.svc";

/** Returns a client of the hub at this address, which may change its certificate while connections to members last. */
export function hubClient(
  address: string,
  { userAgent, source, identity }: { readonly userAgent: string } & Pick<ClusterCredentials, "source" | "identity">,
): ClusterClient & PathUpgrades {
  return createClusterClient({
    cluster: "hub",
    userAgent,
    credentials: {
      server: `https://${address}`,
      source,
      insecureSkipTlsVerify: false,
      tlsServerName: RELAY_SERVER_NAME,
      identity,
      refresh: () => {},
    },
  });
}

/** Returns how a member's API server is reached through the hub. `hub` presents the relay's certificate. */
export function relayDial(hub: PathUpgrades, cluster: string): Dial {
  return async (signal) => {
    const request = { ...upgradeTo(RELAY_PROTOCOL, DIAL_MS), signal };
    const answer = await hub.upgradePath(`${RELAY_PATH}${cluster}`, request);
    if (answer.socket instanceof Socket) return answer.socket;
    answer.socket?.destroy();
    throw new Error(answer.socket === undefined ? messageOf(answer.text) : "the hub's connection is no socket");
  };
}
