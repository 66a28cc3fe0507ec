import { describe, expect, test } from "vitest";
import {
  isFutile,
  purposeOf,
  statusPurpose,
  undone,
  writeAgainAt,
} from "../../../../../src/controllers/delegation/decision/write-purpose.ts";
import { boundProxy, delegateOf, memory } from "../world.ts";

const now = 1_000_000;
const patch = { body: { metadata: { uid: "delegate-uid", labels: { tier: "web" } } } };

describe("the purpose of a forward", () => {
  const proxy = boundProxy();
  const delegate = delegateOf(proxy);

  test("is what the pod is to be, so that other patches for it have the same", () => {
    const other = { body: { metadata: { uid: "delegate-uid", labels: { tier: "web", app: "x" } } } };
    expect(purposeOf(proxy, delegate, patch)?.wanted).toEqual(purposeOf(proxy, delegate, other)?.wanted);
    expect(purposeOf(proxy, delegate, patch)?.parts).toContain("tier");
  });

  test("is another one once the author changes the pod", () => {
    const changed = boundProxy({ metadata: { labels: { tier: "db" } } });
    expect(purposeOf(changed, delegate, patch)?.wanted).not.toEqual(purposeOf(proxy, delegate, patch)?.wanted);
  });

  test("is none for a resize, which no other client can undo unseen", () => {
    expect(purposeOf(proxy, delegate, { ...patch, subresource: "resize" })).toBeUndefined();
  });
});

test("the purpose of a status names its fields and conditions apart", () => {
  const conditions = [{ type: "Ready", status: "True" }];
  const { parts, wanted } = statusPurpose({ metadata: { uid: "u" }, status: { phase: "Running", conditions } });
  expect(parts).toEqual(["phase", "Ready"]);
  expect(Object.keys(wanted)).toEqual(["field phase", "condition Ready"]);
});

describe("a write", () => {
  const purpose = { parts: ["tier"], wanted: { pod: "a" } };

  test.each([
    ["is futile while it is held", JSON.stringify(patch), true],
    ["is futile while another writer undoes its purpose", undone(purpose), true],
    ["is not futile while another one is held", "status", false],
  ])("%s", (_, write, expected) => {
    const held = memory({ ineffective: { [write]: now + 1 } });
    expect(isFutile(held, patch, purpose, now)).toBe(expected);
    expect(isFutile(held, patch, purpose, now + 1)).toBe(false);
  });

  test("is looked at again when a hold ends, or once its own hold would have", () => {
    const held = memory({ ineffective: { status: now + 5 } });
    expect(writeAgainAt(held, [], now)).toBe(now + 5);
    expect(writeAgainAt(held, [], now + 5)).toBeUndefined();
    expect(writeAgainAt(memory(), [{ type: "status" }], now)).toBeGreaterThan(now);
    expect(writeAgainAt(memory(), [{ type: "bind" }], now)).toBeUndefined();
  });
});
