import { expect, test } from "vitest";
import { MEMBERS_ANNOTATION } from "../../../../../src/api/keys.ts";
import { ObjectAdapter } from "../../../../../src/controllers/whole/objects/adapter.ts";
import type { MemberRecord } from "../../../../../src/copies/object-members.ts";
import { FakeClock } from "../../../../support/clock/fake-clock.ts";

const TYPE = {
  metadata: { name: "widgets.example.com" },
  spec: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" },
};

const inWest = (record: Partial<MemberRecord>): Partial<MemberRecord> => ({
  member: "west",
  since: "2026-01-01T00:00:00Z",
  ...record,
});

test.each<[string, Partial<MemberRecord> | undefined, { waiting: number; unhealthy: number }]>([
  ["none without a record", undefined, { waiting: 0, unhealthy: 0 }],
  ["none in step", { state: "InStep", health: "True" }, { waiting: 0, unhealthy: 0 }],
  ["one that waits", { state: "Waiting" }, { waiting: 1, unhealthy: 0 }],
  ["one that is refused", { state: "Refused" }, { waiting: 1, unhealthy: 0 }],
  ["one that is unhealthy", { state: "InStep", health: "False" }, { waiting: 0, unhealthy: 1 }],
  ["none that leaves the member", { state: "Leaving", health: "False" }, { waiting: 0, unhealthy: 0 }],
])("counts objects of other shards by their records: %s", (_, record, counts) => {
  const adapter = new ObjectAdapter(TYPE, {
    rules: { parse: () => ({ ok: true, placement: {} }), namespaceLabels: () => ({}) },
    registry: { members: () => [] },
    clock: new FakeClock(),
    onChange: () => {},
  });
  const annotations = record === undefined ? {} : { [MEMBERS_ANNOTATION]: JSON.stringify([inWest(record)]) };
  const metadata = { name: "one", namespace: "team", uid: "u1", resourceVersion: "1", annotations };
  expect(adapter.counts([{ metadata }])).toEqual(counts);
});
