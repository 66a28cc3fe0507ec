import { describe, expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { makeCopy } from "../../../../src/controllers/copying/writer.ts";
import { copyMetadata } from "../../../../src/copies/copy.ts";
import type { Patch } from "../../../../src/kube/client.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import { configMaps } from "../../../../src/kube/resources.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { fakeClient } from "../../cli/client.ts";

const source = { metadata: { name: "settings", namespace: "team", uid: "source-uid", resourceVersion: "1" } };
const copy = there(copyMetadata(source, HOST));

function there(metadata: object): Stored<KubeObject> {
  return { metadata: { name: "settings", namespace: "team", uid: "copy-uid", resourceVersion: "3", ...metadata } };
}

/** Makes the copy in a member that answers so, and has this in its place. */
async function made(
  code: KubeErrorCode | undefined,
  has?: Stored<KubeObject>,
  { detail = "no", patched = async () => ({}) }: { detail?: string; patched?: (patch: Patch) => Promise<object> } = {},
) {
  const create = async () => {
    if (code === undefined) return { metadata: { uid: "new-uid" } };
    throw new KubeError(detail, { code, cluster: "west", verb: "create", resource: "configmaps" });
  };
  const client = fakeClient({
    create: create as never,
    list: (async () => ({ items: has === undefined ? [] : [has] })) as never,
    patch: async (_resource, _ref, patch) => (await patched(patch)) as never,
  });
  let awaited: unknown;
  const answerOf = (answer: Promise<unknown>) => {
    awaited = answer;
    return answer;
  };
  const result = makeCopy({
    member: { name: "west", client, answerOf },
    namespaces: {
      createIn: (_member: object, _namespace: string, _signal: object, make: () => unknown) => make(),
    },
    hostId: HOST.id,
    resource: configMaps,
    ref: { namespace: "team", name: "settings" },
    object: { metadata: copyMetadata(source, HOST) },
    signal: new AbortController().signal,
  } as never);
  await result.catch(() => {});
  // Whoever asks whether the member answers counts the wait for this.
  expect(awaited).toBeInstanceOf(Promise);
  return result;
}

describe("of a copy that is to be made, it is known afterwards", () => {
  const refused = { type: "refused", error: expect.objectContaining({ detail: "no" }) };
  const found = { type: "found", uid: "copy-uid" };
  test.each<[string, KubeErrorCode | undefined, Stored<KubeObject> | undefined, object]>([
    ["that it is", undefined, undefined, { type: "made", uid: "new-uid" }],
    ["that it was made before", "AlreadyExists", copy, found],
    ["that it was made before, where the member refuses one more", "Forbidden", copy, found],
    ["that it was there a moment ago", "AlreadyExists", undefined, { type: "gone" }],
    ["that somebody else's is there", "AlreadyExists", there({}), { type: "foreign" }],
    [
      "that another host's is there",
      "AlreadyExists",
      there(copyMetadata(source, { ...HOST, id: "x" })),
      { type: "foreign" },
    ],
    ["that the member refuses it", "Forbidden", undefined, refused],
    ["that it cannot be: its namespace ends", "NotFound", undefined, refused],
  ])("%s", async (_, code, has, expected) => {
    expect(await made(code, has)).toEqual(expected);
  });

  test("nothing when an API server that has just been started denies it, unless it is there", async () => {
    const denial = 'configmaps is forbidden: User "legation" cannot create resource "configmaps" in API group ""';
    await expect(made("Forbidden", undefined, { detail: denial })).rejects.toMatchObject({ code: "Forbidden" });
    expect(await made("Forbidden", copy, { detail: denial })).toEqual(found);
  });

  const { labels, annotations } = copyMetadata(source, HOST);
  const other = copyMetadata({ metadata: { ...source.metadata, uid: "other" } }, HOST);

  test.each<[string, object, boolean]>([
    ["has lost its labels", { annotations }, true],
    ["has lost its annotations", { labels }, true],
    ["has lost both, and so may be anybody's,", {}, false],
    ["has an annotation that names another object", { annotations: other.annotations }, false],
    ["has the label of another host", { annotations, labels: { "legation.dev/host": "x" } }, false],
  ])("that it gets its marks back where it %s: %o", async (_, metadata, isMarked) => {
    const patches: Patch[] = [];
    const patched = async (patch: Patch): Promise<object> => {
      patches.push(patch);
      return {};
    };
    const result = await made("AlreadyExists", there(metadata), { patched });
    expect(result).toEqual(isMarked ? { type: "made", uid: "copy-uid" } : { type: "foreign" });
    const body = { metadata: { uid: "copy-uid", resourceVersion: "3", labels, annotations } };
    expect(patches).toEqual(isMarked ? [{ type: "merge", body }] : []);
  });

  test.each([
    ["Conflict", { type: "gone" }],
    ["Forbidden", refused],
  ] as const)("what the member says when it does not take its marks back: %s", async (code, expected) => {
    const patched = () =>
      Promise.reject(new KubeError("no", { code, cluster: "west", verb: "patch", resource: "configmaps" }));
    expect(await made("AlreadyExists", there({ labels }), { patched })).toEqual(expected);
  });

  test("nothing when no answer came", async () => {
    await expect(made("AnswerLost", copy)).rejects.toMatchObject({ code: "AnswerLost" });
  });
});
