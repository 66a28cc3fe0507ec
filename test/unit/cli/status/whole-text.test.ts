import { describe, expect, test } from "vitest";
import type { MemberRecord } from "../../../../src/copies/object-members.ts";
import { IN_STEP, SINCE, shown, widget } from "../explain/shown-whole.ts";
import { host } from "../simulation/host.ts";

describe("the text of a whole object", () => {
  test("has what each member has of it", () => {
    const refused: MemberRecord = { member: "east", state: "Refused", message: "no such type", since: SINCE };
    expect(shown({ object: widget([refused, IN_STEP]) })).toEqual([
      "Widget team/one: whole, in step in 1 of 2 members, generation 3",
      "CLUSTER  STATE    GENERATION  HEALTH  SINCE  WHY",
      "east     Refused  -           -       60s    no such type",
      "west     InStep   3           True    60s",
    ]);
  });

  test("says why a member does not get it, and what the members report", () => {
    const annotations = {
      "legation.dev/clusters": "west",
      "legation.dev/members": JSON.stringify([IN_STEP]),
    };
    const object = { ...widget([], { annotations }), status: { conditions: [{ type: "Ready", status: "True" }] } };
    expect(shown({ object })).toEqual([
      "Widget team/one: whole, in step in 1 of 1 members, generation 3",
      "CLUSTER  STATE     GENERATION  HEALTH  SINCE  WHY",
      "east     Excluded  -           -       -      not named by legation.dev/clusters",
      "west     InStep    3           True    60s",
      "Ready is True",
    ]);
  });

  test("of a host without members says so", () => {
    expect(shown({ object: widget([]), host: host({}) }).slice(1)).toEqual([
      "waits: NotPlaced",
      "  no member cluster has joined: see `legation join`",
    ]);
  });
});
