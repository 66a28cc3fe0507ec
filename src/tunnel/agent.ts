import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ClusterClient, PathUpgrades } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { statusMessage } from "../kube/json.ts";
import { Backoff, ConnectionBackoff } from "../runtime/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import { join } from "../runtime/joined-sockets.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ControlChannel } from "./control-channel.ts";
import {
  type AgentMessage,
  CONTROL_PATH,
  CONTROL_PROTOCOL,
  type HubMessage,
  hubMessage,
  type MemberCredentials,
  STREAM_PATH,
  STREAM_PROTOCOL,
} from "./messages.ts";

/** The API server that an agent connects to, and no other address. */
export interface AgentTarget {
  readonly host: string;
  readonly port: number;
}

export interface AgentOptions {
  readonly hub: Pick<ClusterClient & PathUpgrades, "upgradePath">;
  readonly target: AgentTarget;
  /** Requests a token of the host's service account. */
  readonly credentials: (signal: AbortSignal) => Promise<MemberCredentials>;
  /** Receives the authorities (PEM) that the hub's certificate may come from, at each connection. */
  readonly onAuthorities: (authorities: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

const CONNECT_MS = 10_000;
// At once after a cut, since the hub's controller may just have been replaced; then slower, with jitter.
const BACKOFF = { initialMs: 1_000, maxMs: 10_000, healthyMs: 60_000 };
// The most connections that are being opened. The hub asks for no more than its requests need.
const MOST_OPENING = 1_000;
// The longest reason that the hub is told, or that is taken from an answer that is no Status.
const LONGEST_MESSAGE = 1_024;

/** Keeps a connection to the hub, and opens connections to the own API server when the hub asks. */
export class Agent {
  readonly #options: AgentOptions;
  /** Both ends of each stream. */
  readonly #streams = new Set<Duplex>();
  /** Signal of the connection whose request for credentials is being answered. */
  #requesting: AbortSignal | undefined;
  #opening = 0;
  #connected = false;

  constructor(options: AgentOptions) {
    this.#options = options;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** Runs until the signal fires. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const backoff = new ConnectionBackoff({ ...BACKOFF, clock });
    while (!signal.aborted) {
      const reason = await this.#connection(signal, () => backoff.working());
      if (signal.aborted) return;
      const delayMs = backoff.ended() || BACKOFF.initialMs * Math.random();
      log.warn({ reason, delayMs: Math.round(delayMs) }, "not connected to the hub");
      await clock.sleep(delayMs, signal).catch(() => {});
    }
  }

  /** Keeps one control connection. Resolves to the reason of its end. */
  async #connection(signal: AbortSignal, onWorking: () => void): Promise<string> {
    const { hub, clock, log, onAuthorities } = this.#options;
    const ending = new AbortController();
    const ended = AbortSignal.any([signal, ending.signal]);
    try {
      const answer = await hub.upgradePath(CONTROL_PATH, { ...upgradeTo(CONTROL_PROTOCOL), signal });
      if (answer.socket === undefined) return `the hub refuses this agent: ${messageOf(answer.text)}`;
      const { socket } = answer;
      let reason = "stopped";
      const channel: ControlChannel<AgentMessage, HubMessage> = new ControlChannel(socket, {
        receives: hubMessage,
        onMessage: (message) => {
          if (message.type === "welcome") {
            onWorking();
            this.#connected = true;
            onAuthorities(message.authorities);
          } else if (message.type === "dial") void this.#dialBack(message.id, channel, ended);
          else if (message.type === "credentials") void this.#sendCredentials(channel, ended);
        },
        onClose: (why) => {
          reason = why;
          ending.abort();
        },
        clock,
      });
      log.info("connected to the hub");
      const stop = (): void => channel.close("the agent stops");
      signal.addEventListener("abort", stop, { once: true });
      if (!ending.signal.aborted) await once(ending.signal, "abort");
      signal.removeEventListener("abort", stop);
      return reason;
    } catch (error) {
      return isKubeError(error) ? error.detail : String(error);
    } finally {
      this.#connected = false;
      // The hub has lost its ends, perhaps without a sign of it here.
      for (const stream of this.#streams) stream.destroy();
    }
  }

  async #dialBack(id: string, channel: ControlChannel<AgentMessage, HubMessage>, signal: AbortSignal): Promise<void> {
    const { hub, clock } = this.#options;
    const refuse = (message: string): void =>
      channel.send({ type: "refused", id, message: message.slice(0, LONGEST_MESSAGE) });
    if (this.#opening >= MOST_OPENING) {
      refuse(`${MOST_OPENING} connections are being opened already`);
      return;
    }
    this.#opening += 1;
    const server = this.#connect();
    try {
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
      // The own API server first, so that the hub is told when that cannot be reached.
      await once(server, "connect", { signal: inTime });
      const answer = await hub.upgradePath(`${STREAM_PATH}${id}`, { ...upgradeTo(STREAM_PROTOCOL), signal: inTime });
      if (answer.socket === undefined) {
        server.destroy();
        // The hub has given up waiting for it, or does not accept this agent's certificate any more.
        refuse(messageOf(answer.text));
      }
      // The API server, or the end of the control connection, may have cut it meanwhile.
      else if (server.destroyed) answer.socket.destroy();
      else {
        this.#track(answer.socket);
        join(answer.socket, server, clock);
      }
    } catch (error) {
      server.destroy();
      refuse(isKubeError(error) ? error.detail : error instanceof Error ? error.message : String(error));
    } finally {
      this.#opening -= 1;
    }
  }

  #connect(): Socket {
    const server = connect({ ...this.#options.target, noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 });
    server.on("error", () => {});
    this.#track(server);
    return server;
  }

  #track(socket: Duplex): void {
    this.#streams.add(socket);
    socket.once("close", () => this.#streams.delete(socket));
  }

  async #sendCredentials(channel: ControlChannel<AgentMessage, HubMessage>, signal: AbortSignal): Promise<void> {
    const { credentials, clock, log } = this.#options;
    if (this.#requesting === signal) return;
    this.#requesting = signal;
    const backoff = new Backoff(BACKOFF);
    while (!signal.aborted) {
      try {
        channel.send({ type: "credentials", credentials: await credentials(signal) });
        if (this.#requesting === signal) this.#requesting = undefined;
        return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error }, "no token of the host's service account");
        await clock.sleep(backoff.next(), signal).catch(() => {});
      }
    }
  }
}

function upgradeTo(protocol: string): {
  readonly method: "GET";
  readonly query: URLSearchParams;
  readonly protocol: string;
  readonly headers: Readonly<Record<string, string[]>>;
  readonly timeoutMs: number;
} {
  return { method: "GET", query: new URLSearchParams(), protocol, headers: {}, timeoutMs: CONNECT_MS };
}

/** Returns the message of a Status, or the text itself. */
function messageOf(text: string): string {
  return statusMessage(text) ?? text.slice(0, LONGEST_MESSAGE);
}
