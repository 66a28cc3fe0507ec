import { describe, expect, test } from "vitest";
import type { KubeEvent } from "../../../../src/api/kubernetes.ts";
import { host } from "../simulation/host.ts";
import { IN_STEP, READY, SINCE, shown, type, widget } from "./shown-whole.ts";

describe("the status of a whole object", () => {
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
});
