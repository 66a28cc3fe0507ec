import { expect, test } from "vitest";
import { objectKey, type Stored } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/whole/execute.ts";
import { STATUS } from "../../../../src/controllers/whole/model.ts";
import { ObjectWrites } from "../../../../src/controllers/whole/objects/writes.ts";
import { delegatedKind } from "../../../../src/copies/objects.ts";
import type { KubeError } from "../../../../src/kube/errors.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { answering, listing } from "../../../support/builders/answers.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const spec = { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" };
const object: Stored<object> = { metadata: { name: "one", namespace: "team", uid: "u1", resourceVersion: "7" } };
const key = objectKey(object.metadata);
const KIND = delegatedKind({ metadata: { name: "widgets.example.com" }, spec }, (text) => text);

/** Writes a status five times to a host that answers with this version. */
async function written(resourceVersion: string) {
  const clock = new FakeClock();
  const guard = new WriteGuard<typeof key>({ clock });
  const told: string[] = [];
  const executor = new Executor(new ObjectWrites(KIND, clock), {
    host: fakeClient({ patch: answering({ metadata: { resourceVersion } }) }),
    identity: { id: "h", name: "host" },
    registry: { member: () => undefined },
    recorder: { record: (_object, { reason }) => void told.push(reason) },
    guard,
    isTaken: () => Promise.resolve(true),
    onStatus: () => {},
  });
  const { signal } = new AbortController();
  const context = { key, signal, heardAt: 0, log: createLogger({ level: "silent" }) };
  const write = () => executor.execute({ type: "status", object, shown: { phase: "Up" } }, context);
  const expectation = await write();
  for (let more = 0; more < 4; more += 1) await write();
  return { isDone: expectation?.({ object }), guard, told };
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

const COPY = {
  ...object,
  metadata: {
    ...object.metadata,
    uid: "m1",
    labels: { "legation.dev/host": "h", "legation.dev/copy": "true", "legation.dev/whole": "true" },
    annotations: {
      "legation.dev/owner": JSON.stringify({ cluster: "host", namespace: "team", name: "one", uid: "u1" }),
    },
  },
};

/** Releases an object after its member answers a list like this, and says what its discovery knows. */
async function released(list: () => readonly object[], served: readonly string[] = ["widgets"]) {
  const clock = new FakeClock();
  const told: string[] = [];
  const groups = [{ name: "example.com", versions: [{ version: "v1" }], preferredVersion: { version: "v1" } }];
  const resources = served.map((name) => ({ name }));
  const client = fakeClient({
    list: listing(list),
    raw: async ({ path }) => (path === "/apis" ? { groups } : { resources }),
  });
  let isReleased = false;
  const executor = new Executor(new ObjectWrites(KIND, clock), {
    host: fakeClient({
      patch: answering({ metadata: { resourceVersion: "8" } }, () => {
        isReleased = true;
      }),
    }),
    identity: { id: "h", name: "host" },
    registry: { member: () => member("west", client) },
    recorder: { record: (_object, { reason, message }) => void told.push(`${reason}: ${message}`) },
    guard: new WriteGuard<typeof key>({ clock }),
    isTaken: () => Promise.resolve(true),
    onStatus: () => {},
  });
  const { signal } = new AbortController();
  const context = { key, signal, heardAt: 0, log: createLogger({ level: "silent" }) };
  const release = () => executor.execute({ type: "release", object, members: ["west"] }, context);
  return { release, clock, told, isReleased: () => isReleased };
}

function failing(code: KubeError["code"]): () => never {
  return () => {
    throw kubeError(code, "conversion webhook failed", { verb: "list", resource: "widgets" });
  };
}

test.each<[string, () => readonly object[], readonly string[], boolean]>([
  ["lets an object go that the member does not list", () => [], ["widgets"], true],
  ["keeps an object that the member lists", () => [COPY], ["widgets"], false],
  ["lets an object go whose type the member does not serve", failing("NotFound"), [], true],
])("%s", async (_, list, served, expected) => {
  const { release, isReleased } = await released(list, served);
  await release();
  expect(isReleased()).toBe(expected);
});

test.each<KubeError["code"]>(["ServerError", "AnswerLost", "NotFound", "Forbidden"])(
  "keeps an object while the member's list fails with %s, and tells the author when that lasts",
  async (code) => {
    const { release, isReleased, clock, told } = await released(failing(code));
    await expect(release()).rejects.toThrow("conversion webhook failed");
    await clock.advance(15_000);
    await expect(release()).rejects.toThrow("conversion webhook failed");
    expect(isReleased()).toBe(false);
    expect(told.at(-1)).toBe(
      "DeletionNotConfirmed: west: whether it still has a copy is not known, since its API server does not say: conversion webhook failed",
    );
  },
);
