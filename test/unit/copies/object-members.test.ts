import { describe, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { MEMBERS_ANNOTATION } from "../../../src/api/keys.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import {
  type MemberRecord,
  membersOfObject,
  nextMembers,
  type ObjectMember,
} from "../../../src/copies/object-members.ts";

const EARLIER = "2026-01-01T00:00:00.000Z";
const NOW = "2026-01-02T00:00:00.000Z";
const IN_STEP: MemberRecord = { member: "west", state: "InStep", generation: 3, since: EARLIER };

function object(record?: readonly MemberRecord[] | string, generation = 3): Stored<AnyObject> {
  const text = typeof record === "string" ? record : JSON.stringify(record);
  const annotations = record === undefined ? {} : { [MEMBERS_ANNOTATION]: text };
  return { metadata: { name: "one", uid: "u1", resourceVersion: "1", generation, annotations } };
}

function place(parts: Partial<ObjectMember> = {}, status?: object): ObjectMember {
  const copy = { metadata: { name: "one", uid: "m1", resourceVersion: "5" }, ...(status && { status }) };
  return { member: "west", isUsable: true, isKnown: true, hasCopy: true, inStep: true, isLost: false, copy, ...parts };
}

const MISSING: ObjectMember = {
  member: "west",
  isUsable: true,
  isKnown: true,
  hasCopy: false,
  inStep: false,
  isLost: false,
};

test.each<[string, Stored<AnyObject>, readonly ObjectMember[], readonly MemberRecord[] | undefined]>([
  ["records a copy that is in step", object(), [place()], [{ ...IN_STEP, since: NOW }]],
  ["writes nothing while nothing changes", object([IN_STEP]), [place()], undefined],
  ["records a copy that is to be created", object(), [MISSING], [{ member: "west", state: "Waiting", since: NOW }]],
  [
    "keeps the generation that a copy had, and when it fell behind",
    object([{ ...IN_STEP, state: "Waiting", generation: 2, health: "True" }]),
    [place({ inStep: false })],
    [{ member: "west", state: "Waiting", generation: 2, since: EARLIER }],
  ],
  [
    "records a refusal in the words of the member",
    object([IN_STEP]),
    [{ ...MISSING, refusal: "no such type" }],
    [{ member: "west", state: "Refused", message: "no such type", since: NOW }],
  ],
  [
    "records who keeps changing a copy that is in step otherwise",
    object([IN_STEP]),
    [place({ contested: "tuner keeps changing .spec.size" })],
    [{ ...IN_STEP, state: "Contested", message: "tuner keeps changing .spec.size", since: NOW }],
  ],
  [
    "records who keeps deleting a copy",
    object([IN_STEP]),
    [{ ...MISSING, contested: "another client keeps deleting Widget one" }],
    [{ member: "west", state: "Contested", message: "another client keeps deleting Widget one", since: NOW }],
  ],
  [
    "writes nothing for a refusal that differs in numbers alone",
    object([{ member: "west", state: "Refused", message: "used 3 of 4", since: EARLIER }]),
    [{ ...MISSING, refusal: "used 2 of 4" }],
    undefined,
  ],
  [
    "records the health of copies, and why it is not known",
    object(),
    [
      place({ health: { status: "False" } }),
      place({ member: "east", health: { status: "Unknown", message: "no phase" } }),
    ],
    [
      { ...IN_STEP, member: "east", health: "Unknown", message: "no phase", since: NOW },
      { ...IN_STEP, health: "False", since: NOW },
    ],
  ],
  [
    "keeps the record of a member that does not answer",
    object([IN_STEP]),
    [place({ isUsable: false, inStep: false })],
    undefined,
  ],
  ["leaves out members that do not get the object", object(), [{ ...MISSING, excluded: "not named" }], undefined],
  [
    "records a member that still has a copy",
    object([IN_STEP]),
    [place({ excluded: "not named", inStep: false })],
    [{ ...IN_STEP, state: "Leaving", since: NOW }],
  ],
  [
    "records why a member keeps a copy that is to be deleted",
    object([IN_STEP]),
    [place({ excluded: "not named", inStep: false, deletionRefusal: "denied" })],
    [{ ...IN_STEP, state: "Leaving", message: "denied", since: NOW }],
  ],
  ["drops a member that is gone", object([IN_STEP]), [], []],
])("%s", (_, source, places, expected) => {
  expect(nextMembers(source, places, NOW)).toEqual(expected);
});

describe("a record that cannot be read", () => {
  test.each(["", "{}", '[{"member":"west"}]'])("counts as none: %j", (text) => {
    expect(membersOfObject(object(text))).toBeUndefined();
    expect(nextMembers(object(text), [place()], NOW)).toEqual([{ ...IN_STEP, since: NOW }]);
  });
});
