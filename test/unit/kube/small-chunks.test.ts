import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { describe, expect, test } from "vitest";
import { type RequestEnd, RequestHandler } from "../../../src/kube/internal/request-handler.ts";
import { StreamHandler, type StreamOutcome } from "../../../src/kube/internal/stream-handler.ts";
import { WatchStream } from "../../../src/kube/internal/watch-stream.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";

const TEXT = "a line that comes byte by byte";
const TIMEOUTS = { openMs: 1_000, idleMs: 1_000 };

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
function feed(handler: Dispatcher.DispatchHandler, status: number, text: string): Connection {
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

describe("keeps no chunk, however small, of", () => {
  test("a response", () => {
    const outcomes: RequestEnd[] = [];
    const exchange = new RequestHandler(
      () => true,
      new ByteBudget(1_000),
      (outcome) => outcomes.push(outcome),
    );
    feed(exchange, 200, TEXT);
    exchange.onResponseEnd();
    expect(outcomes).toMatchObject([{ answer: { text: TEXT } }]);
  });

  test("a watch", async () => {
    const watch = new WatchStream(TIMEOUTS, new ByteBudget(1_000));
    feed(watch, 200, `${TEXT}\n`);
    expect((await watch.take())?.map(String)).toEqual([TEXT]);
    watch.cancel("done");
  });

  test("a refused watch", async () => {
    const watch = new WatchStream(TIMEOUTS, new ByteBudget(1_000));
    feed(watch, 403, TEXT);
    watch.onResponseEnd();
    expect((await watch.opened).refusal).toBe(TEXT);
  });

  test("a refused stream", () => {
    const { exchange, outcomes } = streamed();
    feed(exchange, 403, TEXT);
    exchange.onResponseEnd();
    expect(outcomes).toMatchObject([{ answer: { text: TEXT } }]);
  });

  test("an unread stream, which its reader gets in few pieces", async () => {
    const { exchange, body } = streamed();
    feed(exchange, 200, TEXT);
    const pieces: string[] = [];
    body().on("data", (piece) => pieces.push(String(piece)));
    exchange.onResponseEnd();
    await new Promise((resolve) => body().once("end", resolve));
    expect(pieces).toEqual([TEXT]);
  });
});

test("makes the server wait when the reader of a stream pauses, and goes on", async () => {
  const { exchange, body } = streamed();
  const connection = feed(exchange, 200, "x".repeat(64 * 1024));
  expect(connection.paused).toBe(false);
  exchange.onResponseData(connection, Buffer.from("x"));
  expect(connection.paused).toBe(true);
  let read = 0;
  body().on("data", (piece: Buffer) => {
    read += piece.length;
  });
  await expect.poll(() => [read, connection.paused]).toEqual([64 * 1024 + 1, false]);
});

test("counts unread lines with their overhead", async () => {
  const budget = new ByteBudget(10_000);
  const watch = new WatchStream(TIMEOUTS, budget);
  feed(watch, 200, "x\n".repeat(30));
  expect(budget.hold(9_000)).toBe(false);
  expect(await watch.take()).toHaveLength(30);
  expect(budget.hold(9_000)).toBe(true);
  budget.hold(-9_000);
  feed(watch, 200, "y\n".repeat(60));
  await watch.take();
  await expect(watch.take()).rejects.toThrow("the server's answers are larger than 10000 bytes together");
  expect(budget.hold(10_000)).toBe(true);
});

function streamed(): {
  readonly exchange: StreamHandler;
  readonly outcomes: StreamOutcome[];
  readonly body: () => Readable;
} {
  const outcomes: StreamOutcome[] = [];
  const exchange = new StreamHandler(
    () => {},
    (outcome) => outcomes.push(outcome),
  );
  const body = (): Readable => {
    const [outcome] = outcomes;
    if (outcome === undefined || !("body" in outcome)) throw new Error("there is no body");
    return outcome.body;
  };
  return { exchange, outcomes, body };
}
