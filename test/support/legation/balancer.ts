import { createServer, connect as dial, type Socket } from "node:net";

/** Passes connections on to its backends by turns, byte by byte, as a Service does. */
export interface Balancer extends AsyncDisposable {
  readonly port: number;
  add(backend: number): void;
  /** Stops new connections to a target. Open ones stay. */
  remove(backend: number): void;
}

/** Listens on a loopback port; backends are ports of the same address. */
export async function startBalancer(port: number): Promise<Balancer> {
  const backends: number[] = [];
  const sockets = new Set<Socket>();
  let turn = 0;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  };
  /** Forwards a connection to the first of the backends that listens. */
  const pass = (incoming: Socket, [backend, ...others]: readonly number[]): void => {
    if (backend === undefined) {
      incoming.destroy();
      return;
    }
    const outgoing = dial({ host: "127.0.0.1", port: backend });
    keep(outgoing);
    let connected = false;
    outgoing.once("connect", () => {
      connected = true;
      incoming.pipe(outgoing).pipe(incoming);
    });
    outgoing.once("close", () => {
      if (connected) incoming.destroy();
      else pass(incoming, others);
    });
    incoming.once("close", () => outgoing.destroy());
  };
  const server = createServer({ noDelay: true }, (incoming) => {
    keep(incoming);
    const first = turn++ % Math.max(1, backends.length);
    pass(incoming, [...backends.slice(first), ...backends.slice(0, first)]);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    port,
    add: (backend) => {
      if (!backends.includes(backend)) backends.push(backend);
    },
    remove: (backend) => {
      const at = backends.indexOf(backend);
      if (at !== -1) backends.splice(at, 1);
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
