import { describe, expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { decideBy, releaseObject, retire, settlingUntil, show } from "../../../../src/controllers/whole/phases.ts";

const NOW = 1_000_000;
const object: Stored<KubeObject> = { metadata: { name: "one", uid: "u1", resourceVersion: "1" } };
const held: Stored<KubeObject> = { metadata: { ...object.metadata, finalizers: ["legation.dev/whole"] } };

test("the first phase with an answer decides, and an object is in step if none has one", () => {
  const answer = { actions: [], outcome: "Second" };
  const phases = [() => undefined, () => answer, () => ({ actions: [], outcome: "Third" })];
  expect(decideBy(phases)({}, NOW, NOW)).toBe(answer);
  expect(decideBy([])({}, NOW, NOW)).toEqual({ actions: [], outcome: "InStep" });
});

describe("an object whose type is not delegated any more", () => {
  test("is released without a word to its members, and keeps its label", () => {
    const release = { type: "release", object: held, members: [], keepsLabel: true };
    expect(retire({ object: held, isRetired: true })).toEqual({ actions: [release], outcome: "Retired" });
  });

  test("needs no write if it is released already, and goes on if its type is delegated", () => {
    expect(retire({ object, isRetired: true })).toEqual({ actions: [], outcome: "Retired" });
    expect(retire({ object: held, isRetired: false })).toBeUndefined();
  });
});

describe("an object that no member has", () => {
  test("waits until the last request that may create a copy has ended", () => {
    const places = [{ settlesAt: NOW + 5 }, { settlesAt: NOW + 9 }, {}];
    expect(releaseObject({ object }, { places, asked: ["west"] }, NOW)).toEqual({
      actions: [],
      outcome: "Settling",
      requeueAt: NOW + 9,
    });
  });

  test("is released once the members have been asked, and looked at again if one says nothing", () => {
    expect(releaseObject({ object }, { places: [{ settlesAt: NOW }], asked: ["west"] }, NOW)).toEqual({
      actions: [{ type: "release", object, members: ["west"] }],
      outcome: "Releasing",
      requeueAt: NOW + 30_000,
    });
  });
});

test.each<[string, readonly { readonly settlesAt?: number }[], number | undefined]>([
  ["nobody may create a copy where no member was asked", [], undefined],
  ["a request that ends now is over", [{ settlesAt: NOW }], undefined],
  ["a request that has ended is over", [{ settlesAt: NOW - 1 }, {}], undefined],
  ["the last of several requests counts", [{ settlesAt: NOW + 1 }, { settlesAt: NOW + 2 }], NOW + 2],
])("%s", (_, places, expected) => {
  expect(settlingUntil(places, NOW)).toBe(expected);
});

describe("a status of the copies", () => {
  const write = { shown: "active", dueAt: NOW };
  const refused = (content: string) =>
    ({ object, held: { status: { reason: "Refused", until: NOW + 9, content } } }) as const;

  test("is written once it is due", () => {
    const action = { type: "status", object, shown: "active" };
    expect(show({ object }, write, NOW)).toEqual({ actions: [action], outcome: "Following" });
    expect(show({ object }, { ...write, dueAt: NOW + 1 }, NOW)).toEqual({
      actions: [],
      outcome: "Coalescing",
      requeueAt: NOW + 1,
    });
  });

  test("is held while the host refuses it, and another one is not", () => {
    expect(show(refused('"active"'), write, NOW)).toEqual({ actions: [], outcome: "StatusHeld", requeueAt: NOW + 9 });
    expect(show(refused("other"), write, NOW).outcome).toBe("Following");
  });
});
