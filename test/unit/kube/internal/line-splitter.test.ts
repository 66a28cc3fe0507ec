import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LineSplitter } from "../../../../src/kube/internal/line-splitter.ts";

function split(chunks: readonly Buffer[]): { lines: string[]; pendingBytes: number } {
  const splitter = new LineSplitter();
  const lines: Buffer[] = [];
  for (const chunk of chunks) splitter.push(chunk, lines);
  return { lines: lines.map((line) => line.toString("utf8")), pendingBytes: splitter.pendingBytes };
}

/** `bytes` cut at these fractions of its length. */
function cutAt(bytes: Buffer, fractions: readonly number[]): Buffer[] {
  const places = [0, ...fractions.map((part) => Math.floor(part * bytes.length)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

describe("LineSplitter", () => {
  test("finds the same lines wherever chunks are cut, even inside characters", () => {
    const lines = fc.array(fc.string({ unit: "binary", minLength: 1 }).filter((line) => !line.includes("\n")));
    const fractions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }));
    fc.assert(
      fc.property(lines, fractions, (expected, cuts) => {
        const bytes = Buffer.from(expected.map((line) => `${line}\n`).join(""));
        expect(split(cutAt(bytes, cuts))).toEqual({ lines: expected, pendingBytes: 0 });
      }),
    );
  });

  test("keeps an incomplete line, and counts its bytes", () => {
    expect(split([Buffer.from("one\ntw"), Buffer.from("o")])).toEqual({ lines: ["one"], pendingBytes: 3 });
  });

  test("skips empty lines", () => {
    expect(split([Buffer.from("\n\none\n\n"), Buffer.from("\n")])).toEqual({ lines: ["one"], pendingBytes: 0 });
  });

  test("joins an object of 1.5 MB that came in thousands of chunks", () => {
    const line = "ä".repeat(750_000);
    const bytes = Buffer.from(`${line}\n`);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 501) }, (_, at) =>
      bytes.subarray(at * 501, at * 501 + 501),
    );
    expect(split(chunks).lines).toEqual([line]);
  });
});
