import { createServer, type IncomingMessage } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TlsMaterial } from "../../support/fault-server/fault-server.ts";

/** The server's handling of a connection that asks for another protocol. */
export type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** A server that is asked for upgrades and leaves the answers to the test. */
export class UpgradeServer implements AsyncDisposable {
  /** Every request for an upgrade, in order of arrival. */
  readonly requests: IncomingMessage[] = [];
  readonly sockets: Set<Socket> = new Set();
  /** Connections since the start. */
  connections = 0;
  onUpgrade: OnUpgrade = (_request, socket) => accept(socket);
  readonly #server;
  readonly #scheme: "http" | "https";

  private constructor(tls?: TlsMaterial) {
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server = tls === undefined ? createServer() : createTlsServer({ ...tls, requestCert: tls.ca !== undefined });
    this.#server.on("connection", (socket: Socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.sockets.delete(socket));
    });
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.requests.push(request);
      socket.on("error", () => {});
      this.onUpgrade(request, socket, head);
      // Node leaves it half open, and does not see the end of what nobody reads.
      socket.resume();
      socket.on("end", () => socket.end());
    });
  }

  static async start(tls?: TlsMaterial): Promise<UpgradeServer> {
    const server = new UpgradeServer(tls);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    const address = this.#server.address();
    return `${this.#scheme}://127.0.0.1:${typeof address === "object" ? address?.port : address}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.sockets) socket.destroy();
    });
  }
}

/** Answers 101, with the first bytes of the new protocol in the same packet. */
export function accept(socket: Duplex, first = ""): void {
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n${first}`,
  );
}

/** Answers with a status and a text, as a kubelet does that refuses. */
export function refuse(socket: Duplex, status: number, text: string): void {
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nContent-Type: text/plain\r\nX-Reason: told\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  );
}

/** The values of every line of a header, in order. */
export function headerLines({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}
