import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { MEMBER_RELAY_PORTS } from "../api/relay.ts";
import { onAbort } from "../kube/abort.ts";
import type { Clock } from "../runtime/clock.ts";
import { LASTING_SOCKET } from "../runtime/https-listener.ts";
import { listenOn } from "../runtime/listening.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ControlChannel } from "../tunnel/control-channel.ts";
import type { Connected } from "./connect.ts";
import type { RelayPod } from "./endpoints.ts";
import { FramedStream } from "./framed.ts";
import { type FromMember, ID_LENGTH, type ServedPort, type ToMember, toMember } from "./messages.ts";
import type { Destination, Route } from "./routes.ts";

export interface HostRelaysOptions {
  /** Called when the ports to listen on may have changed. */
  readonly onPorts: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A relay of the host that is connected. */
interface HostRelay {
  readonly channel: ControlChannel<FromMember, ToMember>;
  ports: readonly ServedPort[];
  /** Settles each connection that the relay was asked for, by its id. */
  readonly dials: Map<string, (connected: Connected) => void>;
  readonly streams: Set<Socket>;
  hasLeft: boolean;
}

// Only a port-forward of this pod reaches it: no other pod can pose as the host's relay.
const LOOPBACK = "127.0.0.1";
const DIAL_MS = 20_000;

/** The relays of the host that have connected to this one, in a member: these lead each connection to a pod, and say on which ports to listen. */
export class HostRelays {
  readonly #options: HostRelaysOptions;
  readonly #relays = new Map<string, HostRelay>();
  readonly #servers: readonly Server[];
  #ports: ReadonlyMap<number, Route> = new Map();

  constructor(options: HostRelaysOptions) {
    this.#options = options;
    const accepting = { ...LASTING_SOCKET, allowHalfOpen: true };
    this.#servers = [
      createServer(accepting, (socket) => this.#onControl(socket)),
      createServer(accepting, (socket) => void this.#onStream(socket)),
    ];
  }

  get areConnected(): boolean {
    return this.#relays.size > 0;
  }

  get ports(): ReadonlyMap<number, Route> {
    return this.#ports;
  }

  /** Rejects when a port is not available. */
  async listen(ports: { readonly control: number; readonly streams: number } = MEMBER_RELAY_PORTS): Promise<void> {
    const onError = (err: Error): void => this.#options.log.error({ err }, "the host's relay cannot connect");
    for (const [index, port] of [ports.control, ports.streams].entries()) {
      const server = this.#servers[index];
      if (server !== undefined) await listenOn(server, { host: LOOPBACK, port, onError });
    }
  }

  close(): Promise<void> {
    for (const server of this.#servers) server.close();
    for (const relay of [...this.#relays.values()]) relay.channel.close("this relay ends");
    return Promise.resolve();
  }

  /** Any relay of the host leads to the Service. */
  destinationOf({ namespace, service, portName }: Route): Destination {
    const pods = [...this.#relays].flatMap(([uid, { ports }]): RelayPod[] =>
      ports
        .filter((each) => each.namespace === namespace && each.service === service && each.portName === portName)
        .map(({ port }) => ({ uid, namespace: "", name: "", address: "", port, cluster: undefined })),
    );
    return { pods, affinityMs: undefined };
  }

  /** Has a relay of the host connect to a pod. */
  async connect({ uid, port }: RelayPod, client: string, signal: AbortSignal): Promise<Connected> {
    const relay = this.#relays.get(uid);
    const id = randomBytes(ID_LENGTH / 2).toString("hex");
    const { promise, resolve } = Promise.withResolvers<Connected>();
    const fail = (message: string): void => resolve({ reason: "Unreachable", message });
    const timer = this.#options.clock.after(DIAL_MS, () => fail("the host's relay does not answer"));
    const forget = onAbort(signal, () => fail("the client has left"));
    relay?.dials.set(id, resolve);
    if (relay === undefined) fail("the host's relay has left");
    else relay.channel.send({ type: "dial", id, port, client });
    const connected = await promise;
    timer.cancel();
    forget();
    relay?.dials.delete(id);
    return connected;
  }

  #onControl(socket: Socket): void {
    const { clock, log } = this.#options;
    const uid = randomBytes(8).toString("hex");
    const dials: HostRelay["dials"] = new Map();
    const channel = new ControlChannel<FromMember, ToMember>(socket, {
      receives: toMember,
      onMessage: (message) => {
        if (message.type === "refused") dials.get(message.id)?.({ reason: "Unreachable", message: message.message });
        else if (message.type === "leave") {
          relay.hasLeft = true;
          channel.close("it is about to end");
        } else if (message.type === "listen") {
          relay.ports = message.ports;
          this.#read();
        }
      },
      onClose: (reason) => {
        log.info({ reason }, "a relay of the host has left");
        this.#relays.delete(uid);
        for (const settle of dials.values()) settle({ reason: "Unreachable", message: "the host's relay has left" });
        // The way to the host is cut, perhaps without a sign of it here.
        if (!relay.hasLeft) for (const stream of relay.streams) stream.destroy();
        this.#read();
      },
      clock,
    });
    const relay: HostRelay = { channel, ports: [], dials, streams: new Set(), hasLeft: false };
    this.#relays.set(uid, relay);
    // The other side learns by it that this one works: a port-forward to a closed port opens, too.
    channel.send({ type: "ping" });
    log.info("a relay of the host has connected");
  }

  async #onStream(socket: Socket): Promise<void> {
    const { clock } = this.#options;
    socket.on("error", () => {});
    const timer = clock.after(DIAL_MS, () => socket.destroy());
    try {
      const id = await readId(socket);
      const relay = [...this.#relays.values()].find(({ dials }) => dials.has(id));
      if (relay === undefined) socket.destroy();
      else {
        relay.streams.add(socket);
        socket.once("close", () => relay.streams.delete(socket));
        relay.dials.get(id)?.({ stream: new FramedStream(socket, clock) });
      }
    } catch {
      socket.destroy();
    } finally {
      timer.cancel();
    }
  }

  #read(): void {
    const ports = new Map<number, Route>();
    for (const { port, ...route } of [...this.#relays.values()].flatMap((relay) => relay.ports)) {
      ports.set(port, { ...route, members: new Set() });
    }
    this.#ports = ports;
    this.#options.onPorts();
  }
}

async function readId(socket: Socket): Promise<string> {
  for (;;) {
    const bytes: Buffer | null = socket.read(ID_LENGTH);
    if (bytes !== null) return bytes.toString("latin1");
    await once(socket, "readable");
  }
}
