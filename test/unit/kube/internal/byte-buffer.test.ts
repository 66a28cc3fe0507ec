import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteBuffer } from "../../../../src/kube/internal/byte-buffer.ts";

test("returns all chunks as one, in order, and once", () => {
  const chunk = fc.oneof(fc.uint8Array({ maxLength: 5 }), fc.uint8Array({ minLength: 200, maxLength: 2_000 }));
  const buffer = new ByteBuffer();
  fc.assert(
    fc.property(fc.array(chunk), (chunks) => {
      for (const each of chunks) buffer.add(Buffer.from(each));
      const all = Buffer.concat(chunks);
      expect(buffer.length).toBe(all.length);
      expect(buffer.take().equals(all)).toBe(true);
      expect(buffer.length).toBe(0);
    }),
  );
});

test("preserves megabytes in chunks of any size", () => {
  const all = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251));
  for (const size of [1, 1_400, 65_536, 299_999]) {
    const buffer = new ByteBuffer();
    for (let at = 0; at < all.length; at += size) buffer.add(all.subarray(at, at + size));
    expect(buffer.take().equals(all)).toBe(true);
  }
});

test("does not copy a single chunk", () => {
  const buffer = new ByteBuffer();
  const chunk = Buffer.from("all there is");
  buffer.add(chunk);
  expect(buffer.take().buffer).toBe(chunk.buffer);
});

test("drops all that it holds on clear, and takes what comes then", () => {
  const buffer = new ByteBuffer();
  buffer.add(Buffer.from("one"));
  buffer.add(Buffer.from("two"));
  buffer.clear();
  buffer.add(Buffer.from("three"));
  expect(buffer.take().toString()).toBe("three");
});
