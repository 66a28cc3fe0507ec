import { describe, expect, test } from "vitest";
import type { PersistentVolumeClaim, Stored } from "../../../../src/api/kubernetes.ts";
import { decide as decideAt } from "../../../../src/controllers/claims/decide.ts";
import {
  CLAIM_MARKS,
  claimCreationIn,
  type Observed,
  SIZE,
  sizeContent,
} from "../../../../src/controllers/claims/model.ts";
import { claimStatus, toMemberClaim } from "../../../../src/copies/claims.ts";
import { type ClaimParts, claim, HOST, memberClaim } from "../../../support/builders/claim.ts";

const NOW = "2026-01-01T00:00:00Z";
const NOW_MS = 1_000;
const LATER_MS = 2_000;
const DELETED = { metadata: { deletionTimestamp: NOW } };

function observed(parts: Partial<Observed> = {}): Observed {
  return {
    host: HOST,
    copies: [],
    usable: true,
    ...parts,
  };
}

function decide(view: Observed): ReturnType<typeof decideAt> {
  return decideAt(view, NOW_MS);
}

/** A write that is refused until later, or was until now. */
function refused(write: string, content: string, message = "a quota", until = LATER_MS): Pick<Observed, "heldWrites"> {
  const why = { message };
  const refusal = { why, reported: why, reportedAt: 0, since: 0 };
  return { heldWrites: { [write]: { reason: "Refused", until, content, refusal } } };
}

const refusedInWest = refused(claimCreationIn("west"), "uid-1");

function inMember(member: string, there: Stored<PersistentVolumeClaim>, usable = true): Observed["copies"][number] {
  return { member, usable, held: false, claim: there };
}

/** Returns the host's claim that is assigned to a member, with this recorded status. */
function assigned(to: string, told?: string, parts: ClaimParts = {}): Stored<PersistentVolumeClaim> {
  const annotations = {
    "legation.dev/cluster": to,
    ...(told === undefined ? {} : { "legation.dev/claim-status": told }),
  };
  return claim({ ...parts, metadata: { ...parts.metadata, annotations } });
}

const earlier = claim({ uid: "uid-0" });
const sweepOfEarlier = { type: "sweep", member: "west", uid: "member-uid", resourceVersion: "70", ownerUid: "uid-0" };

describe("a claim without a member", () => {
  test("is left alone until one of its pods gets a member", () => {
    expect(decide(observed({ claim: claim() }))).toEqual({ actions: [], outcome: "Idle" });
  });

  test("gets the member's name first, and nothing is created before that is written", () => {
    expect(decide(observed({ claim: claim(), home: "west" }))).toEqual({
      actions: [{ type: "assign", member: "west", uid: "uid-1", resourceVersion: "7" }],
      outcome: "Assigning",
    });
  });

  test("gets the name of the member that has it already, if the name was lost", () => {
    const copies = [inMember("west", memberClaim(claim()))];
    expect(decide(observed({ claim: claim(), home: "west", copies })).outcome).toBe("Assigning");
  });

  test("gets none if it is bound on the host", () => {
    const bound = claim({ spec: { volumeName: "pv-1" } });
    expect(decide(observed({ claim: bound, home: "west" }))).toEqual({ actions: [], outcome: "Idle" });
  });
});

describe("a claim that has a member", () => {
  test("is created there, with the class that replaces its own", () => {
    const source = assigned("west", undefined, { spec: { storageClassName: "fast" } });
    const classes = { fast: "premium" };
    expect(decide(observed({ claim: source, home: "west", classes }))).toEqual({
      actions: [{ type: "create", member: "west", uid: "uid-1", object: toMemberClaim(source, HOST, classes) }],
      outcome: "Making",
    });
  });

  test("waits while the member hangs, and no other one is asked", () => {
    expect(decide(observed({ claim: assigned("west"), home: "west", usable: false }))).toEqual({
      actions: [],
      outcome: "Unreachable",
    });
  });

  test("records the member's status, once", () => {
    const there = memberClaim(claim());
    const status = claimStatus(there, undefined);
    const copies = [inMember("west", there)];
    expect(decide(observed({ claim: assigned("west"), home: "west", copies }))).toEqual({
      actions: [{ type: "tell", uid: "uid-1", status }],
      outcome: "InStep",
    });
    expect(decide(observed({ claim: assigned("west", status), home: "west", copies })).actions).toEqual([]);
  });

  test("is not created anew, empty, after it was deleted with its data", () => {
    const source = assigned("west", "{}");
    expect(decide(observed({ claim: source, home: "west", ...refusedInWest }))).toEqual({
      actions: [],
      outcome: "Lost",
      requeueAt: LATER_MS,
    });
  });

  test("is not taken for deleted before its member was asked: it may have lost its labels only", () => {
    const source = assigned("west", "{}");
    expect(decide(observed({ claim: source, home: "west" }))).toEqual({
      actions: [{ type: "confirmLost", member: "west", claim: source }],
      outcome: "Lost",
    });
  });

  test("gets a lost owner annotation back, unless that is removed repeatedly", () => {
    const there = memberClaim(claim());
    const status = claimStatus(there, undefined);
    const copies = [inMember("west", memberClaim(claim(), { metadata: { annotations: {} } }))];
    const source = assigned("west", status);
    expect(decide(observed({ claim: source, home: "west", copies })).actions).toEqual([
      { type: "mark", member: "west", uid: "member-uid", annotations: there.metadata.annotations },
    ]);
    const heldWrites = { [CLAIM_MARKS]: { reason: "Undone", until: LATER_MS, content: "member-uid" } } as const;
    expect(decide(observed({ claim: source, home: "west", copies, heldWrites }))).toEqual({
      actions: [],
      outcome: "InStep",
      requeueAt: LATER_MS,
    });
  });

  test("does not adopt a claim without owner that was never seen", () => {
    const copies = [inMember("west", memberClaim(claim(), { metadata: { annotations: {} } }))];
    expect(decide(observed({ claim: assigned("west"), home: "west", copies }))).toEqual({
      actions: [],
      outcome: "Replacing",
    });
  });

  test("waits for the end of an earlier claim of the name, which it deletes", () => {
    const copies = [inMember("west", memberClaim(earlier))];
    expect(decide(observed({ claim: assigned("west"), home: "west", copies }))).toEqual({
      actions: [sweepOfEarlier],
      outcome: "Replacing",
    });
  });

  test("leaves a claim that a restored host does not know, since it holds data", () => {
    const copies = [{ ...inMember("west", memberClaim(earlier)), held: true }];
    expect(decide(observed({ copies }))).toEqual({ actions: [], outcome: "Removing" });
    expect(decide(observed({ claim: assigned("west"), home: "west", copies }))).toEqual({
      actions: [],
      outcome: "Replacing",
    });
  });

  test("deletes earlier claims in other members, too, except terminating and unreachable ones", () => {
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

  test("grows in the member before its status is recorded", () => {
    expect(decide(observed({ claim: assigned("west", undefined, larger), home: "west", copies }))).toEqual({
      actions: [{ type: "grow", member: "west", uid: "member-uid", size: "2Gi" }],
      outcome: "Growing",
    });
  });

  test("records why it did not grow, without constant retries", () => {
    const content = sizeContent("member-uid", "2Gi");
    const refusal = { home: "west", copies, ...refused(SIZE, content, "the class forbids it") };
    const over = { home: "west", copies, ...refused(SIZE, content, "the class forbids it", NOW_MS) };
    const status = claimStatus(there, "the class forbids it");
    expect(decide(observed({ claim: assigned("west", undefined, larger), ...refusal })).actions).toEqual([
      { type: "tell", uid: "uid-1", status },
    ]);
    expect(decide(observed({ claim: assigned("west", status, larger), ...refusal })).actions).toEqual([]);
    // Retried now and then; the recorded status stays meanwhile.
    expect(decide(observed({ claim: assigned("west", status, larger), ...over })).actions).toEqual([
      { type: "grow", member: "west", uid: "member-uid", size: "2Gi" },
    ]);
  });
});

describe("a claim that its member refused", () => {
  test("is free for another member, as long as none was ever seen there", () => {
    expect(decide(observed({ claim: assigned("west"), home: "west", ...refusedInWest }))).toEqual({
      actions: [{ type: "unassign", uid: "uid-1", resourceVersion: "7" }],
      outcome: "Refused",
      requeueAt: LATER_MS,
    });
  });

  test("is tried again after a while, also for pods that wait for it", () => {
    const over = refused(claimCreationIn("west"), "uid-1", "a quota", NOW_MS);
    const { actions } = decide(observed({ claim: assigned("west"), home: "west", ...over }));
    expect(actions).toMatchObject([{ type: "reconsider", write: claimCreationIn("west") }, { type: "create" }]);
    const reconsidered = [{ type: "reconsider", write: claimCreationIn("west") }];
    expect(decide(observed({ claim: claim(), ...over }))).toEqual({ actions: reconsidered, outcome: "Idle" });
  });

  test("is not refused when it is another claim of that name", () => {
    const earlierRefused = refused(claimCreationIn("west"), "uid-0");
    expect(decide(observed({ claim: assigned("west"), home: "west", ...earlierRefused })).outcome).toBe("Making");
  });

  test.each<[string, Stored<PersistentVolumeClaim>]>([
    ["its data was there", assigned("west", "{}")],
    ["it was never given to it", claim()],
  ])("is left as it is when %s", (_case, source) => {
    expect(decide(observed({ claim: source, home: "west", ...refusedInWest })).actions).toEqual([]);
  });

  test("is in step if it exists there after all, as after a lost response", () => {
    const copies = [inMember("west", memberClaim(claim()))];
    expect(decide(observed({ claim: assigned("west"), home: "west", ...refusedInWest, copies })).outcome).toBe(
      "InStep",
    );
  });
});

describe("a claim that is gone", () => {
  test("is deleted in each reachable member", () => {
    const copies = [inMember("west", memberClaim(earlier)), inMember("east", memberClaim(earlier), false)];
    expect(decide(observed({ copies }))).toEqual({ actions: [sweepOfEarlier], outcome: "Removing" });
  });

  test("stays while it is being deleted, since pods may use it", () => {
    const source = claim({ ...DELETED });
    const copies = [inMember("west", memberClaim(source))];
    expect(decide(observed({ claim: source, home: "west", copies }))).toEqual({ actions: [], outcome: "Removing" });
  });

  test("leaves claims without an owner annotation", () => {
    const nobodys = memberClaim(earlier, { metadata: { annotations: {} } });
    expect(decide(observed({ copies: [inMember("west", nobodys)] })).actions).toEqual([]);
  });
});
