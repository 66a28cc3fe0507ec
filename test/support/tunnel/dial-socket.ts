import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Dial } from "../../../src/kube/client.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { joinSockets } from "../../../src/runtime/joined-sockets.ts";

const DIAL_MS = 30_000;

/** Serves HTTP CONNECT on a Unix socket, as konnectivity's server does. Each connection goes on by `dial`. */
export async function serveDial(path: string, dial: Dial): Promise<Server> {
  const server = createServer();
  server.on("connect", (_request, client: Socket) => {
    client.on("error", () => {});
    dial(AbortSignal.timeout(DIAL_MS)).then(
      (socket) => {
        client.write("HTTP/1.1 200 OK\r\n\r\n");
        joinSockets(client, socket, realClock);
      },
      (error: unknown) => client.end(`HTTP/1.1 502 Bad Gateway\r\n\r\n${String(error)}`),
    );
  });
  server.listen(path);
  await once(server, "listening");
  return server;
}

/** Returns a dial to one target (`host:port`) by HTTP CONNECT on a Unix socket. */
export function dialThrough(socketPath: string, target: string): Dial {
  return (signal) =>
    new Promise((resolve, reject) => {
      const asking = request({ socketPath, method: "CONNECT", path: target, agent: false });
      const onAbort = (): void => {
        asking.destroy(new Error("the tunnel did not answer CONNECT in time"));
      };
      signal.addEventListener("abort", onAbort, { once: true });
      asking.once("connect", ({ statusCode }, socket, head) => {
        signal.removeEventListener("abort", onAbort);
        if (statusCode === 200) {
          if (head.length > 0) socket.unshift(head);
          resolve(socket);
        } else {
          socket.destroy();
          reject(new Error(`the tunnel answered CONNECT with status ${statusCode}`));
        }
      });
      asking.once("error", reject);
      asking.end();
    });
}
