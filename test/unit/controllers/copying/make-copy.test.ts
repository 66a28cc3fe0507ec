import { describe, expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { type CopySpec, findCopy, makeCopy } from "../../../../src/controllers/copying/writer.ts";
import { copyMetadata } from "../../../../src/copies/copy-metadata.ts";
import type { Patch } from "../../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { configMaps, customResourceDefinitions, secrets } from "../../../../src/kube/resources.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { namespacesThere } from "../fleet.ts";

const source = { metadata: { name: "settings", namespace: "team", uid: "source-uid", resourceVersion: "1" } };
const copy = there(copyMetadata({ source, host: HOST, type: configMaps }));

function there(metadata: object): Stored<KubeObject> {
  return { metadata: { name: "settings", namespace: "team", uid: "copy-uid", resourceVersion: "3", ...metadata } };
}

/** Creates the copy in a member that answers with this code, and has this object in its place. */
async function made(
  code: KubeErrorCode | undefined,
  has?: Stored<KubeObject>,
  {
    detail = "no",
    patched = async () => ({}),
    ...more
  }: Partial<CopySpec<KubeObject>> & { detail?: string; patched?: (patch: Patch) => Promise<object> } = {},
) {
  const create = async () => {
    if (code === undefined) return { metadata: { uid: "new-uid" } };
    throw kubeError(code, detail, { resource: "configmaps" });
  };
  const client = fakeClient({
    create,
    list: async () => ({ items: has === undefined ? [] : [has] }),
    patch: async (_resource, _ref, patch) => await patched(patch),
  });
  let awaited: unknown;
  const answerOf = <T>(answer: Promise<T>): Promise<T> => {
    awaited = answer;
    return answer;
  };
  const result = makeCopy({
    member: member("west", client, { answerOf }),
    namespaces: namespacesThere,
    hostId: HOST.id,
    resource: configMaps,
    ref: { namespace: "team", name: "settings" },
    object: { metadata: copyMetadata({ source, host: HOST, type: configMaps }) },
    signal: new AbortController().signal,
    ...more,
  });
  await result.catch(() => {});
  // Users that wait for the member's answer count this request.
  expect(awaited).toBeInstanceOf(Promise);
  return result;
}

describe("the result of a copy's create", () => {
  const refused = { type: "refused", error: expect.objectContaining({ detail: "no" }) };
  const found = { type: "found", uid: "copy-uid" };
  test.each<[string, KubeErrorCode | undefined, Stored<KubeObject> | undefined, object]>([
    ["is a new copy", undefined, undefined, { type: "made", uid: "new-uid" }],
    ["is an existing copy", "AlreadyExists", copy, found],
    ["is an existing copy, although the member refuses another one", "Forbidden", copy, found],
    ["is a copy that was there a moment ago", "AlreadyExists", undefined, { type: "gone" }],
    ["is a foreign object", "AlreadyExists", there({}), { type: "foreign" }],
    [
      "is a foreign object, if it is another host's copy",
      "AlreadyExists",
      there(copyMetadata({ source, host: { ...HOST, id: "x" }, type: configMaps })),
      { type: "foreign" },
    ],
    [
      "is a foreign object, if a controller derived it from a copy of another type",
      "AlreadyExists",
      there(copyMetadata({ source, host: HOST, type: secrets })),
      { type: "foreign" },
    ],
    [
      "is a foreign object, if a controller derived it from a copy of another name",
      "AlreadyExists",
      there(
        copyMetadata({ source: { metadata: { ...source.metadata, name: "other" } }, host: HOST, type: configMaps }),
      ),
      { type: "foreign" },
    ],
    [
      "is a foreign object, if a controller made it for its own object with the copy's labels",
      "AlreadyExists",
      there({
        labels: copyMetadata({ source, host: HOST, type: configMaps }).labels,
        ownerReferences: [{ apiVersion: "example.com/v1", kind: "Widget", name: "settings", uid: "widget-uid" }],
      }),
      { type: "foreign" },
    ],
    ["is the member's refusal", "Forbidden", undefined, refused],
    ["is a refusal while its namespace terminates", "NotFound", undefined, refused],
  ])("%s", async (_, code, has, expected) => {
    expect(await made(code, has)).toEqual(expected);
  });

  test("is an error when a starting API server denies it, unless the copy exists", async () => {
    const denial = 'configmaps is forbidden: User "legation" cannot create resource "configmaps" in API group ""';
    await expect(made("Forbidden", undefined, { detail: denial })).rejects.toMatchObject({ code: "Forbidden" });
    expect(await made("Forbidden", copy, { detail: denial })).toEqual(found);
  });

  const { labels, annotations } = copyMetadata({ source, host: HOST, type: configMaps });
  const other = copyMetadata({
    source: { metadata: { ...source.metadata, uid: "other" } },
    host: HOST,
    type: configMaps,
  });

  test("gets its marks back, and keeps the record of its last apply", async () => {
    const bodies: unknown[] = [];
    const record = (digest: string) => ({ "legation.dev/applied": JSON.stringify({ digest, type: "configmaps" }) });
    const object = { metadata: { labels, annotations: { ...annotations, ...record("new") } } };
    for (const its of [record("old"), {}]) {
      const has = there({ annotations: { ...annotations, ...its } });
      await made("AlreadyExists", has, { object, patched: async ({ body }) => ({ sent: bodies.push(body) }) });
    }
    expect(bodies).toMatchObject([
      { metadata: { annotations: record("old") } },
      { metadata: { annotations: record("new") } },
    ]);
  });

  test.each<[string, object, boolean]>([
    ["has lost its labels", { annotations }, true],
    ["has lost its annotations", { labels }, true],
    ["has lost both, so that its owner is unknown,", {}, false],
    ["has an annotation that names another object", { annotations: other.annotations }, false],
    ["has the label of another host", { annotations, labels: { "legation.dev/host": "x" } }, false],
  ])("is a copy that gets its marks back, or a foreign object, if it %s: %o", async (_, metadata, isMarked) => {
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
  ] as const)("is the member's answer if it refuses the marks: %s", async (code, expected) => {
    const patched = () => Promise.reject(kubeError(code, "no", { verb: "patch", resource: "configmaps" }));
    expect(await made("AlreadyExists", there({ labels }), { patched })).toEqual(expected);
  });

  test("is an error without a response", async () => {
    await expect(made("AnswerLost", copy)).rejects.toMatchObject({ code: "AnswerLost" });
  });
});

describe("a copy that lost the label of whole objects", () => {
  const whole = { labels: { "legation.dev/whole": "true" }, annotations: {} };
  const marks = copyMetadata({ source, host: HOST, type: configMaps });
  const object = { metadata: { ...marks, labels: { ...marks.labels, ...whole.labels } } };

  test.each([
    ["a ConfigMap, which pods may use", configMaps, false],
    ["a definition, which may follow", customResourceDefinitions, false],
    ["a custom resource", { ...configMaps, group: "example.com", plural: "widgets", kind: "Widget" }, true],
  ] as const)("counts as there, and gets it back, for %s: %s", async (_, resource, expected) => {
    const patches: Patch[] = [];
    const client = fakeClient({
      list: async () => ({ items: [copy] }),
      patch: async (_resource, _ref, patch) => {
        patches.push(patch);
        return {};
      },
    });
    const ref = { namespace: "team", name: "settings" };
    const target = { member: member("west", client), resource, ref, signal: new AbortController().signal };
    const wanted: Omit<CopySpec<KubeObject>, "namespaces"> = { ...target, object, hostId: HOST.id };
    expect(await findCopy(wanted)).toBe(expected);
    expect(patches).toHaveLength(expected ? 1 : 0);
  });

  test("is foreign where its definition follows, when it is created", async () => {
    const more = { resource: customResourceDefinitions, object, ref: { namespace: "", name: "settings" } };
    expect(await made("AlreadyExists", copy, more)).toEqual({ type: "foreign" });
  });
});

describe("whether a member has a copy that lost its marks", () => {
  const { labels, annotations } = copyMetadata({ source, host: HOST, type: configMaps });
  const whole = { labels: { ...labels, "legation.dev/whole": "true" }, annotations };
  const widgets = { ...configMaps, group: "example.com", plural: "widgets", kind: "Widget" };
  const conflict = kubeError("Conflict", "the object has been modified", { verb: "patch", resource: "widgets" });
  const refusal = kubeError("Forbidden", "no", { verb: "patch", resource: "widgets" });

  /** Asks a member whose object is each of these at one list after the other, and which answers patches in turn. */
  async function asked(versions: readonly (Stored<KubeObject> | undefined)[], answers: readonly (Error | undefined)[]) {
    const sent: unknown[] = [];
    let lists = 0;
    const client = fakeClient({
      list: async () => {
        const version = versions[lists++];
        return { items: version === undefined ? [] : [version] };
      },
      patch: async (_resource, _ref, { body }) => {
        const error = answers[sent.push((body as Stored<KubeObject>).metadata.resourceVersion) - 1];
        if (error !== undefined) throw error;
        return {};
      },
    });
    const ref = { namespace: "team", name: "settings" };
    const signal = new AbortController().signal;
    const west = member("west", client);
    const wanted = { member: west, resource: widgets, ref, object: { metadata: whole }, hostId: HOST.id, signal };
    return { has: await findCopy(wanted), sent };
  }

  test.each([
    ["all labels", { annotations }],
    ["the label of whole objects", { labels, annotations }],
    ["the name of its owner", { labels: whole.labels }],
  ])("is asked again if another client changed it meanwhile: %s", async (_, metadata) => {
    const [before, after] = [there(metadata), there({ ...metadata, resourceVersion: "4" })];
    expect(await asked([before, after], [conflict, undefined])).toEqual({ has: true, sent: ["3", "4"] });
    expect(await asked([before, undefined], [conflict])).toEqual({ has: false, sent: ["3"] });
  });

  test.each([
    ["all labels", { annotations }],
    ["the label of whole objects", { labels, annotations }],
  ])("is not known if the member refuses the marks: %s", async (_, metadata) => {
    await expect(asked([there(metadata)], [refusal])).rejects.toBe(refusal);
  });
});
