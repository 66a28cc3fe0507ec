import { describe, expect, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { KubeEvent, Stored } from "../../../../src/api/kubernetes.ts";
import { type WholeObjectFacts, wholeObjectStatus } from "../../../../src/cli/explain/whole-object.ts";
import { wholeObjectText } from "../../../../src/cli/status/whole-text.ts";
import type { MemberRecord } from "../../../../src/copies/object-members.ts";
import { recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";

const session = recordedSession();
const SINCE = "2026-01-02T00:00:00Z";
const NOW = Date.parse(SINCE) + 60_000;
const READY = { type: "Ready", status: "True", reason: "R", message: "fine", lastTransitionTime: SINCE } as const;
const IN_STEP: MemberRecord = { member: "west", state: "InStep", generation: 3, health: "True", since: SINCE };

function type(spec: Partial<DelegatedType["spec"]> = {}, condition = READY): Stored<DelegatedType> {
  const own = { group: "shop.example.com", version: "v1", kind: "Widget", plural: "widgets", ...spec };
  const name = own.group === "" ? own.plural : `${own.plural}.${own.group}`;
  return { metadata: { name, uid: name, resourceVersion: "1" }, spec: own, status: { conditions: [condition] } };
}

function widget(members: readonly MemberRecord[], metadata: object = {}): Stored<AnyObject> {
  const annotations = { "legation.dev/members": JSON.stringify(members) };
  const labels = { "legation.dev/whole": "true" };
  const own = { name: "one", namespace: "team", uid: "u", resourceVersion: "1", generation: 3, labels, annotations };
  return { kind: "Widget", metadata: { ...own, ...metadata } };
}

function shown(facts: Partial<WholeObjectFacts> & Pick<WholeObjectFacts, "object">): string[] {
  const known = { type: type(), told: [], host: host({ west: {}, east: {} }), now: NOW };
  return wholeObjectText(wholeObjectStatus({ ...known, ...facts }), NOW, session.terminal).split("\n");
}

describe("the status of a whole object", () => {
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

  test("does not trust the record of a member that is not ready", () => {
    const lost = { ...READY, status: "False" as const, message: "it hangs" };
    const members = host({ west: { status: { conditions: [lost] } } });
    expect(shown({ object: widget([IN_STEP]), host: members })).toEqual([
      "Widget team/one: whole, in step in 0 of 1 members, generation 3",
      "CLUSTER  STATE         GENERATION  HEALTH  SINCE  WHY",
      "west     NotReachable  3           True    60s    it is not ready: it hangs; it was InStep",
    ]);
  });

  test("counts a member without a record as waiting", () => {
    expect(shown({ object: widget([IN_STEP]) })[2]).toMatch(/^east +Waiting +- +- +-$/);
  });

  test("names troubles with its type and its fields", () => {
    const event = { metadata: { name: "e" }, involvedObject: {}, lastTimestamp: SINCE };
    const told: KubeEvent[] = [{ ...event, reason: "FieldConflict", message: "west: .spec.size" }];
    const failed = { ...READY, status: "False" as const, message: "west: no such type" };
    const lines = shown({ object: widget([IN_STEP]), told, type: { ...type(), status: { conditions: [failed] } } });
    expect(lines.slice(-3)).toEqual([
      `trouble: DelegatedType widgets.shop.example.com: Ready is False: west: no such type (since ${SINCE}, says legation controller)`,
      "  kubectl describe delegatedtypes.legation.dev widgets.shop.example.com",
      `trouble: FieldConflict: west: .spec.size (since ${SINCE})`,
    ]);
  });

  test("names the expression of its type that fails, and why health is not known", () => {
    const invalid = { ...READY, type: "ExpressionsValid", status: "False" as const, message: "spec.health: line 1" };
    const unknown = { ...IN_STEP, health: "Unknown", message: "spec.health: line 1" };
    const lines = shown({
      object: widget([unknown]),
      host: host({ west: {} }),
      type: { ...type(), status: { conditions: [READY, invalid] } },
    });
    expect(lines.slice(2)).toEqual([
      "west     InStep  3           Unknown  60s    spec.health: line 1",
      `trouble: DelegatedType widgets.shop.example.com: ExpressionsValid is False: spec.health: line 1 (since ${SINCE}, says legation controller)`,
      "  kubectl describe delegatedtypes.legation.dev widgets.shop.example.com",
    ]);
  });

  test("says of other objects that they stay on the host, or come back", () => {
    const deletionTimestamp = SINCE;
    expect(shown({ object: widget([], { labels: {}, annotations: {} }) })).toEqual([
      "Widget team/one: stays on the host: it has no label legation.dev/whole, which admission sets for the annotation",
    ]);
    expect(shown({ object: widget([], { deletionTimestamp }) })).toEqual([
      "Widget team/one: whole, taken back from members",
    ]);
  });

  test("of a host without members says so", () => {
    expect(shown({ object: widget([]), host: host({}) }).slice(1)).toEqual([
      "waits: NotPlaced",
      "  this cluster has no members",
    ]);
  });
});
