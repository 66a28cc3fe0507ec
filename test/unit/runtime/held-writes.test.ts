import { describe, expect, test } from "vitest";
import { heldUntil, heldWrite, refusedAgain } from "../../../src/runtime/held-writes.ts";

const NOW = 1_000_000;

describe("a write that is held", () => {
  test.each<
    [string, object, { readonly write?: string; readonly content?: string; readonly now?: number }, number | undefined]
  >([
    ["waits whatever it would write", {}, { content: "a" }, NOW + 5],
    ["waits with the content that it is held for", { content: "a" }, { content: "a" }, NOW + 5],
    ["goes on with another content", { content: "a" }, { content: "b" }, undefined],
    ["goes on in the moment its hold ends", {}, { now: NOW + 5 }, undefined],
    ["holds up no other write", {}, { write: "other" }, undefined],
  ])("%s", (_, entry, asked, expected) => {
    const held = { status: { reason: "Refused", until: NOW + 5, ...entry } } as const;
    expect(heldUntil(held, { write: "status", now: NOW, ...asked })).toBe(expected);
  });

  test("is not found under the name of a property that every object has", () => {
    expect([heldWrite({}, "constructor"), heldWrite(undefined, "status")]).toEqual([undefined, undefined]);
  });
});

describe("a refusal that comes again", () => {
  const first = refusedAgain(undefined, { message: "quota: 1 left", dedupe: "quota" }, NOW);

  test("is told at first, with the time of the first refusal", () => {
    expect(first).toMatchObject({ reportedAt: NOW, since: NOW });
  });

  test.each<[string, object, number, number]>([
    [
      "is not told again while its event can be read and it differs in amounts alone",
      { message: "quota: 2 left", dedupe: "quota" },
      49,
      NOW,
    ],
    ["is told again in other words", { message: "denied" }, 1, NOW + 60_000],
    ["is told again before its event expires", { message: "quota: 1 left", dedupe: "quota" }, 50, NOW + 50 * 60_000],
  ])("%s", (_, words, minutes, reportedAt) => {
    const why = { message: "", ...words };
    expect(refusedAgain(first, why, NOW + minutes * 60_000)).toMatchObject({ why, reportedAt, since: NOW });
  });
});
