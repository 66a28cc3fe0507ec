import { MEMBER_RELAY_PORTS } from "../api/relay.ts";
import { onAbort } from "../kube/abort.ts";
import { ConnectionBackoff } from "../runtime/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ControlChannel } from "../tunnel/control-channel.ts";
import type { Connected } from "./connect.ts";
import type { RelayPod } from "./endpoints.ts";
import { FramedStream } from "./framed.ts";
import { type FromMember, fromMember, type ToMember } from "./messages.ts";
import type { Routes } from "./routes.ts";
import type { RelayServer } from "./server.ts";

export interface MemberRelayOptions {
  readonly connect: (pod: RelayPod, signal: AbortSignal) => Promise<Connected>;
  readonly routes: Pick<Routes, "ports">;
  readonly server: Pick<RelayServer, "take">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The proxy of a relay in a member. */
export interface MemberRelayPod extends RelayPod {
  readonly cluster: string;
}

type Channel = ControlChannel<ToMember, FromMember>;

const BACKOFF = { initialMs: 500, maxMs: 10_000, healthyMs: 10_000 };
// A member that is not trusted must not take the host's relay from others.
const MOST_OPEN = 1_000;

/** Stays connected to a relay in a member, and takes the connections of pods there: it opens one whenever that relay asks. */
export class MemberRelay {
  readonly #pod: MemberRelayPod;
  readonly #options: MemberRelayOptions;
  readonly #ending = new AbortController();
  #channel: Channel | undefined;
  /** The ports that the member's relay was told last. */
  #told = "";
  /** Connections that are open or being opened. */
  #open = 0;

  constructor(pod: MemberRelayPod, options: MemberRelayOptions) {
    this.#pod = pod;
    this.#options = options;
    void this.#run();
  }

  /** Takes no connection any more. Those that are open go on. */
  stop(): void {
    this.#ending.abort();
  }

  /** Tells the member's relay on which ports to listen: those of Services whose namespace has pods in the member. */
  tellPorts(): void {
    const ports = [...this.#options.routes.ports]
      .filter(([, { members }]) => members.has(this.#pod.cluster))
      .map(([port, { members: _, ...route }]) => ({ port, ...route }));
    const told = JSON.stringify(ports);
    if (told === this.#told) return;
    this.#told = told;
    this.#channel?.send({ type: "listen", ports });
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#ending;
    const { name: pod, cluster: member } = this.#pod;
    const backoff = new ConnectionBackoff({ ...BACKOFF, clock });
    let told = "";
    while (!signal.aborted) {
      const reason = await this.#connection(() => {
        backoff.working();
        told = "";
        log.info({ member, pod }, "a relay in a member is connected");
      });
      if (signal.aborted) return;
      if (reason !== told) log.info({ member, pod, reason }, "a relay in a member is not connected");
      told = reason;
      await clock.sleep(backoff.ended(), signal).catch(() => {});
    }
  }

  /** Keeps one control connection. Resolves to the reason of its end. */
  async #connection(onWorking: () => void): Promise<string> {
    const { signal } = this.#ending;
    const connected = await this.#connect(MEMBER_RELAY_PORTS.control);
    if (connected.stream === undefined) return connected.message;
    // A port-forward to a closed port opens, too.
    connected.stream.once("data", onWorking);
    const ended = Promise.withResolvers<string>();
    const channel: Channel = new ControlChannel(connected.stream, {
      receives: fromMember,
      onMessage: (message) => {
        if (message.type === "dial") void this.#dial(channel, message);
      },
      onClose: ended.resolve,
      clock: this.#options.clock,
    });
    this.#channel = channel;
    this.#told = "";
    this.tellPorts();
    const forget = onAbort(signal, () => channel.send({ type: "leave" }));
    const reason = await ended.promise;
    forget();
    this.#channel = undefined;
    return reason;
  }

  /** Never rejects. */
  async #dial(channel: Channel, { id, port, client }: Extract<FromMember, { type: "dial" }>): Promise<void> {
    const { routes, server, clock } = this.#options;
    const { cluster } = this.#pod;
    const refuse = (message: string): void => channel.send({ type: "refused", id, message });
    const route = routes.ports.get(port);
    // A member may ask for any port: its relay's word counts for nothing.
    if (route?.members.has(cluster) !== true) refuse("the Service is not relayed to this member");
    else if (this.#open >= MOST_OPEN) refuse(`${MOST_OPEN} connections of this relay are open already`);
    else {
      this.#open += 1;
      const connected = await this.#connect(MEMBER_RELAY_PORTS.streams);
      if (connected.stream === undefined) refuse(connected.message);
      else {
        connected.stream.write(id);
        await server.take(new FramedStream(connected.stream, clock), route, `${cluster} ${client}`);
      }
      this.#open -= 1;
    }
  }

  /** Never rejects. */
  #connect(port: number): Promise<Connected> {
    return this.#options
      .connect({ ...this.#pod, port }, this.#ending.signal)
      .catch((error: unknown): Connected => ({ reason: "Unreachable", message: String(error) }));
  }
}
