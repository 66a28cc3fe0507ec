import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { PathUpgrades } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { LASTING_SOCKET } from "../runtime/https-listener.ts";
import { joinSockets } from "../runtime/joined-sockets.ts";
import { listenOn } from "../runtime/listening.ts";
import type { Logger } from "../telemetry/logger.ts";
import { HOME_PATH, HOME_PROTOCOL, messageOf, upgradeTo } from "./messages.ts";

export interface HomeApiListenerOptions {
  readonly hub: PathUpgrades;
  readonly clock: Clock;
  readonly log: Logger;
}

// Connections of pods that are open, and of those the most of one address.
const MOST_PODS = 500;
const MOST_OF_ADDRESS = 200;
// Connections to the hub that are being opened: each costs it a TLS handshake.
const MOST_OPENING = 16;
const OPEN_MS = 10_000;
// Pods that fail do so again and again.
const LOG_EVERY_MS = 60_000;

/**
 * Takes connections of the member's pods, and passes each one on to the host's API server by a connection of its own to the hub. TLS
 * is end to end: the agent passes encrypted bytes.
 */
export class HomeApiListener {
  readonly #options: HomeApiListenerOptions;
  readonly #server: Server;
  /** Connections of pods by their address. */
  readonly #pods = new Map<Socket, string>();
  readonly #hubSockets = new Set<Duplex>();
  readonly #waiting: (() => void)[] = [];
  #opening = 0;
  #connection: AbortController | undefined;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: HomeApiListenerOptions) {
    this.#options = options;
    this.#server = createServer({ ...LASTING_SOCKET, pauseOnConnect: true }, (pod) => this.#onPod(pod));
  }

  /** Resolves to the port. Rejects when it is not available. */
  listen(host: string, port: number): Promise<number> {
    const onError = (err: Error): void => this.#options.log.error({ err }, "home API");
    return listenOn(this.#server, { host, port, onError });
  }

  /** Takes pods while the agent has a control connection. */
  open(): void {
    this.#connection ??= new AbortController();
  }

  /** Cuts all pods: the hub has lost its ends, perhaps without a sign of it here. */
  cut(): void {
    this.#connection?.abort();
    this.#connection = undefined;
    for (const socket of [...this.#pods.keys(), ...this.#hubSockets]) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    const closed = this.#server.listening ? once(this.#server, "close") : undefined;
    this.#server.close();
    await closed;
  }

  #onPod(pod: Socket): void {
    pod.on("error", () => {});
    const { remoteAddress: address = "" } = pod;
    const own = [...this.#pods.values()].filter((other) => other === address).length;
    if (this.#connection === undefined) pod.destroy();
    else if (this.#pods.size >= MOST_PODS || own >= MOST_OF_ADDRESS) {
      pod.destroy();
      this.#tell(`${own} connections of ${address}, ${this.#pods.size} in all: no more are taken`);
    } else {
      this.#pods.set(pod, address);
      pod.once("close", () => this.#pods.delete(pod));
      void this.#pass(pod, this.#connection.signal);
    }
  }

  async #pass(pod: Socket, signal: AbortSignal): Promise<void> {
    const { hub, clock } = this.#options;
    if (this.#opening >= MOST_OPENING) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#opening += 1;
    try {
      if (pod.destroyed) return;
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(OPEN_MS)]);
      const answer = await hub.upgradePath(HOME_PATH, { ...upgradeTo(HOME_PROTOCOL, OPEN_MS), signal: inTime });
      if (answer.socket === undefined) {
        pod.destroy();
        this.#tell(messageOf(answer.text));
      } else if (pod.destroyed || signal.aborted) answer.socket.destroy();
      else {
        const { socket } = answer;
        this.#hubSockets.add(socket);
        socket.once("close", () => this.#hubSockets.delete(socket));
        joinSockets(pod, socket, clock);
      }
    } catch (error) {
      pod.destroy();
      if (!signal.aborted) this.#tell(isKubeError(error) ? error.detail : String(error));
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#opening -= 1;
      else next();
    }
  }

  #tell(reason: string): void {
    const { clock, log } = this.#options;
    if (clock.now() - this.#loggedAt < LOG_EVERY_MS) return;
    this.#loggedAt = clock.now();
    log.warn({ reason }, "a pod did not reach the home API");
  }
}
