import { expect, test } from "vitest";
import { dedupeKey, isReadable, isTold, REPEAT_EVENT_AFTER_MS } from "../../../src/runtime/told.ts";

test.each([
  ["the same words lately", { message: "no room", at: 0 }, { message: "no room" }, 1, true],
  [
    "other words of the same key",
    { message: "1 of 2", dedupe: "room", at: 0 },
    { message: "2 of 2", dedupe: "room" },
    1,
    true,
  ],
  ["other words", { message: "no room", at: 0 }, { message: "no quota" }, 1, false],
  [
    "the same words, whose event has gone",
    { message: "no room", at: 0 },
    { message: "no room" },
    REPEAT_EVENT_AFTER_MS,
    false,
  ],
  ["nothing yet", undefined, { message: "no room" }, 1, false],
])("knows an author who was told %s", (_, told, words, now, isKnown) => {
  expect(isTold(told, words, now)).toBe(isKnown);
});

test("takes the message for the key of words without one", () => {
  expect([dedupeKey({ message: "no room" }), dedupeKey({ message: "no room", dedupe: "room" })]).toEqual([
    "no room",
    "room",
  ]);
  expect(isReadable(undefined, 0)).toBe(false);
});
