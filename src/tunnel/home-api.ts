import { connect } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { KEEP_ALIVE_DELAY_MS } from "../runtime/https-listener.ts";
import { joinSockets } from "../runtime/joined-sockets.ts";
import { refuse, statusAnswer, switchProtocols } from "../runtime/upgrade-answers.ts";
import { HOME_PROTOCOL } from "./messages.ts";

/** The host's API server, as the hub connects to it, and no other address. */
export interface HomeApiTarget {
  readonly host: string;
  readonly port: number;
}

/** The most open connections of pods to the home API: of one member, and in all. */
export const MOST_HOME_STREAMS = { ofMember: 500, inAll: 2_000 } as const;

const CONNECT_MS = 10_000;

/** Passes an agent's connection on to the host's API server, once that is connected. TLS is end to end between pod and server. */
export function connectToHomeApi(agent: Duplex, { host, port }: HomeApiTarget, clock: Clock): void {
  const server = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS });
  const fail = (reason: string): void => {
    server.destroy();
    if (agent.destroyed) return;
    refuse(agent, statusAnswer("ServiceUnavailable", `the host's API server cannot be reached: ${reason}`), clock);
  };
  const onError = (error: Error): void => {
    timer.cancel();
    fail(error.message);
  };
  const timer = clock.after(CONNECT_MS, () => fail("it does not answer"));
  const onGone = (): void => {
    timer.cancel();
    server.destroy();
  };
  server.once("error", onError);
  agent.once("close", onGone);
  server.once("connect", () => {
    timer.cancel();
    server.off("error", onError);
    agent.off("close", onGone);
    switchProtocols(agent, { connection: "Upgrade", upgrade: HOME_PROTOCOL });
    joinSockets(agent, server, clock);
  });
}
