import { expect, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { Contests } from "../../../../src/controllers/copying/contests.ts";
import { copyKey } from "../../../../src/controllers/copying/model.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { delegatedKind } from "../../../../src/copies/objects.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const REF = { member: "west", kind: "Widget", namespace: "team", name: "one" };
const KEY = copyKey(REF);
const FIELD = { field: ".spec.size", manager: "tuner" };
const source: Stored<AnyObject> = {
  metadata: { name: "one", namespace: "team", uid: "u1", resourceVersion: "1" },
  spec: { size: 1, color: "red" },
};

function contesting(drift?: "Restore" | "Report") {
  const more = drift === undefined ? {} : { drift };
  const spec = { group: "example.com", version: "v1", kind: "Widget", plural: "widgets", ...more };
  const type: DelegatedType = { metadata: { name: "widgets.example.com" }, spec };
  const kind = delegatedKind(type, (text) => text);
  const clock = new FakeClock();
  const told: string[] = [];
  const guard = new WriteGuard<typeof KEY>({ clock });
  const record = (_about: object, { reason, message }: { reason: string; message: string }): void => {
    told.push(`${reason} ${message}`);
  };
  const contests = new Contests<AnyObject>({ guard, recorder: { record } });
  const stored = (made: AnyObject): Stored<AnyObject> => {
    return { ...made, metadata: { name: "one", ...made.metadata, uid: "m1", resourceVersion: "5" } };
  };
  const left = (lost: readonly string[]): Stored<AnyObject> =>
    stored(kind.applied.object(copy, { source, host: HOST, left: { givenUp: [], lost } }));
  const copy = stored(toCopy(kind, source, HOST));
  const signal = new AbortController().signal;
  const context = { key: KEY, signal, heardAt: 0, log: createLogger({ level: "silent" }) };
  return {
    clock,
    told,
    copy,
    left,
    /** Lets another manager take the field, and applies the copy. */
    take: (field = FIELD) => {
      const judgement = contests.judge(KEY, kind.applied, { source, copy, field });
      const judged = { restored: [], givenUp: [], lost: [], [judgement]: [field] };
      contests.settle(kind, { ref: REF, source, copy }, judged, context);
      return judgement;
    },
    until: (there: Stored<AnyObject>) => contests.until(KEY, kind.applied, there),
    words: (there: Stored<AnyObject>, isInStep = true) => contests.words(KEY, kind.applied, { copy: there, isInStep }),
    write: (type: "create" | "patch", manager?: string) =>
      contests.written(kind, { type, ref: REF, source, manager }, context),
  };
}

test("puts a field back twice, and then leaves it to the manager that the author is told of", async () => {
  const { clock, told, take, left, until, words } = contesting();
  expect([take(), take()]).toEqual(["restored", "restored"]);
  expect(told).toEqual([]);
  expect(take()).toBe("lost");
  expect(told).toEqual([
    "FieldContested west: fields that another manager there keeps changing are left alone for ten minutes: .spec.size (tuner); " +
      "name them in retain of the DelegatedType if they are that manager's",
  ]);
  const there = left([".spec.size"]);
  expect([until(there), words(there)]).toEqual([clock.now() + 600_000, "tuner keeps changing .spec.size"]);
  expect(take({ field: ".spec.color", manager: "tuner" })).toBe("restored");
  await clock.advance(600_000);
  expect(take()).toBe("restored");
  expect(words(left([]))).toBeUndefined();
  expect(take()).toBe("lost");
});

test("puts fields back at once that an earlier controller has left to another manager", () => {
  const { until, left } = contesting();
  expect(until(left([".spec.size"]))).toBe(0);
  expect(until(left([]))).toBeUndefined();
});

test("tells once of fields that another manager takes from a type that reports drift", () => {
  const { told, take, left, until, words } = contesting("Report");
  expect([take(), take()]).toEqual(["lost", "lost"]);
  expect(told[0]).toBe(
    "FieldConflict west: fields that another manager there owns stay as they are: .spec.size (tuner)",
  );
  const there = left([".spec.size"]);
  expect([until(there), words(there)]).toEqual([undefined, undefined]);
});

test("gives up fields that were never applied", () => {
  const { told, take } = contesting();
  expect(take({ field: ".spec.shape", manager: "tuner" })).toBe("givenUp");
  expect(told).toEqual([expect.stringMatching(/^FieldConflict .*: \.spec\.shape \(tuner\)$/)]);
});

test.each([
  ["patch", "tuner", "tuner keeps changing Widget one"],
  ["patch", undefined, "another client keeps changing Widget one"],
  ["create", undefined, "another client keeps deleting Widget one"],
] as const)("tells the author after five writes by %s whom the copy is left to: %s", (type, manager, expected) => {
  const { told, copy, words, write } = contesting();
  for (let times = 0; times < 5; times += 1) write(type, manager);
  expect(told).toEqual([`CopyContested west: ${expected} there: the copy is left as it is for ten minutes`]);
  expect([words(copy, false), words(copy)]).toEqual([expected, undefined]);
});
