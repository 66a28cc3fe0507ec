import { expect, test } from "vitest";
import type { ConfigMap, Stored } from "../../../../src/api/kubernetes.ts";
import { CopyWriter } from "../../../../src/controllers/copying/copy-writer.ts";
import type { DeleteOptions } from "../../../../src/kube/client.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import { configMaps } from "../../../../src/kube/resources.ts";
import { fakeClient } from "../../cli/client.ts";

const KEY = "west/team/settings";
const copy: Stored<ConfigMap> = {
  metadata: { name: "settings", namespace: "team", uid: "c", resourceVersion: "3" },
};

/** A writer whose member answers deletions with these errors first. */
function writing(errors: readonly KubeErrorCode[]) {
  const remaining = [...errors];
  const sent: unknown[] = [];
  const stay: string[] = [];
  const client = fakeClient({
    delete: async (_resource, ref, { signal: _signal, ...preconditions }: DeleteOptions = {}) => {
      sent.push({ ...ref, ...preconditions });
      const code = remaining.shift();
      if (code !== undefined) throw new KubeError("no", { code, cluster: "west", verb: "delete", resource: "x" });
    },
  });
  const writer = new CopyWriter<string>({ onStays: (key: string) => stay.push(key), clock: { now: () => 0 } } as never);
  const deletion = { member: { client }, resource: configMaps, copy: copy.metadata } as never;
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
])("a copy whose deletion %s is on its way out, or not", async (_, errors, expected) => {
  const { writer, stay, remove } = writing(errors);
  for (let attempt = 0; attempt === 0 || attempt < errors.length; attempt += 1) await remove().catch(() => {});
  expect(writer.isLeaving(KEY, copy)).toBe(expected);
  expect([...writer.leaving(KEY, [copy])]).toEqual(expected ? ["c"] : []);
  // Who waits for one that stays need not wait any longer.
  expect(stay).toEqual(expected ? [] : [KEY]);
});

test("a copy is deleted only as it was seen, and one that is another by now is no failure", async () => {
  const { sent, remove } = writing(["Conflict", "NotFound"]);
  await remove();
  await remove();
  const seen = { namespace: "team", name: "settings", uid: "c", resourceVersion: "3" };
  expect(sent).toEqual([seen, seen]);
});

test.each<KubeErrorCode>(["AnswerLost", "Forbidden", "NotSent"])("%s is told to who asked", async (code) => {
  await expect(writing([code]).remove()).rejects.toMatchObject({ code });
});

test("forgets a copy when it is gone", async () => {
  const { writer, remove } = writing([]);
  await remove();
  expect([...writer.leaving(KEY, [])]).toEqual([]);
  expect(writer.isLeaving(KEY, copy)).toBe(false);
  await remove();
  writer.forget(KEY);
  expect(writer.isLeaving(KEY, copy)).toBe(false);
});

/** A writer whose member refuses what is written with the fields `refused`, in these words. */
function refusing(refused: string, words: string) {
  const sent: unknown[] = [];
  const answer = async (wanted: object) => {
    sent.push(wanted);
    if (refused in wanted) {
      throw new KubeError(words, { code: "Unprocessable", cluster: "west", verb: "write", resource: "configmaps" });
    }
    return { metadata: { uid: "c", resourceVersion: "4" } };
  };
  const client = fakeClient({
    create: (async (_resource: object, object: object) => answer(object)) as never,
    patch: (async (_resource: object, _ref: object, { body: [operation] }: { body: object[] }) =>
      answer(operation ?? {})) as never,
    list: (async () => ({ items: [] })) as never,
  });
  const writer = new CopyWriter<string>({
    memberNamespaces: { createIn: (_member: object, _name: string, _signal: object, make: () => unknown) => make() },
    hostId: "host-id",
    clock: { now: () => 0 },
  } as never);
  const wanted = {
    member: { name: "west", client, answerOf: (promise: Promise<unknown>) => promise },
    resource: configMaps,
    ref: { namespace: "team", name: "settings" },
    signal: new AbortController().signal,
  };
  return {
    sent,
    make: (instead?: (detail: string) => object | undefined) =>
      writer.make({ ...wanted, object: { odd: 1 }, instead } as never),
    change: (instead?: (detail: string) => object[] | undefined) =>
      writer.change({ ...wanted, patch: [{ odd: 1 }], instead } as never),
  };
}

test("retries a refused write in the alternative form for its message", async () => {
  const plain = (detail: string): object | undefined => (detail === "odd field" ? { plain: 1 } : undefined);
  const { sent, make, change } = refusing("odd", "odd field");
  expect(await make(plain)).toEqual({ type: "made", uid: "c" });
  expect(await change(() => [{ plain: 1 }])).toEqual({ type: "changed", resourceVersion: "4" });
  expect(sent).toEqual([{ odd: 1 }, { plain: 1 }, { odd: 1 }, { plain: 1 }]);
});

test("reports a refusal without an alternative, and one of the alternative", async () => {
  const { sent, make, change } = refusing("odd", "quota");
  expect(await make()).toEqual({ type: "refused", detail: "quota" });
  expect(await make(() => undefined)).toEqual({ type: "refused", detail: "quota" });
  expect(await change(() => [{ odd: 2 }])).toEqual({ type: "refused", detail: "quota" });
  expect(sent).toEqual([{ odd: 1 }, { odd: 1 }, { odd: 1 }, { odd: 2 }]);
});
