import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

/** An HTTP proxy that takes CONNECT, and leads every name to loopback. */
export interface ConnectProxy {
  readonly url: string;
  /** `HOST:PORT` of each request. */
  readonly requests: readonly string[];
  close(): void;
}

/** Listens on `host`. Cuts connections that are silent both ways for `silentMs`. */
export async function connectProxy({
  host = "127.0.0.1",
  silentMs = 0,
}: {
  readonly host?: string;
  readonly silentMs?: number;
} = {}): Promise<ConnectProxy> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  server.on("connect", ({ url = "" }, client) => {
    requests.push(url);
    const target = connect(Number(url.split(":").at(-1)), "127.0.0.1", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      client.pipe(target).pipe(client);
    });
    sockets.add(target);
    // Bytes of either direction count.
    if (silentMs > 0) target.setTimeout(silentMs, () => target.destroy());
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      one.on("error", () => {});
      one.once("close", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${port}`,
    requests,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
