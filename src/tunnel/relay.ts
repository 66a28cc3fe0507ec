import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Dial, PathUpgrades } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { joinSockets } from "../runtime/joined-sockets.ts";
import { refuse, statusAnswer, switchProtocols } from "../runtime/upgrade-answers.ts";
import { messageOf, upgradeTo } from "./messages.ts";

/** Connections of `legation access` to members with agents, through the hub. */

export const RELAY_PROTOCOL = "legation-relay";
/** Path of the hub's API, before the Cluster's name. */
export const RELAY_PATH = "/relay/v1/clusters/";
/** Common name of the client certificate of `legation access`. No Cluster can have it, so no agent. */
export const RELAY_NAME = "legation:access";

const DIAL_MS = 10_000;

/** Connects `legation access` to the API server of a member. */
export async function serveRelay(
  socket: Duplex,
  options: {
    /** Why users do not reach the member by this way. */
    readonly refusal: string | undefined;
    readonly dial: Dial;
    readonly clock: Clock;
  },
): Promise<void> {
  const { refusal, dial, clock } = options;
  const fail = (reason: "Forbidden" | "ServiceUnavailable", message: string): void =>
    refuse(socket, statusAnswer(reason, message), clock);
  if (refusal !== undefined) {
    fail("Forbidden", refusal);
    return;
  }
  try {
    const server = await dial(AbortSignal.timeout(DIAL_MS));
    if (socket.destroyed) {
      server.destroy();
      return;
    }
    switchProtocols(socket, { connection: "Upgrade", upgrade: RELAY_PROTOCOL });
    joinSockets(socket, server, clock);
  } catch (error) {
    fail("ServiceUnavailable", error instanceof Error ? error.message : String(error));
  }
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
