import { isIPv6, type Socket } from "node:net";

type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

/**
 * Connections without a verified client: clients that are connecting, and strangers. Beyond `most` the oldest one of
 * the address with the most of them is cut, so that no single address keeps all others out.
 */
export class Strangers {
  readonly #most: number;
  /** Connections by address and port, the oldest first. */
  readonly #byAddress = new Map<string, Map<number, Socket>>();
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(socket: Socket): void {
    const address = networkOf(socket.remoteAddress);
    const { remotePort: port = 0 } = socket;
    // An earlier connection of the port has ended, and its close event is still to come.
    this.#remove(address, port);
    if (this.#count >= this.#most) this.#cutOne();
    const sockets = this.#byAddress.get(address) ?? new Map<number, Socket>();
    this.#byAddress.set(address, sockets.set(port, socket));
    this.#count += 1;
    // A later connection may have taken its place.
    socket.once("close", () => {
      if (this.#byAddress.get(address)?.get(port) === socket) this.#remove(address, port);
    });
  }

  /** Notes that the peer has shown a certificate, or a session. */
  verified({ remoteAddress, remotePort: port = 0 }: Peer): void {
    this.#remove(networkOf(remoteAddress), port);
  }

  #remove(address: string, port: number): void {
    const sockets = this.#byAddress.get(address);
    if (sockets?.delete(port) !== true) return;
    this.#count -= 1;
    if (sockets.size === 0) this.#byAddress.delete(address);
  }

  #cutOne(): void {
    let [address, sockets] = ["", new Map<number, Socket>()];
    for (const entry of this.#byAddress) if (entry[1].size > sockets.size) [address, sockets] = entry;
    for (const [port, oldest] of sockets) {
      this.#remove(address, port);
      oldest.destroy();
      return;
    }
  }
}

const IPV6_GROUPS = 8;
// A provider gives a /64 to one customer.
const NETWORK_GROUPS = 4;

/** Returns an IPv4 address, or the first 64 bits of an IPv6 one. */
export function networkOf(remoteAddress = ""): string {
  const address = remoteAddress.replace(/^::ffff:(?=[\d.]+$)/, "");
  if (!isIPv6(address)) return address;
  const [head = [], tail = []] = address.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(Math.max(0, IPV6_GROUPS - head.length - tail.length)).fill("0");
  return [...head, ...zeros, ...tail].slice(0, NETWORK_GROUPS).join(":");
}
