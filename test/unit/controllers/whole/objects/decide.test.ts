import { describe, expect, test } from "vitest";
import type { AnyObject } from "../../../../../src/api/delegated-type.ts";
import type { Stored } from "../../../../../src/api/kubernetes.ts";
import { decide } from "../../../../../src/controllers/whole/objects/decide.ts";
import type { Observed } from "../../../../../src/controllers/whole/objects/model.ts";
import { nextMembers, type ObjectMember } from "../../../../../src/copies/object-members.ts";
import { statusFromCopies } from "../../../../../src/copies/object-status.ts";

const NOW = 1_000_000;
const READY = { phase: "Ready" };

function object(metadata: object = {}, status?: object): Stored<AnyObject> {
  const stored = {
    name: "one",
    uid: "u1",
    resourceVersion: "1",
    labels: { "legation.dev/whole": "true" },
    finalizers: ["legation.dev/whole"],
  };
  return { metadata: { ...stored, ...metadata }, ...(status === undefined ? {} : { status }) };
}

function place(parts: Partial<ObjectMember> & { readonly status?: object } = {}): ObjectMember {
  const { status, ...rest } = parts;
  const copy = {
    metadata: { name: "one", uid: "m1", resourceVersion: "5" },
    ...(status === undefined ? {} : { status }),
  };
  return { member: "west", isUsable: true, isKnown: true, hasCopy: true, inStep: true, isLost: false, copy, ...rest };
}

function without({ copy: _, ...rest }: ObjectMember): ObjectMember {
  return { ...rest, hasCopy: false };
}

interface Given extends Partial<Observed> {
  readonly membersStaleSince?: number;
}

function decided({ membersStaleSince: since, ...observed }: Given): unknown[] {
  const given = {
    object: object(),
    isRetired: false,
    places: [place()],
    isQueued: false,
    isMisplaced: false,
    ...observed,
  };
  const status = statusFromCopies(
    given.object,
    given.places.filter(({ excluded }) => excluded === undefined),
  );
  const members = nextMembers(given.object, given.places, "");
  const isStale = since !== undefined && members !== undefined;
  const whole = {
    ...given,
    ...(status === undefined ? {} : { status }),
    ...(isStale ? { staleMembers: { members, since } } : {}),
  };
  const { actions, outcome, requeueAt } = decide(whole, NOW, NOW);
  const words = actions.map((action) => {
    if (action.type === "release") {
      return `release, asking ${action.members.join()}${action.keepsLabel === true ? ", keeping the label" : ""}`;
    }
    if (action.type === "record") return `record ${action.assignment}`;
    if (action.type === "members") {
      return `members ${action.members.map(({ member, state, since }) => `${member} ${state} since ${since}`).join(", ")}`;
    }
    return action.type === "report" ? `report ${action.message}` : action.type;
  });
  return [outcome, ...words, ...(requeueAt === undefined ? [] : [requeueAt - NOW])];
}

const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };

test.each<[string, Given, unknown[]]>([
  ["waits for the copies of a deleted object", { object: object(DELETED) }, ["Removing"]],
  [
    "releases a deleted object when no member has it any more",
    { object: object(DELETED), places: [without(place())] },
    ["Releasing", "release, asking west", 30_000],
  ],
  [
    "does not wait for members that were declared lost",
    { object: object(DELETED), places: [place({ isUsable: false, isLost: true }), without(place({ member: "east" }))] },
    ["Releasing", "release, asking east", 30_000],
  ],
  [
    "asks a member whose watch has a gap, whatever was last seen there",
    {
      object: object(DELETED),
      places: [place({ isUsable: false }), without(place({ member: "east", isUsable: false }))],
    },
    ["Releasing", "release, asking west,east", 30_000],
  ],
  [
    "waits until no request can make a copy any more",
    { object: object(DELETED), places: [without(place({ settlesAt: NOW + 700 })), without(place({ member: "east" }))] },
    ["Settling", 700],
  ],
  [
    "does not wait for requests to a member that was declared lost",
    { object: object(DELETED), places: [without(place({ settlesAt: NOW + 700, isLost: true }))] },
    ["Releasing", "release, asking ", 30_000],
  ],
  [
    "does not ask a member that never let it be read, and is not on record",
    { object: object(DELETED), places: [without(place({ isUsable: false, isClosed: true }))] },
    ["Releasing", "release, asking ", 30_000],
  ],
  [
    "records a member that refuses the deletion of its copy",
    {
      object: object(DELETED),
      places: [place({ excluded: "taken back", deletionRefusal: "no" })],
      membersStaleSince: NOW - 1_000,
    },
    ["Recording", "members west Leaving since 1970-01-01T00:16:40.000Z"],
  ],
  [
    "waits for a member that refuses the deletion of its copy",
    {
      object: object(DELETED),
      places: [place({ excluded: "taken back", deletionRefusal: "no" })],
      membersStaleSince: NOW - 400,
    },
    ["DeletionRefused", 600],
  ],
  [
    "takes an object back that asks no more",
    { object: object({ labels: { "legation.dev/whole": "false" } }) },
    ["Removing"],
  ],
  [
    "writes the finalizer before anything is created",
    { object: object({ finalizers: [] }), places: [without(place())] },
    ["Holding", "hold"],
  ],
  [
    "gives no member to an object that a queue has still to admit",
    { choice: { fitting: ["east"], why: "" }, places: [], object: object({ finalizers: [] }), isQueued: true },
    ["Queued"],
  ],
  [
    "takes the member from an object that a queue has admitted for another",
    { isMisplaced: true },
    ["Requeueing", "record undefined"],
  ],
  [
    "records the best member before anything is created there",
    { choice: { fitting: ["east", "west"], why: "" }, places: [], object: object({ finalizers: [] }) },
    ["Placing", "record east"],
  ],
  [
    "tells why no member may have it, and looks again",
    { choice: { fitting: [], why: "west: Cordoned" }, places: [] },
    ["NotPlaced", "report west: Cordoned", 30_000],
  ],
  [
    "tells where overrides do not fit, and goes on writing the status",
    { places: [place({ misfit: "no", inStep: false, status: READY }), place({ member: "east", status: READY })] },
    ["Following", "report west: no", "status"],
  ],
  [
    "touches no object whose annotations or namespace do not allow it",
    { problem: "no", object: object({ finalizers: [] }) },
    ["Refused", "report no"],
  ],
  [
    "tells why no member gets the object",
    { places: [without(place({ excluded: "not named" })), without(place({ member: "east", excluded: "closed" }))] },
    ["NotPlaced", "report west: not named; east: closed"],
  ],
  ["tells of a host without members", { places: [] }, ["NotPlaced", "report this cluster has no members"]],
  ["writes no status without one", {}, ["InStep"]],
  ["writes a status", { places: [place({ status: READY })] }, ["Following", "status"]],
  ["writes no status that is there", { object: object({}, READY), places: [place({ status: READY })] }, ["InStep"]],
  [
    "writes at most one a second",
    { places: [place({ status: READY })], sent: { shown: {}, at: NOW - 400 } },
    ["Coalescing", 600],
  ],
  [
    "takes what is known of a member that does not answer",
    { object: object({}, READY), places: [place({ isUsable: false, status: { phase: "Old" } })] },
    ["Following", "status"],
  ],
  [
    "keeps the status while a new leader has not read a member",
    { object: object({}, READY), places: [without(place({ isUsable: false, isKnown: false }))] },
    ["InStep"],
  ],
  [
    "reads no status of a member that is not given the object",
    {
      places: [place({ status: READY }), place({ member: "east", excluded: "not named", status: { phase: "Other" } })],
    },
    ["Following", "status"],
  ],
  ["waits a second before it records the members", { membersStaleSince: NOW - 400 }, ["InStep", 600]],
  [
    "waits longer while a member is about to take the object",
    { places: [place(), without(place({ member: "east", inStep: false }))], membersStaleSince: NOW - 1_000 },
    ["InStep", 9_000],
  ],
  [
    "records after a second that a member has not taken the object, and why, when the write has failed",
    {
      places: [place(), without(place({ member: "east", inStep: false, failing: "no webhook answers" }))],
      membersStaleSince: NOW - 1_000,
    },
    ["Recording", "members east Waiting since 1970-01-01T00:16:40.000Z, west InStep since 1970-01-01T00:16:40.000Z"],
  ],
  [
    "lets the record wait while many copies are being written",
    { isBusy: true, membersStaleSince: NOW - 1_000 },
    ["InStep", 9_000],
  ],
  [
    "looks after a second whether copies are still being written",
    { isBusy: true, membersStaleSince: NOW - 400 },
    ["InStep", 600],
  ],
  [
    "records the members after ten seconds though copies are being written",
    { isBusy: true, membersStaleSince: NOW - 10_000 },
    ["Recording", "members west InStep since 1970-01-01T00:16:40.000Z"],
  ],
  [
    "records a member that does not take the object for long",
    { places: [place(), without(place({ member: "east", inStep: false }))], membersStaleSince: NOW - 10_000 },
    ["Recording", "members east Waiting since 1970-01-01T00:16:40.000Z, west InStep since 1970-01-01T00:16:40.000Z"],
  ],
  [
    "records the members",
    {
      places: [place(), without(place({ member: "east", inStep: false, refusal: "quota" }))],
      membersStaleSince: NOW - 1_000,
    },
    ["Recording", "members east Refused since 1970-01-01T00:16:40.000Z, west InStep since 1970-01-01T00:16:40.000Z"],
  ],
  [
    "records a member that is to lose its copy before it tells the author",
    { places: [place({ excluded: "not named" })], membersStaleSince: NOW - 1_000 },
    ["Recording", "members west Leaving since 1970-01-01T00:16:40.000Z"],
  ],
  [
    "writes a status while the record waits",
    { places: [place({ status: READY })], membersStaleSince: NOW },
    ["Following", "status"],
  ],
  [
    "looks again for the record while the status waits",
    { places: [place({ status: READY })], sent: { shown: {}, at: NOW - 100 }, membersStaleSince: NOW - 400 },
    ["Coalescing", 600],
  ],
  [
    "releases the objects of a deleted type, and leaves their copies",
    { isRetired: true },
    ["Retired", "release, asking , keeping the label"],
  ],
  [
    "leaves released objects of a deleted type alone",
    { isRetired: true, object: object({ finalizers: [] }) },
    ["Retired"],
  ],
])("%s", (_, observed, expected) => {
  expect(decided(observed)).toEqual(expected);
});

describe("a held status", () => {
  test("waits until its hold ends, and another is written at once", () => {
    const held = { status: { reason: "Refused", until: NOW + 5_000, content: JSON.stringify(READY) } } as const;
    expect(decided({ held, places: [place({ status: READY })] })).toEqual(["StatusHeld", 5_000]);
    expect(decided({ held, places: [place({ status: { phase: "Other" } })] })).toEqual(["Following", "status"]);
  });
});
