import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";

// How long the end of a stream waits for the other side's: longer than a round trip to anywhere.
const LINGER_MS = 5_000;

/** Two connections that carry each other's bytes. */
export interface JoinedSockets {
  /** Resolves when both are closed. */
  readonly closed: Promise<void>;
  /** Ends both in good order; what has not arrived yet is dropped. */
  end(): void;
}

/**
 * Passes bytes between a client's connection and a server's as they are. Each direction reads no further than the other
 * side writes, so a slow reader costs a few buffers. The end of one connection is the end of the other, after everything
 * that the server has sent has reached the client, however slowly it reads.
 */
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
  // Both before the listeners: a pipe pauses its source when its target is done, and the listeners undo that.
  for (const [from, to] of directions) from.pipe(to);
  for (const [from, to] of directions) {
    // Nobody can write to `to` any more, and `from` must be read to see its end.
    to.once("finish", () => {
      from.resume();
      expire(to);
    });
    to.once("close", () => {
      from.resume();
      if (!from.writableEnded) from.end();
    });
    // A reset; the close that follows tells the other side.
    from.on("error", () => {});
  }
  // The person has gone, and nobody waits for what the server has not read yet.
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

/** Closes a socket that has been ended, should the other side not do so soon. */
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
