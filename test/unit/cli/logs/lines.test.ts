import { describe, expect, test } from "vitest";
import { LinePrinter, LineReader, type Timestamps } from "../../../../src/cli/logs/lines.ts";

const at = (second: number, text: string): string => `2026-01-01T00:00:0${second}.000000001Z ${text}\n`;

function read(reader: LineReader, ...chunks: readonly string[]): string[] {
  return chunks.flatMap((chunk) => reader.take(Buffer.from(chunk))).map(String);
}

describe("the lines of a log", () => {
  test("are whole however the chunks are cut", () => {
    const bytes = Buffer.from("première\nzweite\n\nrest");
    for (let size = 1; size <= bytes.length; size += 1) {
      const reader = new LineReader("absent");
      const lines: Buffer[] = [];
      for (let start = 0; start < bytes.length; start += size)
        lines.push(...reader.take(bytes.subarray(start, start + size)));
      expect([...lines, ...reader.end()].map(String)).toEqual(["première\n", "zweite\n", "\n", "rest"]);
    }
  });

  test("keep bytes that are no text", () => {
    const bytes = Buffer.from([0xff, 0x00, 0x0a]);
    expect(new LineReader("absent").take(bytes)).toEqual([bytes]);
  });

  test.each<[Timestamps, string[]]>([
    ["absent", [at(1, "one"), at(2, "")]],
    ["kept", [at(1, "one"), at(2, "")]],
    ["removed", ["one\n", "\n"]],
  ])("have their timestamps %s", (timestamps, lines) => {
    expect(read(new LineReader(timestamps), at(1, "one") + at(2, ""))).toEqual(lines);
  });

  test("include a message of the kubelet, which has no timestamp", () => {
    const reader = new LineReader("removed");
    expect(read(reader, "unable to retrieve container logs\n")).toEqual(["unable to retrieve container logs\n"]);
    expect(reader.lastTime).toBeUndefined();
  });

  test("come once when a second stream repeats the last second of the first", () => {
    const reader = new LineReader("removed");
    expect(read(reader, at(1, "a"), at(2, "b"), at(2, "c"), at(3, "cut").slice(0, -2))).toEqual(["a\n", "b\n", "c\n"]);
    expect(reader.lastTime).toBe("2026-01-01T00:00:02.000000001Z");
    reader.restart();
    expect(read(reader, at(1, "a"), at(2, "b"), at(2, "c"), at(2, "d"), at(3, "cut"))).toEqual(["d\n", "cut\n"]);
    reader.restart();
    expect(read(reader, at(3, "cut"), at(3, "e"))).toEqual(["e\n"]);
  });

  test("come in pieces when they are very long, without a timestamp in the middle", () => {
    const reader = new LineReader("removed");
    const long = "x".repeat(2 ** 20);
    expect(read(reader, at(1, long).slice(0, -1)).map(({ length }) => length)).toEqual([2 ** 20]);
    expect(read(reader, "y\n", at(2, "next"))).toEqual(["y\n", "next\n"]);
  });
});

describe("the printer", () => {
  function printed(isPrefixed: boolean, ...lines: readonly (readonly [string, string])[]): string {
    let text = "";
    const printer = new LinePrinter((bytes) => {
      text += bytes.toString();
    });
    printer.isPrefixed = isPrefixed;
    for (const [log, line] of lines) printer.print(log, Buffer.from(line));
    return text;
  }

  test("names the log before each line of several pods", () => {
    expect(printed(true, ["west/a", "1\n"], ["east/b", "2\n"])).toBe("[west/a] 1\n[east/b] 2\n");
  });

  test("changes nothing in the log of a single pod", () => {
    expect(printed(false, ["west/a", "1\n"], ["west/a", "no end"])).toBe("1\nno end");
  });

  test("ends a line without a line break before another log's line, and continues it with the same log's", () => {
    expect(printed(true, ["west/a", "no "], ["west/a", "end"], ["east/b", "2\n"])).toBe(
      "[west/a] no end\n[east/b] 2\n",
    );
  });
});
