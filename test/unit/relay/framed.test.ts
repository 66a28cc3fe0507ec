import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { FramedStream } from "../../../src/relay/framed.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { socketPair } from "../../support/streams/socket-pair.ts";

interface Ends {
  readonly near: FramedStream;
  readonly far: FramedStream;
  readonly cut: () => void;
}

async function framedPair(): Promise<Ends> {
  const { accepted, dialled } = await socketPair(onTestFinished);
  const [near, far] = [new FramedStream(accepted, realClock), new FramedStream(dialled, realClock)];
  for (const end of [near, far]) end.on("error", () => {});
  return { near, far, cut: () => void accepted.resetAndDestroy() };
}

test("carries bytes and the end of each direction apart from the other", async () => {
  const chunks = fc.array(fc.uint8Array({ maxLength: 70_000 }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(chunks, chunks, async (asked, answered) => {
      const { near, far } = await framedPair();
      for (const chunk of asked) near.write(chunk);
      near.end();
      expect(await buffer(far)).toEqual(Buffer.concat(asked));
      // The end of one direction leaves the other open.
      for (const chunk of answered) far.write(chunk);
      far.end();
      expect(await buffer(near)).toEqual(Buffer.concat(answered));
    }),
    { numRuns: 20 },
  );
});

test("closes its connection once both directions have ended", async () => {
  const { accepted, dialled } = await socketPair(onTestFinished);
  const [near, far] = [new FramedStream(accepted, realClock), new FramedStream(dialled, realClock)];
  const closed = Promise.all([accepted, dialled].map((socket) => once(socket, "close")));
  near.end("a question");
  far.end("an answer");
  await Promise.all([buffer(near), buffer(far)]);
  await closed;
  expect([near, far].map(({ errored }) => errored)).toEqual([null, null]);
});

test.each<[string, (ends: Ends) => void]>([
  ["is reset", ({ cut }) => cut()],
  ["ends before the directions have", ({ near }) => near.destroy()],
])("fails when its connection %s", async (_, act) => {
  const ends = await framedPair();
  const failed = new Promise<void>((resolve) => ends.far.once("close", resolve));
  ends.near.write("half of a question");
  await once(ends.far, "readable");
  act(ends);
  ends.far.resume();
  await failed;
  expect(ends.far.errored).not.toBeNull();
});

test("writes at the pace of the reader", async () => {
  const { near, far } = await framedPair();
  const chunk = Buffer.alloc(2 ** 20);
  let written = 0;
  const fill = (): void => {
    while (near.write(chunk, () => (written += 1)) && written < 64);
  };
  fill();
  near.on("drain", fill);
  await once(far, "readable");
  // Both kernels and streams hold a few MB.
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(written).toBeLessThan(32);
});
