import type { Readable } from "node:stream";
import { expect, test } from "vitest";
import { StreamHandler, type StreamOutcome } from "../../../../src/kube/internal/stream-handler.ts";
import { feed, TEXT } from "./small-chunks.ts";

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

test("keeps no chunk, however small, of a refused stream", () => {
  const { exchange, outcomes } = streamed();
  feed(exchange, 403, TEXT);
  exchange.onResponseEnd();
  expect(outcomes).toMatchObject([{ answer: { text: TEXT } }]);
});

test("keeps no chunk, however small, of an unread stream, which its reader gets in few pieces", async () => {
  const { exchange, body } = streamed();
  feed(exchange, 200, TEXT);
  const pieces: string[] = [];
  body().on("data", (piece) => pieces.push(String(piece)));
  exchange.onResponseEnd();
  await new Promise((resolve) => body().once("end", resolve));
  expect(pieces).toEqual([TEXT]);
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
