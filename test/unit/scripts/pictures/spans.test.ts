import { styleText } from "node:util";
import { expect, test } from "vitest";
import { spansOf } from "../../../../scripts/pictures/spans.ts";

const paint = (style: Parameters<typeof styleText>[0], text: string): string =>
  styleText(style, text, { validateStream: false });

test("a line without colours is one part", () => {
  expect(spansOf("web-0  1/1")).toEqual([{ text: "web-0  1/1", tones: [] }]);
});

test("an empty line has no parts", () => {
  expect(spansOf("")).toEqual([]);
});

test.each(["bold", "dim", "red", "green", "yellow", "cyan"] as const)("%s begins and ends with its text", (tone) => {
  expect(spansOf(`a ${paint(tone, "b")} c`)).toEqual([
    { text: "a ", tones: [] },
    { text: "b", tones: [tone] },
    { text: " c", tones: [] },
  ]);
});

test("weight and colour are independent, and a reset ends both", () => {
  expect(spansOf(`${paint(["bold", "red"], "a")}b`)).toEqual([
    { text: "a", tones: ["bold", "red"] },
    { text: "b", tones: [] },
  ]);
  expect(spansOf("\u001b[1;31ma\u001b[0mb")).toEqual([
    { text: "a", tones: ["bold", "red"] },
    { text: "b", tones: [] },
  ]);
});

test("control sequences that are no colours are left out", () => {
  expect(spansOf("\u001b[2K\u001b[Hdone")).toEqual([{ text: "done", tones: [] }]);
});
