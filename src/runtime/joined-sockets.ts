import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "./clock.ts";

// Wait of one side's end for the other's; longer than any round trip.
const HALF_CLOSED_MS = 5_000;
// A socket that is destroyed answers later bytes with a reset, for which the kernel drops what it still holds for a slow client:
// 4 MB take 40 s at 800 kbit/s.
const SLOW_CLIENT_MS = 60_000;
// Freeing a smaller buffer costs more than it saves.
const LARGE_BYTES = 8_192;

export interface JoinedSockets {
  readonly closed: Promise<void>;
  /** Ends both sockets gracefully. Drops bytes that have not arrived yet. */
  end(): void;
}

/** Applies backpressure. The end of one socket ends the other, after the client has received everything. */
export function joinSockets(client: Duplex, server: Duplex, clock: Clock): JoinedSockets {
  const expiring = new Map<Duplex, number>();
  const expire = (socket: Duplex, ms = HALF_CLOSED_MS): void => {
    if ((expiring.get(socket) ?? Number.POSITIVE_INFINITY) <= ms) return;
    expiring.set(socket, ms);
    closeInTime(socket, clock, ms);
  };
  const directions = [
    [client, server],
    [server, client],
  ] as const;
  const stops = directions.map(([from, to]) => pass(from, to));
  for (const [from, to] of directions) {
    // `from` must be read to see its end, although `to` takes no more.
    to.once("finish", () => {
      from.resume();
      expire(to, to === client ? SLOW_CLIENT_MS : HALF_CLOSED_MS);
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
      for (const stop of stops) stop();
      for (const [from, to] of directions) {
        from.resume();
        to.end();
        expire(to);
      }
    },
  };
}

/** Passes bytes on, and the end. Drops bytes when `to` takes no more. Returns a function that stops it. */
export function pass(from: Duplex, to: Duplex): () => void {
  const onData = (chunk: Buffer): void => {
    if (!to.writable) return;
    const written = (error?: Error | null): void => {
      if (!error && to instanceof Socket) free(chunk);
    };
    if (!to.write(chunk, written)) from.pause();
  };
  const onDrain = (): void => void from.resume();
  const onEnd = (): void => void to.end();
  from.on("data", onData).on("end", onEnd);
  to.on("drain", onDrain);
  // A listener alone does not start a socket that was accepted paused.
  if (to.writableNeedDrain) from.pause();
  else from.resume();
  return () => {
    from.off("data", onData).off("end", onEnd);
    to.off("drain", onDrain);
  };
}

/**
 * Frees a buffer that nobody reads any more. V8 would mark its whole heap after every 64 MB of such buffers, which takes two
 * fifths of the time for passing them on.
 */
function free({ buffer, byteLength }: Buffer): void {
  // A part of a larger buffer has neighbours.
  if (byteLength < LARGE_BYTES || byteLength !== buffer.byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Destroys an ended socket if the peer does not close it in time. */
export function closeInTime(socket: Duplex, clock: Clock, ms: number = HALF_CLOSED_MS): void {
  if (socket.closed) return;
  const timer = clock.after(ms, () => socket.destroy());
  socket.once("close", () => timer.cancel());
}

/** Resolves once the socket is closed. */
export function closing(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}
