import type { Duplex } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { z } from "zod";
import { isJsonObject, jsonOrNothing } from "../kube/json.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import { PING_MS, SILENCE_MS } from "./messages.ts";

// A line is at most a token and a bundle of certificates.
const LONGEST_LINE = 2 ** 18;
// Bytes that the other side may leave unread before it counts as gone. Messages are small and seldom.
const MOST_UNREAD = 2 ** 20;

export interface ControlChannelOptions<Received> {
  readonly receives: z.ZodType<Received>;
  readonly onMessage: (message: Received) => void;
  /** Called once, with the reason. */
  readonly onClose: (reason: string) => void;
  readonly clock: Clock;
}

/** An end of a control connection: messages as lines, pings both ways, and an end after silence. */
export class ControlChannel<Sent extends { readonly type: string }, Received extends { readonly type: string }> {
  readonly #socket: Duplex;
  readonly #options: ControlChannelOptions<Received>;
  #line = "";
  #heardAt: number;
  #timer: Timer;
  #closed = false;

  constructor(socket: Duplex, options: ControlChannelOptions<Received>) {
    this.#socket = socket;
    this.#options = options;
    this.#heardAt = options.clock.now();
    this.#timer = options.clock.after(PING_MS, () => this.#beat());
    const decoder = new StringDecoder("utf8");
    socket.on("data", (bytes: Buffer) => this.#onText(decoder.write(bytes)));
    socket.on("error", (error) => this.close(error.message));
    socket.once("end", () => this.close("the other side ended the connection"));
    socket.once("close", () => this.close("the connection was cut"));
  }

  send(message: Sent | { readonly type: "ping" }): void {
    if (this.#closed) return;
    this.#socket.write(`${JSON.stringify(message)}\n`);
    if (this.#socket.writableLength > MOST_UNREAD) this.close("the other side does not read");
  }

  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer.cancel();
    this.#socket.destroy();
    this.#options.onClose(reason);
  }

  #beat(): void {
    const { clock } = this.#options;
    const leftMs = this.#heardAt + SILENCE_MS - clock.now();
    if (leftMs <= 0) {
      this.close(`nothing was heard for ${SILENCE_MS / 1000} s`);
      return;
    }
    this.#timer = clock.after(Math.min(PING_MS, leftMs), () => this.#beat());
    this.send({ type: "ping" });
  }

  #onText(text: string): void {
    if (this.#closed) return;
    this.#heardAt = this.#options.clock.now();
    // Only new text is searched: a line may arrive in many parts.
    const [rest = "", ...more] = text.split("\n");
    const lines = [this.#line + rest, ...more];
    this.#line = lines.pop() ?? "";
    if (this.#line.length > LONGEST_LINE) this.close("a message is too long");
    for (const line of lines) {
      if (this.#closed) return;
      this.#onLine(line);
    }
  }

  #onLine(line: string): void {
    const written = jsonOrNothing(line);
    const { success, data, error } = this.#options.receives.safeParse(written);
    if (success) {
      if (data.type !== "ping") this.#options.onMessage(data);
      return;
    }
    // The other side may be of a newer version, which knows more types.
    const isOther = isJsonObject(written) && typeof written.type === "string" && error.issues.every(isOfType);
    if (!isOther) this.close("a message is not as expected");
  }
}

function isOfType({ path }: { readonly path: readonly PropertyKey[] }): boolean {
  return path.length === 1 && path[0] === "type";
}
