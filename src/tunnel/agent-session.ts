import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { ControlChannel } from "./control-channel.ts";
import { type AgentMessage, agentMessage, type HubMessage, type MemberCredentials } from "./messages.ts";

/** An agent as its client certificate names it. */
export interface AgentIdentity {
  readonly cluster: string;
  /** uid of the Cluster at the time of its join: a Cluster of the same name is another. */
  readonly uid: string;
}

export interface AgentSessionOptions {
  readonly agent: AgentIdentity;
  readonly onCredentials: (credentials: MemberCredentials) => void;
  readonly onEnd: (reason: string) => void;
  readonly clock: Clock;
}

interface Dialled {
  readonly resolve: (socket: Socket) => void;
  readonly reject: (error: Error) => void;
}

// An agent that does not dial back must not collect requests without end.
const MOST_DIALLED = 1_000;

/** The hub's end of an agent's control connection, with the streams that the agent dialled back. */
export class AgentSession {
  readonly agent: AgentIdentity;
  readonly #channel: ControlChannel<HubMessage, AgentMessage>;
  readonly #dialled = new Map<string, Dialled>();
  readonly #streams = new Set<Socket>();
  #bytes = { received: 0, sent: 0 };
  /** Requests for credentials that the agent has not answered. */
  #credentialsAsked = 0;

  constructor(socket: Duplex, { agent, onCredentials, onEnd, clock }: AgentSessionOptions) {
    this.agent = agent;
    const { cluster } = agent;
    this.#channel = new ControlChannel<HubMessage, AgentMessage>(socket, {
      receives: agentMessage,
      onMessage: (message) => {
        // Each costs a write of the host: an agent answers as often as it was asked.
        if (message.type === "credentials" && this.#credentialsAsked > 0) {
          this.#credentialsAsked -= 1;
          onCredentials(message.credentials);
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
        for (const stream of this.#streams) stream.destroy();
        onEnd(reason);
      },
      clock,
    });
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** Bytes of all streams so far. */
  get bytes(): { readonly received: number; readonly sent: number } {
    const total = { ...this.#bytes };
    for (const { bytesRead, bytesWritten } of this.#streams) {
      total.received += bytesRead;
      total.sent += bytesWritten;
    }
    return total;
  }

  welcome(authorities: string): void {
    this.#channel.send({ type: "welcome", authorities });
  }

  askForCredentials(): void {
    this.#credentialsAsked += 1;
    this.#channel.send({ type: "credentials" });
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
        signal.removeEventListener("abort", onAbort);
        act();
      };
      const onAbort = (): void => {
        settle(() => reject(late()));
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#dialled.set(id, {
        resolve: (socket) => settle(() => resolve(socket)),
        reject: (error) => settle(() => reject(error)),
      });
      this.#channel.send({ type: "dial", id });
    });
  }

  /** Reports whether a connection of this id is still to come. */
  awaits(id: string): boolean {
    return this.#dialled.has(id);
  }

  /** Takes a connection that the agent dialled back, if it is awaited. */
  accept(id: string, socket: Socket): void {
    const dialled = this.#dialled.get(id);
    if (dialled === undefined) return;
    this.#streams.add(socket);
    socket.once("close", () => {
      this.#streams.delete(socket);
      this.#bytes.received += socket.bytesRead;
      this.#bytes.sent += socket.bytesWritten;
    });
    dialled.resolve(socket);
  }

  close(reason: string): void {
    this.#channel.close(reason);
  }
}
