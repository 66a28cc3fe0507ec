import { describe, expect, test } from "vitest";
import {
  leastPrepared,
  type Needs,
  needsState,
  type Preparation,
  preparationIn,
  refusedIn,
  whyUnprepared,
} from "../../../src/placement/needs.ts";

const refused = { refused: "Secret app is another's" };
const missing = { state: "missing", reason: "FailedMount", message: 'secret "app" not found' } as const;
const there = (preparation: Preparation): Needs => ({ state: "there", in: () => preparation });

describe("what a pod needs", () => {
  test.each<[string, Needs | undefined, Preparation]>([
    ["is prepared if it is nothing", undefined, "prepared"],
    ["is not prepared before the host has it", missing, "unprepared"],
    ["is not prepared before the host is read", { state: "awaited" }, "unprepared"],
    ["is as far as its copies are", there("unprepared"), "unprepared"],
    ["is refused if the member refuses it", there(refused), refused],
  ])("%s", (_, needs, expected) => {
    expect(preparationIn(needs, "west")).toEqual(expected);
    expect(refusedIn(needs, "west")).toBe(expected === refused ? refused.refused : undefined);
  });

  test.each<[string, readonly Preparation[], Preparation]>([
    ["prepared without any", [], "prepared"],
    ["unprepared if one is", ["prepared", "unprepared"], "unprepared"],
    ["refused if one is, whatever the others are", ["unprepared", refused, "prepared"], refused],
  ])("of several is %s", (_, all, expected) => {
    expect(leastPrepared(all)).toEqual(expected);
  });

  test("is plain data without its copies", () => {
    expect([needsState(undefined), needsState(missing), needsState(there("prepared"))]).toEqual([
      undefined,
      missing,
      { state: "there" },
    ]);
  });
});

describe("an author is told why a pod is not prepared", () => {
  const said = (needs: Parameters<typeof whyUnprepared>[0], preparation?: Preparation) =>
    whyUnprepared(needs, { name: "west", ...(preparation === undefined ? {} : { preparation }) });

  test("by what the host lacks, in the kubelet's words", () => {
    expect(said(missing, refused)).toEqual({ reason: missing.reason, message: missing.message });
  });

  test("by the member that refuses it", () => {
    expect(said({ state: "there" }, refused)).toMatchObject({
      reason: "RefusedByMember",
      message: "west: Secret app is another's",
      refusals: [{ cluster: "west" }],
    });
  });

  test("not while it only takes time", () => {
    expect([said({ state: "there" }, "unprepared"), said(undefined)]).toEqual([undefined, undefined]);
  });
});
