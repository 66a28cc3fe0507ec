import { describe, expect, test } from "vitest";
import type { PersistentVolumeClaim, Stored } from "../../../../src/api/kubernetes.ts";
import { type ClaimDecision, decide as decideAt } from "../../../../src/controllers/claims/decide.ts";
import { creationIn, MARKS, type Observed, SIZE, sizeContent } from "../../../../src/controllers/claims/model.ts";
import { claimStatus, toMemberClaim } from "../../../../src/copies/claims.ts";
import { type ClaimParts, claim, HOST, memberClaim } from "../../../support/builders/claim.ts";

const NOW = "2026-01-01T00:00:00Z";
const NOW_MS = 1_000;
const LATER_MS = 2_000;
const DELETED = { metadata: { deletionTimestamp: NOW } };

function observed(parts: Partial<Observed> = {}): Observed {
  return {
    ref: { namespace: "team", name: "data" },
    host: HOST,
    copies: [],
    usable: true,
    ...parts,
  };
}

function decide(view: Observed): ClaimDecision {
  return decideAt(view, NOW_MS);
}

/** A write that is refused until later, or was until now. */
function refused(write: string, content: string, message = "a quota", until = LATER_MS): Pick<Observed, "held"> {
  const why = { message };
  return { held: { [write]: { reason: "Refused", until, content, refusal: { why, told: why, toldAt: 0, since: 0 } } } };
}

const refusedInWest = refused(creationIn("west"), "uid-1");

function inMember(member: string, there: Stored<PersistentVolumeClaim>, usable = true): Observed["copies"][number] {
  return { member, usable, held: false, claim: there };
}

/** The host's claim when it is assigned to a member, and has been told how the member's is. */
function assigned(to: string, told?: string, parts: ClaimParts = {}): Stored<PersistentVolumeClaim> {
  const annotations = {
    "legation.dev/cluster": to,
    ...(told === undefined ? {} : { "legation.dev/claim-status": told }),
  };
  return claim({ ...parts, metadata: { ...parts.metadata, annotations } });
}

const earlier = claim({ uid: "uid-0" });
const sweepOfEarlier = { type: "sweep", member: "west", uid: "member-uid", ownerUid: "uid-0" };

describe("a claim without a member", () => {
  test("is left alone until a pod goes somewhere", () => {
    expect(decide(observed({ claim: claim() }))).toEqual({ actions: [], outcome: "Idle" });
  });

  test("is first given the member's name, and nothing is made before that is written", () => {
    expect(decide(observed({ claim: claim(), home: "west" }))).toEqual({
      actions: [{ type: "assign", member: "west", uid: "uid-1", resourceVersion: "7" }],
      outcome: "Assigning",
    });
  });

  test("is given the name of the member that has it already, where the name was lost", () => {
    const copies = [inMember("west", memberClaim(claim()))];
    expect(decide(observed({ claim: claim(), home: "west", copies })).outcome).toBe("Assigning");
  });

  test("that is bound on the host gets none", () => {
    const bound = claim({ spec: { volumeName: "pv-1" } });
    expect(decide(observed({ claim: bound, home: "west" }))).toEqual({ actions: [], outcome: "Idle" });
  });
});

describe("a claim that has a member", () => {
  test("is made there, with the class in place of its own", () => {
    const source = assigned("west", undefined, { spec: { storageClassName: "fast" } });
    const classes = { fast: "premium" };
    expect(decide(observed({ claim: source, home: "west", classes }))).toEqual({
      actions: [{ type: "create", member: "west", uid: "uid-1", object: toMemberClaim(source, HOST, classes) }],
      outcome: "Making",
    });
  });

  test("waits while the member hangs, and no other is asked", () => {
    expect(decide(observed({ claim: assigned("west"), home: "west", usable: false }))).toEqual({
      actions: [],
      outcome: "Unreachable",
    });
  });

  test("is told how the member's is, once", () => {
    const there = memberClaim(claim());
    const status = claimStatus(there, undefined);
    const copies = [inMember("west", there)];
    expect(decide(observed({ claim: assigned("west"), home: "west", copies }))).toEqual({
      actions: [{ type: "tell", uid: "uid-1", status }],
      outcome: "InStep",
    });
    expect(decide(observed({ claim: assigned("west", status), home: "west", copies })).actions).toEqual([]);
  });

  test("is not made anew, empty, where somebody deleted it with its data", () => {
    const source = assigned("west", "{}");
    expect(decide(observed({ claim: source, home: "west", ...refusedInWest }))).toEqual({
      actions: [],
      outcome: "Lost",
      requeueAt: LATER_MS,
    });
  });

  test("is not taken for deleted before its member was asked: somebody may have taken its labels off", () => {
    const source = assigned("west", "{}");
    expect(decide(observed({ claim: source, home: "west" }))).toEqual({
      actions: [{ type: "confirmLost", member: "west", claim: source }],
      outcome: "Lost",
    });
  });

  test("is marked again where somebody has taken off whose it is, as long as that is not done again and again", () => {
    const there = memberClaim(claim());
    const status = claimStatus(there, undefined);
    const copies = [inMember("west", memberClaim(claim(), { metadata: { annotations: {} } }))];
    const source = assigned("west", status);
    expect(decide(observed({ claim: source, home: "west", copies })).actions).toEqual([
      { type: "mark", member: "west", uid: "member-uid", annotations: there.metadata.annotations },
    ]);
    const held = { [MARKS]: { reason: "Undone", until: LATER_MS, content: "member-uid" } } as const;
    expect(decide(observed({ claim: source, home: "west", copies, held }))).toEqual({
      actions: [],
      outcome: "InStep",
      requeueAt: LATER_MS,
    });
  });

  test("does not take over what does not say whose it is and was never seen", () => {
    const copies = [inMember("west", memberClaim(claim(), { metadata: { annotations: {} } }))];
    expect(decide(observed({ claim: assigned("west"), home: "west", copies }))).toEqual({
      actions: [],
      outcome: "Replacing",
    });
  });

  test("waits for the end of an earlier one's, which it removes", () => {
    const copies = [inMember("west", memberClaim(earlier))];
    expect(decide(observed({ claim: assigned("west"), home: "west", copies }))).toEqual({
      actions: [sweepOfEarlier],
      outcome: "Replacing",
    });
  });

  test("leaves what a restored host has only forgotten: there is data in it", () => {
    const copies = [{ ...inMember("west", memberClaim(earlier)), held: true }];
    expect(decide(observed({ copies }))).toEqual({ actions: [], outcome: "Removing" });
    expect(decide(observed({ claim: assigned("west"), home: "west", copies }))).toEqual({
      actions: [],
      outcome: "Replacing",
    });
  });

  test("has those of an earlier one removed in other members, too, but not what is being deleted or cannot be reached", () => {
    const there = memberClaim(claim());
    const copies = [
      inMember("west", memberClaim(earlier)),
      inMember("north", memberClaim(earlier, DELETED)),
      inMember("south", memberClaim(earlier), false),
      inMember("east", there),
    ];
    const source = assigned("east", claimStatus(there, undefined));
    expect(decide(observed({ claim: source, home: "east", copies })).actions).toEqual([sweepOfEarlier]);
  });
});

describe("a claim that is to grow", () => {
  const larger = { spec: { resources: { requests: { storage: "2Gi" } } } };
  const there = memberClaim(claim());
  const copies = [inMember("west", there)];

  test("is asked for in the member before anything is told", () => {
    expect(decide(observed({ claim: assigned("west", undefined, larger), home: "west", copies }))).toEqual({
      actions: [{ type: "grow", member: "west", uid: "member-uid", size: "2Gi" }],
      outcome: "Growing",
    });
  });

  test("says why it does not, without asking again and again", () => {
    const content = sizeContent("member-uid", "2Gi");
    const refusal = { home: "west", copies, ...refused(SIZE, content, "the class forbids it") };
    const over = { home: "west", copies, ...refused(SIZE, content, "the class forbids it", NOW_MS) };
    const status = claimStatus(there, "the class forbids it");
    expect(decide(observed({ claim: assigned("west", undefined, larger), ...refusal })).actions).toEqual([
      { type: "tell", uid: "uid-1", status },
    ]);
    expect(decide(observed({ claim: assigned("west", status, larger), ...refusal })).actions).toEqual([]);
    // Asked again by and by, with what was told left as it is meanwhile.
    expect(decide(observed({ claim: assigned("west", status, larger), ...over })).actions).toEqual([
      { type: "grow", member: "west", uid: "member-uid", size: "2Gi" },
    ]);
  });
});

describe("a claim that its member refused", () => {
  test("is free for another, as long as none was ever seen there", () => {
    expect(decide(observed({ claim: assigned("west"), home: "west", ...refusedInWest }))).toEqual({
      actions: [{ type: "unassign", uid: "uid-1", resourceVersion: "7" }],
      outcome: "Refused",
      requeueAt: LATER_MS,
    });
  });

  test("is asked for again after a while, when pods that wait for it may ask, too", () => {
    const over = refused(creationIn("west"), "uid-1", "a quota", NOW_MS);
    const { actions } = decide(observed({ claim: assigned("west"), home: "west", ...over }));
    expect(actions).toMatchObject([{ type: "reconsider", write: creationIn("west") }, { type: "create" }]);
    const reconsidered = [{ type: "reconsider", write: creationIn("west") }];
    expect(decide(observed({ claim: claim(), ...over }))).toEqual({ actions: reconsidered, outcome: "Idle" });
  });

  test("is not refused when it is another claim of that name", () => {
    const earlierRefused = refused(creationIn("west"), "uid-0");
    expect(decide(observed({ claim: assigned("west"), home: "west", ...earlierRefused })).outcome).toBe("Making");
  });

  test.each<[string, Stored<PersistentVolumeClaim>]>([
    ["its data was there", assigned("west", "{}")],
    ["it was never given to it", claim()],
  ])("is left as it is when %s", (_case, source) => {
    expect(decide(observed({ claim: source, home: "west", ...refusedInWest })).actions).toEqual([]);
  });

  test("is in step where it is there after all: a create whose answer was lost", () => {
    const copies = [inMember("west", memberClaim(claim()))];
    expect(decide(observed({ claim: assigned("west"), home: "west", ...refusedInWest, copies })).outcome).toBe(
      "InStep",
    );
  });
});

describe("a claim that is gone", () => {
  test("is removed wherever it can be reached", () => {
    const copies = [inMember("west", memberClaim(earlier)), inMember("east", memberClaim(earlier), false)];
    expect(decide(observed({ copies }))).toEqual({ actions: [sweepOfEarlier], outcome: "Removing" });
  });

  test("is still there while it is being deleted: pods may use it", () => {
    const source = claim({ ...DELETED });
    const copies = [inMember("west", memberClaim(source))];
    expect(decide(observed({ claim: source, home: "west", copies }))).toEqual({ actions: [], outcome: "Removing" });
  });

  test("takes nothing with it that does not say whose it is", () => {
    const nobodys = memberClaim(earlier, { metadata: { annotations: {} } });
    expect(decide(observed({ copies: [inMember("west", nobodys)] })).actions).toEqual([]);
  });
});
