import fc from "fast-check";
import { expect, test } from "vitest";
import { Gathered } from "../../../src/kube/gathered.ts";

test("returns all chunks as one, in order, and once", () => {
  const chunk = fc.oneof(fc.uint8Array({ maxLength: 5 }), fc.uint8Array({ minLength: 200, maxLength: 2_000 }));
  const gathered = new Gathered();
  fc.assert(
    fc.property(fc.array(chunk), (chunks) => {
      for (const each of chunks) gathered.add(Buffer.from(each));
      const all = Buffer.concat(chunks);
      expect(gathered.length).toBe(all.length);
      expect(gathered.take().equals(all)).toBe(true);
      expect(gathered.length).toBe(0);
    }),
  );
});

test("megabytes come out as they were, in chunks of every size", () => {
  const all = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251));
  for (const size of [1, 1_400, 65_536, 299_999]) {
    const gathered = new Gathered();
    for (let at = 0; at < all.length; at += size) gathered.add(all.subarray(at, at + size));
    expect(gathered.take().equals(all)).toBe(true);
  }
});

test("a single chunk is not copied", () => {
  const gathered = new Gathered();
  const chunk = Buffer.from("all there is");
  gathered.add(chunk);
  expect(gathered.take().buffer).toBe(chunk.buffer);
});

test("clear drops everything", () => {
  const gathered = new Gathered();
  gathered.add(Buffer.from("one"));
  gathered.add(Buffer.from("two"));
  gathered.clear();
  gathered.add(Buffer.from("three"));
  expect(gathered.take().toString()).toBe("three");
});
