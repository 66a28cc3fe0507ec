import { expect, test } from "vitest";
import { Screen } from "../../../../src/cli/status/screen.ts";
import { age } from "../../../../src/cli/table.ts";
import { recordedSession } from "../session.ts";

const one = { text: "one", document: { n: 1 } };
const two = { text: "two", document: { n: 2 } };

test.each([
  ["text", false, "one\n\ntwo\n"],
  ["text", true, "\u001B[H\u001B[2Jone\n\u001B[H\u001B[2Jtwo\n"],
  ["yaml", false, "n: 1\n---\nn: 2\n"],
  ["json", false, '{\n  "n": 1\n}\n{\n  "n": 2\n}\n'],
] as const)("as %s (terminal: %s) every change is shown once", (format, isTTY, expected) => {
  const session = recordedSession({ isTTY });
  const screen = new Screen(session.terminal, format);
  for (const outcome of [one, one, two, two]) screen.show(outcome);
  expect(session.out.join("")).toBe(expected);
});

test.each([
  [0, "0s"],
  [119_000, "119s"],
  [120_000, "2m"],
  [150_000, "2m30s"],
  [3_600_000, "60m"],
  [3 * 3_600_000 + 60_000, "3h1m"],
  [30 * 3_600_000, "30h"],
  [72 * 3_600_000, "3d"],
  [-5, "0s"],
])("%d ms is an age of %s", (milliseconds, expected) => {
  expect(age(milliseconds)).toBe(expected);
});
