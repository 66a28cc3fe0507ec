import type { Dispatcher } from "undici";

export const TEXT = "a line that comes byte by byte";

/** A connection of which only its pauses matter. */
class Connection implements Dispatcher.DispatchController {
  readonly aborted = false;
  readonly reason = null;
  paused = false;
  abort(): void {}
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
  }
}

/** Chunks of one byte. They share their memory, as views on a socket's buffer do: kept chunks change. */
export function feed(handler: Dispatcher.DispatchHandler, status: number, text: string): Connection {
  const connection = new Connection();
  handler.onRequestStart?.(connection, {});
  handler.onResponseStart?.(connection, status, {}, "");
  const [first = "", ...rest] = text;
  handler.onResponseData?.(connection, Buffer.from(first));
  const chunk = Buffer.alloc(1);
  for (const character of rest) {
    chunk.write(character);
    handler.onResponseData?.(connection, chunk);
  }
  chunk.write("?");
  return connection;
}
