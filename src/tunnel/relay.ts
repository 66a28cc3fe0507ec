import { Socket } from "node:net";
import type { ClusterClient, Dial, PathUpgrades } from "../kube/client.ts";
import type { RequestIdentity } from "../kube/credentials.ts";
import { WayPending } from "../kube/errors.ts";
import { createClusterClient } from "../kube/http-client.ts";
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

// Less than the 5 s that a client waits for a connection, which would end without a reason.
const DIAL_MS = 4_500;

/** The hub, as a client reaches it now. */
export interface HubAccess {
  /** `HOST:PORT` */
  readonly address: string;
  readonly identity: RequestIdentity;
}

/** Connections to members through the hub, whose address and certificates may change. */
export class HubDialer {
  readonly #options: { readonly userAgent: string; readonly source: string };
  #access: HubAccess | undefined;
  #client: (ClusterClient & PathUpgrades) | undefined;

  /** `source`: where the access is read from. */
  constructor(options: { readonly userAgent: string; readonly source: string }) {
    this.#options = options;
  }

  update(access: HubAccess | undefined): void {
    if (access?.address !== this.#access?.address) {
      void this.#client?.close();
      this.#client = access && this.#clientAt(access.address);
    }
    this.#access = access;
  }

  /** Returns how the member is reached. Without a hub, connections are rejected with the remedy. */
  dial(cluster: string, remedy: string): Dial {
    return async (signal) => {
      if (this.#client === undefined) throw new Error(`${this.#options.source} is missing: ${remedy}`);
      return relayDial(this.#client, cluster)(signal);
    };
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }

  #clientAt(address: string): ClusterClient & PathUpgrades {
    const { userAgent, source } = this.#options;
    return createClusterClient({
      cluster: "hub",
      userAgent,
      credentials: {
        server: `https://${address}`,
        source,
        insecureSkipTlsVerify: false,
        tlsServerName: RELAY_SERVER_NAME,
        identity: () => this.#access?.identity ?? {},
        refresh: () => {},
      },
    });
  }
}

/**
 * Returns how a member's API server is reached through the hub. `hub` presents the relay's certificate. The dial rejects with
 * `WayPending` while the hub expects the member's agent.
 */
export function relayDial(hub: PathUpgrades, cluster: string): Dial {
  return async (signal) => {
    const request = { ...upgradeTo(RELAY_PROTOCOL, DIAL_MS), signal };
    const answer = await hub.upgradePath(`${RELAY_PATH}${cluster}`, request);
    if (answer.socket instanceof Socket) return answer.socket;
    answer.socket?.destroy();
    if (answer.socket !== undefined) throw new Error("the hub's connection is no socket");
    const message = messageOf(answer.text);
    throw answer.headers["retry-after"] === undefined ? new Error(message) : new WayPending(message);
  };
}
