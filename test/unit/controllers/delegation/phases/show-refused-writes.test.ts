import { describe, expect, test } from "vitest";
import { REFUSED_CONDITION } from "../../../../../src/api/keys.ts";
import type { PodCondition } from "../../../../../src/api/kubernetes.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { boundProxy, delegateOf, type LastingRefusal, member, memory, world } from "../world.ts";

const now = 1_000_000;
const since = "2026-01-02T03:04:05Z";
const refusal: LastingRefusal = {
  reason: "DeletionRefused",
  message: "west: no",
  since,
  at: now,
  until: now + 360_000,
};
const shown = { type: REFUSED_CONDITION, status: "True", reason: refusal.reason, message: refusal.message };
const deleting = { deletionTimestamp: since, deletionGracePeriodSeconds: 30 };

const typesOf = (actions: readonly { readonly type: string }[]): string[] => actions.map(({ type }) => type);

function decided(parts: {
  readonly refused?: readonly LastingRefusal[];
  readonly conditions?: PodCondition[];
  readonly ineffective?: readonly object[];
}) {
  const { refused = [], conditions = [], ineffective = [] } = parts;
  const bound = boundProxy();
  const proxy = {
    ...bound,
    metadata: { ...bound.metadata, ...deleting },
    status: { ...bound.status, conditions },
  };
  const remembered = memory({
    refused: new Map(refused.map((each, index) => [`${index}`, each])),
    ineffective: new Map(ineffective.map((patch) => [JSON.stringify(patch), now + 60_000])),
  });
  const delegate = delegateOf(bound);
  return { ...decide(world(proxy, [member("west", { delegate })], { memory: remembered }), now), proxy };
}

describe("a proxy with a refused write", () => {
  test("has a condition for it, which is written before writes that may be refused again", () => {
    const { actions, requeueAt } = decided({ refused: [refusal] });
    expect(actions).toMatchObject([
      { type: "status", patch: { status: { conditions: [{ ...shown, lastTransitionTime: since }] } } },
    ]);
    expect(requeueAt).toBeLessThanOrEqual(refusal.until);
  });

  test("has all refusals in one condition", () => {
    const [first] = decided({ refused: [refusal, { ...refusal, message: "east: no" }] }).actions;
    expect(first).toMatchObject({ patch: { status: { conditions: [{ message: "west: no; east: no" }] } } });
  });

  test("needs no write once it has the condition", () => {
    expect(typesOf(decided({ refused: [refusal], conditions: [shown] }).actions)).toEqual(["delete"]);
  });

  test.each([
    ["is done", []],
    ["has not been refused again", [{ ...refusal, until: now }]],
  ])("loses the condition when the write %s", (_, refused) => {
    const [first] = decided({ refused, conditions: [shown] }).actions;
    expect(first).toMatchObject({ patch: { status: { conditions: [{ type: REFUSED_CONDITION, $patch: "delete" }] } } });
  });

  test("is not held up if the condition itself is refused", () => {
    const { proxy } = decided({});
    const conditions = [{ ...shown, lastTransitionTime: since }];
    const patch = { metadata: { uid: proxy.metadata.uid }, status: { conditions } };
    expect(typesOf(decided({ refused: [refusal], ineffective: [patch] }).actions)).toEqual(["delete"]);
  });
});
