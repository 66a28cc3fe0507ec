import { describe, expect, test } from "vitest";
import type { Refusal } from "../../../src/placement/candidate.ts";
import { Memories } from "../../../src/scheduling/memories.ts";
import { NOTHING } from "../../../src/scheduling/memory.ts";

const UID = "u1";
const refusal: Refusal = { cluster: "west", reason: "Full", message: "full" };
const LOST = { at: 50, message: "socket closed" };

/** Returns memories, and the places that the pod was given in order. */
function remembering() {
  const places: (string | undefined)[] = [];
  const memories = new Memories({ now: () => 0 }, (_uid, member) => places.push(member));
  return { memories, places, memory: () => memories.of(UID) };
}

describe("an attempt", () => {
  test("keeps its time while it is under way, and begins anew after a refusal, whose count stays", () => {
    const { memories, memory } = remembering();
    memories.noteAttempt(UID, "west", 10);
    memories.noteAttempt(UID, "west", 20);
    expect(memory().attempts.west).toMatchObject({ since: 10, refusalCount: 0 });
    memories.noteRefusal(UID, refusal, 1, 30);
    memories.noteAttempt(UID, "west", 40);
    expect(memory().attempts.west).toEqual({ since: 40, refusalCount: 1 });
  });

  test("elsewhere is forgotten at the next one, unless it was refused or its create may still be done", () => {
    const { memories, memory } = remembering();
    memories.noteAttempt(UID, "west", 10);
    memories.noteRefusal(UID, refusal, 1, 10);
    for (const member of ["east", "north", "south"]) memories.noteAttempt(UID, member, 20);
    expect(Object.keys(memory().attempts)).toEqual(["west", "south"]);
    memories.noteUncertain(UID, "south");
    memories.noteAttempt(UID, "east", 30);
    expect(Object.keys(memory().attempts)).toEqual(["west", "south", "east"]);
  });

  test("whose response was lost begins anew, and each further loss keeps the time of the first", () => {
    const { memories, memory } = remembering();
    memories.noteAttempt(UID, "west", 10);
    memories.noteUncertain(UID, "west", LOST);
    memories.noteUncertain(UID, "west", { ...LOST, at: 90 });
    expect(memory()).toMatchObject({
      uncertain: "west",
      uncertainCreate: { since: 50, lastAt: 90 },
      attempts: { west: { since: 90 } },
    });
    memories.noteUncertain(UID, "east", { ...LOST, at: 99 });
    expect(memory().uncertainCreate).toMatchObject({ since: 99 });
  });
});

describe("a refusal", () => {
  test("takes the place only from the pod whose room is reserved in that member", () => {
    const { memories, places } = remembering();
    memories.noteAttempt(UID, "east", 10);
    memories.noteRefusal(UID, refusal, 1, 20);
    expect(places).toEqual(["east"]);
    memories.noteRefusal(UID, { ...refusal, cluster: "east" }, 1, 20);
    expect(places).toEqual(["east", undefined]);
  });

  test("is over at once when room may have become free, and costs no longer rest the next time", () => {
    const { memories, memory } = remembering();
    memories.noteOpen(UID, "west", 5);
    expect(memory()).toEqual(NOTHING);
    memories.noteRefusal(UID, refusal, 1, 10);
    memories.noteOpen(UID, "west", 20);
    expect(memory().attempts.west).toMatchObject({ refusal, until: 20, refusalCount: 0, hurried: true });
  });

  test("is all that stays of a pod that was not bound", () => {
    const { memories, memory } = remembering();
    memories.noteRefusal(UID, refusal, 1, 10);
    memories.noteAttempt(UID, "east", 10);
    memories.noteGivenUp(UID);
    expect(memory()).toMatchObject({ fresh: true, attempts: { west: { refusal } } });
    expect(Object.keys(memory())).toEqual(["fresh", "attempts"]);
    expect(Object.keys(memory().attempts)).toEqual(["west"]);
  });
});

describe("a delegate that a member shows", () => {
  test("ends the doubt about its create, and is the pod's place", () => {
    const { memories, memory, places } = remembering();
    memories.noteUncertain(UID, "west", LOST);
    memories.noteFound(UID, "west", 60);
    expect([memory().uncertain, memory().uncertainCreate, places]).toEqual([undefined, undefined, ["west"]]);
  });

  test.each<[string, (memories: Memories) => void, boolean]>([
    ["it ends without a node", () => {}, true],
    ["room is reserved for the pod elsewhere", (memories) => memories.noteReserved(UID, "east"), false],
  ])("gives the pod no place if %s", (_, before, ends) => {
    const { memories, places } = remembering();
    before(memories);
    memories.noteFound(UID, "west", 60, ends);
    expect(places).not.toContain("west");
  });
});

describe("a member that is connected anew", () => {
  test("may hide a delegate again, although it had none", () => {
    const { memories, memory } = remembering();
    memories.noteInherited(UID);
    for (const member of ["west", "east"]) memories.noteConfirmedAbsent(UID, member);
    memories.noteUnproven(UID, "west");
    memories.noteUnproven(UID, "west");
    expect(memory()).toMatchObject({ fresh: false, confirmedAbsent: ["east"], unproven: ["west"] });
  });
});

test("an answer for a pod that was forgotten makes no memory of it", () => {
  const { memories, memory } = remembering();
  memories.noteConfirmedAbsent(UID, "west");
  memories.noteAbsent(UID);
  memories.noteUnplaced(UID);
  memories.noteNotDone(UID, "binding");
  expect(memory()).toEqual(NOTHING);
});

test("a Binding that was done stays known until the host shows it, and nothing else does", () => {
  const { memories, memory } = remembering();
  memories.noteAttempt(UID, "west", 10);
  const binding = { member: "west", delegateUid: "d" };
  memories.noteSent(UID, { binding });
  memories.noteDone(UID, "binding");
  expect(memory()).toEqual({ ...NOTHING, binding });
});

test("a member named like a field of every object was not tried before", () => {
  const { memories, memory } = remembering();
  expect(memory().attempts.constructor).toBeUndefined();
  memories.noteAttempt(UID, "west", 10);
  expect(memory().attempts.constructor).toBeUndefined();
  memories.noteRefusal(UID, { ...refusal, cluster: "constructor" }, 1, 30);
  expect(memory().attempts.constructor).toMatchObject({ since: 30, refusalCount: 1 });
});
