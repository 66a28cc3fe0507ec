import { connect, createServer, type Socket } from "node:net";

/** The two ends of one TCP connection, as an HTTP server and its client have them. */
export interface SocketPair {
  /** Half-open is allowed, as on the sockets of Node's HTTP server. */
  readonly accepted: Socket;
  readonly dialled: Socket;
}

/** Connects two sockets over loopback, which `onFinished` cuts. */
export async function socketPair(onFinished: (cut: () => void) => void): Promise<SocketPair> {
  const server = createServer({ allowHalfOpen: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const arriving = new Promise<Socket>((resolve) => server.once("connection", resolve));
  const dialled = connect(port, "127.0.0.1");
  const accepted = await arriving;
  server.close();
  for (const socket of [accepted, dialled]) socket.on("error", () => {});
  onFinished(() => {
    accepted.destroy();
    dialled.destroy();
  });
  return { accepted, dialled };
}

/** Returns all bytes until the other end has ended; "cut" if the connection was reset. */
export function readAll(socket: Socket): Promise<Buffer | "cut"> {
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.once("end", () => resolve(Buffer.concat(chunks)));
    socket.once("close", () => resolve("cut"));
  });
}
