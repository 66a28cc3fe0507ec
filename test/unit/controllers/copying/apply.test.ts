import { expect, test } from "vitest";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { applyCopy } from "../../../../src/controllers/copying/apply.ts";
import type { Judgement } from "../../../../src/controllers/copying/requests.ts";
import type { LeftFields } from "../../../../src/copies/kind.ts";
import type { Patch } from "../../../../src/kube/client.ts";
import type { KubeError, StatusCause } from "../../../../src/kube/errors.ts";
import { configMaps, type Resource } from "../../../../src/kube/resources.ts";
import { answerOf } from "../../../support/builders/answers.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

type Apply = Extract<Patch, { readonly type: "apply" }>;

function conflict(fields: Readonly<Record<string, string>>, isCut = false): KubeError {
  const causes = Object.entries(fields).map(([field, manager]): StatusCause => {
    return { type: "FieldManagerConflict", field, message: `conflict with "${manager}" using v1` };
  });
  return kubeError("Conflict", "Apply failed", { details: { causes, ...(isCut ? { isCut } : {}) } });
}

/** Applies a copy in a member that first refuses it so, where `judgements` says what becomes of fields of others. */
async function applying(errors: readonly KubeError[], judgements: Readonly<Record<string, Judgement>>) {
  const remaining = [...errors];
  const sent: Apply[] = [];
  const left: LeftFields[] = [];
  const judged: string[] = [];
  const client = fakeClient({
    patch: async <T extends KubeObject>(_resource: Resource<T>, _ref: unknown, patch: Patch) => {
      if (patch.type === "apply") sent.push(patch);
      const error = remaining.shift();
      if (error !== undefined) throw error;
      return answerOf<T>({ metadata: { name: "settings", uid: "u", resourceVersion: "4" } });
    },
  });
  const changed = await applyCopy<KubeObject>({
    member: member("west", client),
    resource: configMaps,
    ref: { namespace: "team", name: "settings" },
    fieldManager: "legation-host",
    isNew: false,
    newlyRetained: [],
    judge: ({ field, manager }) => {
      judged.push(`${field} of ${manager}`);
      return judgements[field] ?? "givenUp";
    },
    object: (fields) => {
      left.push(fields);
      return { metadata: { resourceVersion: "3" } };
    },
    signal: new AbortController().signal,
  });
  return { changed, left, judged, forced: sent.map(({ force = false }) => force), sent };
}

test("forces what is to be restored, without what is left to others, and only on the version that it was judged by", async () => {
  const fields = { ".data.a": "tuner", ".data.b": "tuner", ".data.c": "other" };
  const { changed, left, forced, judged, sent } = await applying([conflict(fields)], {
    ".data.a": "restored",
    ".data.b": "lost",
  });
  expect(forced).toEqual([false, true]);
  expect(left.at(-1)).toEqual({ givenUp: [".data.c"], lost: [".data.b"] });
  expect(judged).toEqual([".data.a of tuner", ".data.b of tuner", ".data.c of other"]);
  expect(sent.map(({ body }) => body)).toEqual(Array(2).fill({ metadata: { resourceVersion: "3" } }));
  expect(changed).toMatchObject({
    type: "changed",
    resourceVersion: "4",
    judged: {
      restored: [{ field: ".data.a", manager: "tuner" }],
      lost: [{ field: ".data.b", manager: "tuner" }],
      givenUp: [{ field: ".data.c", manager: "other" }],
    },
  });
});

test("never forces where nothing is to be restored", async () => {
  const { changed, forced } = await applying([conflict({ ".data.a": "tuner" })], {});
  expect([changed.type, forced]).toEqual(["changed", [false, false]]);
});

test("takes nothing by force from a copy that has changed meanwhile", async () => {
  const errors = [conflict({ ".data.a": "tuner" }), kubeError("Conflict", "another version")];
  expect((await applying(errors, { ".data.a": "restored" })).changed).toEqual({ type: "moved" });
});

test("is refused where the answer does not name all fields, since force would take the others, too", async () => {
  const { changed, forced } = await applying([conflict({ ".data.a": "tuner" }, true)], { ".data.a": "restored" });
  expect([changed.type, forced]).toEqual(["refused", [false]]);
});
