import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { onAbort } from "../kube/abort.ts";
import type { Clock } from "../runtime/clock.ts";
import { ControlChannel } from "./control-channel.ts";
import { DialPace } from "./dial-pace.ts";
import {
  type AgentFacts,
  type AgentMessage,
  agentMessage,
  type HubMessage,
  type MemberCredentials,
  type TokenAccount,
} from "./messages.ts";

/** An agent as its client certificate names it. */
export interface AgentIdentity {
  readonly cluster: string;
  /** uid of the Cluster at the time of its join: a Cluster of the same name is another. */
  readonly uid: string;
  /** The join that gave the agent its token. Undefined in certificates that name none. */
  readonly join?: string | undefined;
}

export interface AgentSessionOptions {
  readonly agent: AgentIdentity;
  /** When its certificate expires; epoch ms. */
  readonly certificateExpires?: number | undefined;
  readonly onCredentials: (account: TokenAccount, credentials: MemberCredentials) => void;
  readonly onFacts: () => void;
  readonly onEnd: (reason: string) => void;
  readonly clock: Clock;
}

/** Connections of one kind, with the bytes of those that have ended, too. */
class Streams {
  readonly #open = new Set<Socket>();
  readonly #ended = { received: 0, sent: 0 };

  add(socket: Socket): void {
    this.#open.add(socket);
    socket.once("close", () => {
      this.#open.delete(socket);
      this.#ended.received += socket.bytesRead;
      this.#ended.sent += socket.bytesWritten;
    });
  }

  get count(): number {
    return this.#open.size;
  }

  get bytes(): { readonly received: number; readonly sent: number } {
    const total = { ...this.#ended };
    for (const { bytesRead, bytesWritten } of this.#open) {
      total.received += bytesRead;
      total.sent += bytesWritten;
    }
    return total;
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

interface Dialled {
  readonly resolve: (socket: Socket) => void;
  readonly reject: (error: Error) => void;
}

// Each may change what the host writes: an agent tells its version, and the address that pods use.
const MOST_FACTS = 10;
// An agent that does not dial back must not collect requests without end.
const MOST_DIALLED = 1_000;

/** The hub's end of an agent's control connection, with the streams that the agent dialled back. */
export class AgentSession {
  readonly agent: AgentIdentity;
  readonly #channel: ControlChannel<HubMessage, AgentMessage>;
  readonly #dialled = new Map<string, Dialled>();
  readonly #pace: DialPace;
  /** Connections to the member's API server. */
  readonly streams: Streams = new Streams();
  /** Connections of the member's pods to the home API. */
  readonly homeStreams: Streams = new Streams();
  /** Epoch ms. */
  readonly since: number;
  /** When the newest certificate that it has expires; epoch ms. */
  certificateExpires: number | undefined;
  #facts: AgentFacts | undefined;
  #factsTold = 0;
  /** Requests for credentials that the agent has not answered. */
  readonly #credentialsAsked: Record<TokenAccount, number> = { host: 0, access: 0 };

  constructor(socket: Duplex, options: AgentSessionOptions) {
    const { agent, certificateExpires, onCredentials, onFacts, onEnd, clock } = options;
    this.agent = agent;
    this.certificateExpires = certificateExpires;
    this.since = clock.wall();
    this.#pace = new DialPace(clock);
    const { cluster } = agent;
    this.#channel = new ControlChannel<HubMessage, AgentMessage>(socket, {
      receives: agentMessage,
      onMessage: (message) => {
        // Each costs a write of the host: an agent answers as often as it was asked.
        if (message.type === "credentials" && this.#credentialsAsked[message.account] > 0) {
          this.#credentialsAsked[message.account] -= 1;
          onCredentials(message.account, message.credentials);
        }
        if (message.type === "facts" && this.#factsTold < MOST_FACTS) {
          this.#factsTold += 1;
          const { version, homeAddress } = message;
          this.#facts = { version, homeAddress };
          onFacts();
        }
        if (message.type === "refused") {
          this.#dialled
            .get(message.id)
            ?.reject(new Error(`the agent of ${cluster} cannot connect: ${message.message}`));
        }
      },
      onClose: (reason) => {
        for (const { reject } of this.#dialled.values())
          reject(new Error(`the agent of ${cluster} is gone: ${reason}`));
        this.streams.destroy();
        this.homeStreams.destroy();
        onEnd(reason);
      },
      clock,
    });
  }

  /** Undefined before the agent has told. */
  get facts(): AgentFacts | undefined {
    return this.#facts;
  }

  welcome(authorities: string): void {
    this.#channel.send({ type: "welcome", authorities });
  }

  askForCredentials(account: TokenAccount): void {
    this.#credentialsAsked[account] += 1;
    this.#channel.send({ type: "credentials", account });
  }

  /** Asks the agent for a connection to its API server. Rejects when the signal fires. */
  dial(signal: AbortSignal): Promise<Socket> {
    if (this.#dialled.size >= MOST_DIALLED) {
      return Promise.reject(
        new Error(`the agent of ${this.agent.cluster} leaves ${MOST_DIALLED} connections undialled`),
      );
    }
    const late = (): Error => new Error(`the agent of ${this.agent.cluster} did not dial back in time`);
    if (signal.aborted) return Promise.reject(late());
    const id = randomBytes(16).toString("hex");
    return new Promise<Socket>((resolve, reject) => {
      const settle = (act: () => void): void => {
        this.#dialled.delete(id);
        forget();
        act();
      };
      const forget = onAbort(signal, () => settle(() => reject(late())));
      this.#dialled.set(id, {
        resolve: (socket) => settle(() => resolve(socket)),
        reject: (error) => settle(() => reject(error)),
      });
      this.#pace.take(
        () => this.#channel.send({ type: "dial", id }),
        () => this.awaits(id),
      );
    });
  }

  awaits(id: string): boolean {
    return this.#dialled.has(id);
  }

  /** Takes a connection that the agent dialled back, if it is awaited. */
  accept(id: string, socket: Socket): void {
    const dialled = this.#dialled.get(id);
    if (dialled === undefined) return;
    this.streams.add(socket);
    dialled.resolve(socket);
  }

  close(reason: string): void {
    this.#channel.close(reason);
  }
}
