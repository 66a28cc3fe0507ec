import type { Duplex } from "node:stream";
import type { Clock } from "./clock.ts";

// Wait of one side's end for the other's; longer than any round trip.
const LINGER_MS = 5_000;

export interface JoinedSockets {
  readonly closed: Promise<void>;
  /** Ends both sockets gracefully. Drops bytes that have not arrived yet. */
  end(): void;
}

/** Applies backpressure. The end of one socket ends the other, after the client has received everything. */
export function join(client: Duplex, server: Duplex, clock: Clock): JoinedSockets {
  const expiring = new Set<Duplex>();
  const expire = (socket: Duplex): void => {
    if (expiring.has(socket)) return;
    expiring.add(socket);
    closeInTime(socket, clock);
  };
  const directions = [
    [client, server],
    [server, client],
  ] as const;
  // Pipes come before the listeners, which undo that a pipe pauses its source when the target finishes.
  for (const [from, to] of directions) from.pipe(to);
  for (const [from, to] of directions) {
    // `from` must be read to see its end, although `to` takes no more.
    to.once("finish", () => {
      from.resume();
      expire(to);
    });
    to.once("close", () => {
      from.resume();
      if (!from.writableEnded) from.end();
    });
    // A reset. The close event that follows ends the other side.
    from.on("error", () => {});
  }
  // The client is gone; input that the server has not read is worthless.
  for (const event of ["end", "close"]) client.once(event, () => expire(server));
  const both = Promise.all(directions.map(([socket]) => closing(socket)));
  return {
    closed: both.then(() => undefined),
    end: () => {
      for (const [from, to] of directions) {
        from.unpipe(to);
        from.resume();
        to.end();
        expire(to);
      }
    },
  };
}

/** Destroys an ended socket if the peer does not close it in time. */
export function closeInTime(socket: Duplex, clock: Clock): void {
  if (socket.closed) return;
  const timer = clock.after(LINGER_MS, () => socket.destroy());
  socket.once("close", () => timer.cancel());
}

function closing(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}
