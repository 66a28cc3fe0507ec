import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ClusterClient, PathUpgrades } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { Backoff, type BackoffLimits, ConnectionBackoff } from "../runtime/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import { joinSockets } from "../runtime/joined-sockets.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ControlChannel } from "./control-channel.ts";
import { DialPace } from "./dial-pace.ts";
import { DIAL_MS, type DialTarget, dialTcp } from "./dialled.ts";
import type { HomeApiListener } from "./home-api-listener.ts";
import {
  type AgentMessage,
  CONTROL_PATH,
  CONTROL_PROTOCOL,
  type HubMessage,
  hubMessage,
  LONGEST_MESSAGE,
  type MemberCredentials,
  messageOf,
  STREAM_PATH,
  STREAM_PROTOCOL,
  type TokenAccount,
  upgradeTo,
} from "./messages.ts";

/** How an agent leads pods to the home API. */
export interface AgentHomeApi {
  readonly listener: Pick<HomeApiListener, "open" | "cut">;
  /** Returns the IP address at which pods reach the listener. */
  readonly address: (signal: AbortSignal) => Promise<string>;
}

export interface AgentOptions {
  readonly hub: Pick<ClusterClient & PathUpgrades, "upgradePath">;
  readonly target: DialTarget;
  readonly version: string;
  /** Leads pods of the member to the home API. */
  readonly home?: AgentHomeApi | undefined;
  /** Requests a token of an account. Resolves to undefined if the agent has no such account. */
  readonly credentials: (account: TokenAccount, signal: AbortSignal) => Promise<MemberCredentials | undefined>;
  /** Receives the authorities (PEM) that the hub's certificate may come from, at each connection. */
  readonly onAuthorities: (authorities: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

// At once after a cut, since the hub's controller may just have been replaced; then slower, with jitter.
const BACKOFF = { initialMs: 1_000, maxMs: 10_000, healthyMs: 10_000 };
/** Delays after refusals by the hub: its Cluster may have left for good, and a new join starts a new agent. */
export const REFUSED_BACKOFF: BackoffLimits = { initialMs: 1_000, maxMs: 5 * 60_000 };
// The most connections that are being opened. The hub asks for no more than its requests need.
const MOST_OPENING = 1_000;

/** How a control connection ended. */
interface Ended {
  readonly reason: string;
  /** The hub does not take this agent, and says why. */
  readonly isRefused?: boolean;
}

const FORBIDDEN = 403;
/** Log message of an agent that the hub does not take. */
export const REFUSED: string =
  "the hub refuses this agent; where the member has left its host for good, delete the agent as docs/agents.md#leave says";

/** Keeps a connection to the hub, and opens connections to the own API server when the hub asks. */
export class Agent {
  readonly #options: AgentOptions;
  /** Both ends of each stream. */
  readonly #streams = new Set<Duplex>();
  /** Signal of the connection whose request for credentials is being answered, by account. */
  readonly #requesting = new Map<TokenAccount, AbortSignal>();
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
    const refusals = new Backoff(REFUSED_BACKOFF);
    while (!signal.aborted) {
      const { reason, isRefused = false } = await this.#connection(signal, () => {
        backoff.working();
        refusals.reset();
      });
      if (signal.aborted) return;
      const delayMs = isRefused ? refusals.next() : backoff.ended() || BACKOFF.initialMs * Math.random();
      const told = { reason, delayMs: Math.round(delayMs) };
      if (isRefused) log.error(told, REFUSED);
      else log.warn(told, "not connected to the hub");
      await clock.sleep(delayMs, signal).catch(() => {});
    }
  }

  /** Keeps one control connection. Resolves to the reason of its end. */
  async #connection(signal: AbortSignal, onWorking: () => void): Promise<Ended> {
    const { hub, clock, log, home, version, onAuthorities } = this.#options;
    const ending = new AbortController();
    const ended = AbortSignal.any([signal, ending.signal]);
    try {
      const answer = await hub.upgradePath(CONTROL_PATH, { ...upgradeTo(CONTROL_PROTOCOL, DIAL_MS), signal });
      if (answer.socket === undefined) {
        const reason = `the hub refuses this agent: ${messageOf(answer.text)}`;
        return { reason, isRefused: answer.status === FORBIDDEN };
      }
      const { socket } = answer;
      let reason = "stopped";
      const pace = new DialPace(clock);
      const channel: ControlChannel<AgentMessage, HubMessage> = new ControlChannel(socket, {
        receives: hubMessage,
        onMessage: (message) => {
          if (message.type === "welcome") {
            onWorking();
            if (!this.#connected) void this.#tellHomeAddress(channel, ended);
            this.#connected = true;
            home?.listener.open();
            onAuthorities(message.authorities);
          } else if (message.type === "dial") {
            pace.take(
              () => void this.#dialBack(message.id, channel, ended),
              () => !ended.aborted,
            );
          } else if (message.type === "credentials") void this.#sendCredentials(message.account, channel, ended);
        },
        onClose: (why) => {
          reason = why;
          ending.abort();
        },
        clock,
      });
      log.info("connected to the hub");
      channel.send({ type: "facts", version });
      const stop = (): void => channel.close("the agent stops");
      signal.addEventListener("abort", stop, { once: true });
      if (!ending.signal.aborted) await once(ending.signal, "abort");
      signal.removeEventListener("abort", stop);
      return { reason };
    } catch (error) {
      return { reason: isKubeError(error) ? error.detail : String(error) };
    } finally {
      this.#connected = false;
      // The hub has lost its ends, perhaps without a sign of it here.
      for (const stream of this.#streams) stream.destroy();
      home?.listener.cut();
    }
  }

  /** Tells the hub where pods reach the home API, once that is known. */
  async #tellHomeAddress(channel: ControlChannel<AgentMessage, HubMessage>, signal: AbortSignal): Promise<void> {
    const { home, version } = this.#options;
    if (home === undefined) return;
    await this.#repeat(signal, "the address at which pods reach the home API is not known", async () => {
      channel.send({ type: "facts", version, homeAddress: await home.address(signal) });
    });
  }

  /** Repeats `act` until it succeeds, or the signal fires. */
  async #repeat(signal: AbortSignal, failure: string, act: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#options;
    const backoff = new Backoff(BACKOFF);
    while (!signal.aborted) {
      try {
        await act();
        return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error }, failure);
        await clock.sleep(backoff.next(), signal).catch(() => {});
      }
    }
  }

  async #dialBack(id: string, channel: ControlChannel<AgentMessage, HubMessage>, signal: AbortSignal): Promise<void> {
    const { hub, target, clock } = this.#options;
    const refuse = (message: string): void =>
      channel.send({ type: "refused", id, message: message.slice(0, LONGEST_MESSAGE) });
    if (this.#opening >= MOST_OPENING) {
      refuse(`${MOST_OPENING} connections are being opened already`);
      return;
    }
    this.#opening += 1;
    let server: Socket | undefined;
    try {
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(DIAL_MS)]);
      // The own API server first, so that the hub is told when that cannot be reached.
      server = await dialTcp(target, inTime);
      this.#track(server);
      const answer = await hub.upgradePath(`${STREAM_PATH}${id}`, {
        ...upgradeTo(STREAM_PROTOCOL, DIAL_MS),
        signal: inTime,
      });
      if (answer.socket === undefined) {
        server.destroy();
        // The hub has given up waiting for it, or does not accept this agent's certificate any more.
        refuse(messageOf(answer.text));
      }
      // The API server, or the end of the control connection, may have cut it meanwhile.
      else if (server.destroyed) answer.socket.destroy();
      else {
        this.#track(answer.socket);
        joinSockets(answer.socket, server, clock);
      }
    } catch (error) {
      server?.destroy();
      refuse(isKubeError(error) ? error.detail : error instanceof Error ? error.message : String(error));
    } finally {
      this.#opening -= 1;
    }
  }

  #track(socket: Duplex): void {
    this.#streams.add(socket);
    socket.once("close", () => this.#streams.delete(socket));
  }

  async #sendCredentials(
    account: TokenAccount,
    channel: ControlChannel<AgentMessage, HubMessage>,
    signal: AbortSignal,
  ): Promise<void> {
    const { credentials } = this.#options;
    if (this.#requesting.get(account) === signal) return;
    this.#requesting.set(account, signal);
    await this.#repeat(signal, `no token of the host's service account (${account})`, async () => {
      const requested = await credentials(account, signal);
      if (requested !== undefined) channel.send({ type: "credentials", account, credentials: requested });
      if (this.#requesting.get(account) === signal) this.#requesting.delete(account);
    });
  }
}
