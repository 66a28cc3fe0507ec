import { expect, test } from "vitest";
import type { ConfigMap, KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { CopyWriter } from "../../../../src/controllers/copying/writer.ts";
import type { DeleteOptions, Patch } from "../../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { configMaps, type Resource } from "../../../../src/kube/resources.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { answerOf, listing } from "../../../support/builders/answers.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { namespacesThere } from "../fleet.ts";

const KEY = "west/team/settings";
const copy: Stored<ConfigMap> = {
  metadata: { name: "settings", namespace: "team", uid: "c", resourceVersion: "3" },
};

function writerOf(onStays: (key: string) => void = () => {}): CopyWriter<string> {
  const clock = new FakeClock(0);
  const guard = new WriteGuard({ clock });
  return new CopyWriter({ memberNamespaces: namespacesThere, hostId: HOST.id, guard, clock, onStays });
}

/** Returns a writer whose member answers deletions with these errors first. */
function writing(errors: readonly KubeErrorCode[]) {
  const remaining = [...errors];
  const sent: unknown[] = [];
  const stay: string[] = [];
  const client = fakeClient({
    delete: async (_resource, ref, { signal: _signal, ...preconditions }: DeleteOptions = {}) => {
      sent.push({ ...ref, ...preconditions });
      const code = remaining.shift();
      if (code !== undefined) throw kubeError(code, "no", { verb: "delete", resource: "x" });
    },
  });
  const signal = new AbortController().signal;
  const writer = writerOf((key) => stay.push(key));
  const deletion = { member: member("west", client), resource: configMaps, copy, signal };
  return { writer, sent, stay, remove: () => writer.delete(KEY, deletion) };
}

test.each<[string, KubeErrorCode[], boolean]>([
  ["was answered", [], true],
  ["got no answer", ["AnswerLost"], true],
  ["failed in the server", ["ServerError"], true],
  ["found nothing", ["NotFound"], true],
  ["was refused", ["Forbidden"], false],
  ["met another version", ["Conflict"], false],
  ["was not sent", ["NotSent"], false],
  ["got no answer, and was not sent again", ["AnswerLost", "NotSent"], true],
  ["got no answer, and was put off the next time", ["AnswerLost", "TooManyRequests"], true],
  ["got no answer, and met another version the next time", ["AnswerLost", "Conflict"], false],
])("counts a copy as leaving or staying after its deletion %s", async (_, errors, expected) => {
  const { writer, stay, remove } = writing(errors);
  for (let attempt = 0; attempt === 0 || attempt < errors.length; attempt += 1) await remove().catch(() => {});
  expect(writer.isLeaving(KEY, copy)).toBe(expected);
  // Users that wait for one that stays wait no longer.
  expect(stay).toEqual(expected ? [] : [KEY]);
});

test("deletes a copy with preconditions, and accepts that another one is there by now", async () => {
  const { sent, remove } = writing(["Conflict", "NotFound"]);
  await remove();
  await remove();
  const seen = { namespace: "team", name: "settings", uid: "c", resourceVersion: "3" };
  expect(sent).toEqual([seen, seen]);
});

test.each<KubeErrorCode>(["AnswerLost", "NotSent"])("reports %s to the caller", async (code) => {
  await expect(writing([code]).remove()).rejects.toMatchObject({ code });
});

test("returns a refusal of the deletion", async () => {
  expect(await writing(["Forbidden"]).remove()).toMatchObject({ type: "refused", error: { code: "Forbidden" } });
});

test("forgets a copy when it is gone", async () => {
  const { writer, remove } = writing([]);
  await remove();
  expect(writer.isLeaving(KEY, { metadata: { ...copy.metadata, uid: "another" } })).toBe(false);
  writer.forget(KEY);
  expect(writer.isLeaving(KEY, copy)).toBe(false);
});

test("gives up newly retained fields before it applies the rest", async () => {
  const entry = { manager: "legation-host", operation: "Apply", fieldsType: "FieldsV1" };
  const scaler = { manager: "scaler", operation: "Update", fieldsV1: { "f:spec": { "f:size": {} } } };
  const fieldsV1 = { "f:spec": { "f:color": {}, "f:replicas": {} } };
  const there = { metadata: { ...copy.metadata, managedFields: [{ ...entry, fieldsV1 }, scaler] }, spec: {} };
  const patches: unknown[] = [];
  const client = fakeClient({
    list: listing([there]),
    patch: async <T extends KubeObject>(_resource: Resource<T>, _ref: unknown, { type, body }: Patch) => {
      patches.push({ type, body });
      return answerOf<T>({ metadata: { ...copy.metadata, resourceVersion: "4" } });
    },
  });
  const writer = writerOf();
  const changed = await writer.apply(KEY, {
    member: member("west", client),
    resource: configMaps,
    ref: { namespace: "team", name: "settings" },
    fieldManager: "legation-host",
    isNew: false,
    newlyRetained: ["/spec/replicas"],
    judge: () => "givenUp",
    object: () => ({ metadata: {} }),
    signal: new AbortController().signal,
  });
  expect(changed).toMatchObject({ type: "changed" });
  const kept = { ...entry, fieldsV1: { "f:spec": { "f:color": {} } } };
  expect(patches).toMatchObject([
    { type: "json", body: expect.arrayContaining([expect.objectContaining({ value: [kept, scaler] })]) },
    { type: "apply", body: { metadata: { resourceVersion: "4" } } },
  ]);
});
