import type { Socket } from "node:net";
import { onAbort } from "../kube/abort.ts";
import { WayPending } from "../kube/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { AgentTraffic } from "../telemetry/agents.ts";
import type { AgentSession } from "./agent-session.ts";
import type { AgentFacts } from "./messages.ts";

/** A connected agent: what it told of itself, and since when it is connected (epoch ms). */
export interface ConnectedAgent extends Partial<AgentFacts> {
  readonly since: number;
  /** When its newest certificate expires; epoch ms. */
  readonly certificateExpires: number | undefined;
}

type Bytes = Pick<AgentTraffic, "receivedBytes" | "sentBytes" | "homeReceivedBytes" | "homeSentBytes">;

// An agent is back within this time after its hub: 10 s between two attempts, or the rest of a silence of 30 s since the earlier
// leader held the lease for 15 s of it.
const RETURN_MS = 20_000;
/** Longest wait for an agent; ms. A read tries three times within its deadline of 5 s, a probe's, and then tells why there is none. */
export const ARRIVAL_MS = 1_400;
// An agent that is replaced has two for a moment.
const MOST_SESSIONS = 4;
/** Most control connections and certificates of a Cluster's agents in a minute: working ones back off. */
export const MOST_TURNS = 60;
const TURNS_MS = 60_000;

/** The agents of one Cluster: usually one, and two while one is replaced or lost its node. */
export class ClusterAgents {
  readonly #cluster: string;
  readonly #clock: Clock;
  /** The one to ask first is last. */
  readonly #sessions: AgentSession[] = [];
  readonly #awaiting = new Set<() => void>();
  /** Clock times of the latest turns. */
  readonly #turns: number[] = [];
  #connections = 0;
  /** Bytes of sessions that have ended. */
  #ended: Bytes = { receivedBytes: 0, sentBytes: 0, homeReceivedBytes: 0, homeSentBytes: 0 };
  /** Epoch ms when the hub opened or the last agent left. */
  #aloneSince: number;
  /** The departure of the last agent, at an RFC 3339 time. */
  #left: { readonly at: string; readonly reason: string } | undefined;

  constructor(cluster: string, openedAt: number, clock: Clock) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#aloneSince = openedAt;
  }

  get sessions(): readonly AgentSession[] {
    return this.#sessions;
  }

  get state(): Omit<AgentTraffic, "name"> {
    const sessions = this.#sessions;
    return {
      connected: sessions.length > 0,
      connections: this.#connections,
      streams: sessions.reduce((sum, { streams }) => sum + streams.count, 0),
      homeStreams: sessions.reduce((sum, { homeStreams }) => sum + homeStreams.count, 0),
      certificateExpires: this.agent?.certificateExpires,
      ...sessions.map(bytesOf).reduce(addBytes, this.#ended),
    };
  }

  /** The agent that is asked first. Undefined while none is connected. */
  get agent(): ConnectedAgent | undefined {
    const session = this.#sessions.at(-1);
    if (session === undefined) return undefined;
    const { since, certificateExpires } = session;
    return { ...session.facts, since, certificateExpires };
  }

  noteCertificate(expires: number | undefined): void {
    for (const session of this.#sessions) session.certificateExpires = expires;
  }

  /** Counts a control connection or a certificate, if there were not too many within the last minute. */
  takeTurn(): boolean {
    const now = this.#clock.now();
    if (this.#turns.length >= MOST_TURNS) {
      if (now - (this.#turns[0] ?? now) < TURNS_MS) return false;
      this.#turns.shift();
    }
    this.#turns.push(now);
    return true;
  }

  add(session: AgentSession): void {
    this.#sessions.push(session);
    this.#connections += 1;
    if (this.#sessions.length > MOST_SESSIONS) {
      this.#sessions[0]?.close("the agent has connected several times since");
    }
    for (const arrived of this.#awaiting) arrived();
  }

  remove(session: AgentSession, reason: string): void {
    this.#sessions.splice(this.#sessions.indexOf(session), 1);
    this.#ended = addBytes(this.#ended, bytesOf(session));
    this.#aloneSince = this.#clock.now();
    this.#left = { at: new Date(this.#clock.wall()).toISOString(), reason };
  }

  /**
   * Opens a connection to the Cluster's API server. Waits a little for an agent that may be about to come back, and asks another
   * one when one cannot connect. Rejects with the reason, also when the signal fires.
   */
  async dial(signal: AbortSignal): Promise<Socket> {
    if (this.#sessions.length === 0) await this.#arrival(signal);
    let failure: unknown;
    for (const session of this.#sessions.toReversed()) {
      try {
        return await session.dial(signal);
      } catch (error) {
        failure ??= error;
        this.#askLast(session);
        if (signal.aborted) break;
      }
    }
    throw failure ?? this.#absence();
  }

  /** An agent whose node lost its API server may connect later than the one that replaces it. */
  #askLast(session: AgentSession): void {
    const at = this.#sessions.indexOf(session);
    if (at === -1) return;
    this.#sessions.splice(at, 1);
    this.#sessions.unshift(session);
  }

  /** Resolves when an agent connects, and when it is not worth waiting for one any longer. */
  #arrival(signal: AbortSignal): Promise<void> {
    const leftMs = Math.min(ARRIVAL_MS, this.#returnLeftMs);
    if (leftMs <= 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        this.#awaiting.delete(end);
        forget();
        resolve();
      };
      const timer = this.#clock.after(leftMs, end);
      this.#awaiting.add(end);
      const forget = onAbort(signal, end);
    });
  }

  /** Returns how long an agent may still take to come back; ms. Zero or less: none is expected. */
  get #returnLeftMs(): number {
    return this.#aloneSince + RETURN_MS - this.#clock.now();
  }

  #absence(): Error {
    if (this.#left === undefined) {
      const message = `no agent of ${this.#cluster} has connected to this controller`;
      return this.#returnLeftMs > 0 ? new WayPending(message) : new Error(message);
    }
    // Fixed, since each change of the text is a write of the Cluster and its Node.
    return new Error(`the agent of ${this.#cluster} left at ${this.#left.at}: ${this.#left.reason}`);
  }
}

function bytesOf({ streams, homeStreams }: AgentSession): Bytes {
  return {
    receivedBytes: streams.bytes.received,
    sentBytes: streams.bytes.sent,
    homeReceivedBytes: homeStreams.bytes.received,
    homeSentBytes: homeStreams.bytes.sent,
  };
}

function addBytes(one: Bytes, other: Bytes): Bytes {
  return {
    receivedBytes: one.receivedBytes + other.receivedBytes,
    sentBytes: one.sentBytes + other.sentBytes,
    homeReceivedBytes: one.homeReceivedBytes + other.homeReceivedBytes,
    homeSentBytes: one.homeSentBytes + other.homeSentBytes,
  };
}
