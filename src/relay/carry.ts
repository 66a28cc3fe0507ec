import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { closeInTime, closing, pass } from "../runtime/joined-sockets.ts";

/** A client's connection that is joined to one of a pod. */
export interface Carried {
  /** Resolves when both are closed: to whether either was cut before its end. */
  readonly closed: Promise<"ended" | "cut">;
  cut(): void;
}

// Linux waits this long for the other side's end (tcp_fin_timeout).
const LAST_WAIT_MS = 60_000;

/** Joins a client's connection to a pod's, with backpressure. The end of each direction and a cut are carried; there is no idle timeout. */
export function carry(
  client: Duplex,
  pod: Duplex,
  clock: Clock,
  onBytes: Readonly<Record<"request" | "response", (bytes: number) => void>>,
): Carried {
  // Before they are passed on, which may free them.
  client.on("data", (chunk: Buffer) => onBytes.request(chunk.length));
  pod.on("data", (chunk: Buffer) => onBytes.response(chunk.length));
  const ends = [client, pod].map((from) => closing(from).then(() => hasEnded(from)));
  for (const [from, to] of [
    [client, pod],
    [pod, client],
  ] as const) {
    pass(from, to);
    // The close that follows tells the other side.
    from.on("error", () => {});
    from.once("close", () => {
      if (!hasEnded(from)) cut(to);
      else if (!to.closed) closeInTime(to, clock, LAST_WAIT_MS);
      // The other side's end is seen by reading alone.
      to.resume();
    });
  }
  return {
    closed: Promise.all(ends).then((how) => (how.every((end) => end) ? "ended" : "cut")),
    cut: () => cut(client),
  };
}

/** Reports whether both directions of a closed connection came to their end. */
function hasEnded(stream: Duplex): boolean {
  return stream.errored === null && stream.readableEnded && stream.writableFinished;
}

/** Resets a connection, as the kernel of a process that ended would. */
export function cut(stream: Duplex): void {
  if (stream instanceof Socket) stream.resetAndDestroy();
  else stream.destroy(new Error("the other side was cut"));
}
