import { expect, test } from "vitest";
import { objectKey, type Stored } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/whole-objects/execute.ts";
import { STATUS } from "../../../../src/controllers/whole-objects/model.ts";
import { delegatedKind } from "../../../../src/copies/objects.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../../cli/client.ts";

const spec = { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" };
const object: Stored<object> = { metadata: { name: "one", namespace: "team", uid: "u1", resourceVersion: "7" } };
const key = objectKey(object.metadata);

/** Writes a status five times to a host that answers with this version. */
async function written(resourceVersion: string) {
  const clock = new FakeClock();
  const guard = new WriteGuard<typeof key>({ clock });
  const told: string[] = [];
  const executor = new Executor({
    host: fakeClient({ patch: async () => ({ metadata: { resourceVersion } }) as never }),
    identity: { id: "h", name: "host" },
    registry: { member: () => undefined },
    recorder: { record: (_object, { reason }) => void told.push(reason) },
    guard,
    clock,
    kind: delegatedKind({ metadata: { name: "widgets.example.com" }, spec }, (text) => text),
    onStatus: () => {},
  });
  const { signal } = new AbortController();
  const context = { key, signal, heardAt: 0, log: createLogger({ level: "silent" }) };
  const write = () => executor.execute({ type: "status", object, status: { phase: "Up" } }, context);
  const expectation = await write();
  for (let more = 0; more < 4; more += 1) await write();
  return { isDone: expectation?.({ object, isRetired: false, places: [] }), guard, told };
}

test("holds the one status of which the host stores no change, and tells nobody that it is contested", async () => {
  const { isDone, guard, told } = await written("7");
  expect(isDone, "waits for no event").toBe(true);
  expect(told).toEqual([]);
  expect(guard.mayWrite(key, STATUS, JSON.stringify({ phase: "Up" }))).toBe(false);
  expect(guard.mayWrite(key, STATUS, JSON.stringify({ phase: "Down" }))).toBe(true);
});

test("holds any status that another manager undoes each time, and tells the author", async () => {
  const { isDone, guard, told } = await written("8");
  expect(isDone, "waits for the next version").toBe(false);
  expect(told).toEqual(["StatusContested"]);
  expect(guard.mayWrite(key, STATUS, JSON.stringify({ phase: "Down" }))).toBe(false);
});
