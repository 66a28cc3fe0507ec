import { describe, expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { decide, servesPods } from "../../../../src/controllers/dependencies/decide.ts";
import { digested, withoutContent } from "../../../../src/controllers/dependencies/digest.ts";
import type { Digested, Observed } from "../../../../src/controllers/dependencies/model.ts";
import { type DependencyObject, toCopy } from "../../../../src/copies/dependencies.ts";

const host = { id: "host-id", name: "cern" };
const now = Date.parse("2026-02-03T04:05:06Z");
const ref = { member: "west", kind: "Secret", namespace: "team", name: "a" } as const;

function source(parts: DependencyObject = {}): Stored<Digested> {
  const { metadata, ...rest } = parts;
  const object = { type: "Opaque", data: { k: "dg==" }, ...rest };
  return digested("Secret", {
    metadata: { name: "a", namespace: "team", uid: "source-uid", resourceVersion: "7", ...metadata },
    ...object,
  });
}

function copyOf(of: Stored<Digested>, metadata: object = {}): Stored<Digested> {
  const copy = toCopy("Secret", of, host);
  return withoutContent(
    digested("Secret", {
      ...copy,
      metadata: { ...copy.metadata, name: "a", uid: "copy-uid", resourceVersion: "3", ...metadata },
    }),
  );
}

function see(parts: Partial<Observed> = {}): Observed {
  return {
    ref,
    host,
    usable: true,
    source: { state: "present", object: source() },
    used: true,
    mounted: true,
    idleSince: now,
    ...parts,
  };
}

function outcome(parts: Partial<Observed>): string[] {
  const { actions, outcome } = decide(see(parts), now);
  return [outcome, ...actions.map(({ type }) => type)];
}

const idle = { used: false, mounted: false };
const changed = { state: "present", object: source({ data: { k: "bmV3" } }) } as const;

describe("a copy that is not there", () => {
  test.each<[string, Partial<Observed>, string[]]>([
    ["is made when it is used", {}, ["Copying", "create"]],
    ["is not made for a delegate whose proxy does not name it", { used: false }, ["Idle"]],
    ["is not made when its source is missing", { source: { state: "missing" } }, ["Idle"]],
    ["waits for its source to be read", { source: { state: "unknown" } }, ["Idle"]],
    ["waits for its member", { usable: false }, ["Unreachable"]],
    ["waits after a refusal", { refused: { until: now + 1 } }, ["Refused"]],
    [
      "does not wait after a refusal of what its source was before",
      { refused: { until: now + 1, ofEarlier: true } },
      ["Copying", "create"],
    ],
    ["is left out for a while when somebody there keeps deleting it", { contestedUntil: now + 1 }, ["Contested"]],
    ["is thought of again some time after a refusal", { refused: { until: now } }, ["Refused", "reconsider"]],
  ])("%s", (_, parts, expected) => {
    expect(outcome(parts)).toEqual(expected);
  });
});

describe("a copy that is there", () => {
  test.each<[string, Partial<Observed>, string[]]>([
    ["is left alone when it is like its source", { copy: copyOf(source()) }, ["InStep"]],
    ["follows its source", { copy: copyOf(source()), source: changed }, ["Copying", "patch"]],
    [
      "stands for a source that was made anew",
      { copy: copyOf(source({ metadata: { uid: "earlier" } })) },
      ["Copying", "patch"],
    ],
    [
      "is made anew when its type has to change",
      { copy: copyOf(source({ type: "example.com/t" })) },
      ["Replacing", "delete"],
    ],
    ["is made anew when it is immutable", { copy: copyOf(source({ immutable: true })) }, ["Replacing", "delete"]],
    ["stays when its source is gone", { copy: copyOf(source()), source: { state: "missing" } }, ["InStep"]],
    [
      "stays as it is for a delegate whose proxy is gone",
      { copy: copyOf(source()), source: changed, used: false },
      ["InStep"],
    ],
    [
      "is waited for when it goes",
      { copy: copyOf(source(), { deletionTimestamp: "2026-02-03T04:05:06Z" }) },
      ["Removing"],
    ],
    ["stays a while without users", { copy: copyOf(source()), ...idle }, ["Idle"]],
    ["goes when that is over", { copy: copyOf(source()), ...idle, idleSince: now - 10_000 }, ["Removing", "delete"]],
    [
      "is not deleted again while a delegate without a proxy mounts it",
      { copy: copyOf(source()), leaving: true, used: false },
      ["InStep"],
    ],
    [
      "is deleted for certain and made anew when it is used and its deletion may still happen",
      { copy: copyOf(source()), leaving: true },
      ["Replacing", "delete"],
    ],
    [
      "is not changed again soon after a refusal",
      { copy: copyOf(source()), source: changed, refused: { until: now + 1 } },
      ["Refused"],
    ],
    [
      "may be changed some time after a refusal",
      { copy: copyOf(source()), source: changed, refused: { until: now } },
      ["Refused", "reconsider"],
    ],
    [
      "is as good as ever when what was refused is not wanted any more",
      { copy: copyOf(source()), refused: { until: now + 1 } },
      ["InStep", "reconsider"],
    ],
    [
      "stays when its member cannot be asked",
      { copy: copyOf(source()), ...idle, idleSince: 0, usable: false },
      ["Unreachable"],
    ],
  ])("%s", (_, parts, expected) => {
    expect(outcome(parts)).toEqual(expected);
  });

  test("is removed only as it was seen", () => {
    expect(decide(see({ copy: copyOf(source()), ...idle, idleSince: 0 }), now).actions).toEqual([
      { type: "delete", ref, uid: "copy-uid", resourceVersion: "3" },
    ]);
  });
});

test("a copy whose source is gone stays for pods that need it, and goes from those that can do without", () => {
  const gone = { copy: copyOf(source()), source: { state: "missing" } } as const;
  expect(outcome({ ...gone, required: true })).toEqual(["InStep"]);
  expect(outcome({ ...gone, required: false })).toEqual(["Removing", "delete"]);
  expect(outcome({ ...gone, required: false, source: { state: "unknown" } })).toEqual(["InStep"]);
});

describe("a copy with annotations of its source, as versions before made them,", () => {
  const spread = { "example.com/spread": "*" };
  const object = source({ immutable: true, metadata: { name: "a", annotations: spread } });
  const made = copyOf(object);
  const forwarded = JSON.stringify({ labels: [], annotations: Object.keys(spread) });
  const annotations = { ...made.metadata.annotations, ...spread, theirs: "1", "legation.dev/forwarded": forwarded };
  const before: Stored<Digested> = { ...made, metadata: { ...made.metadata, annotations } };
  const there = { copy: before, source: { state: "present", object } } as const;

  test("loses them by one patch of its metadata, and keeps what the member added", () => {
    const [action, ...others] = decide(see(there), now).actions;
    expect(others).toEqual([]);
    const patch = action?.type === "patch" ? (action.patch as { path: string; value: object }[]) : [];
    expect(patch.map(({ path }) => path)).not.toContain("/data");
    const left = patch.find(({ path }) => path === "/metadata/annotations")?.value ?? {};
    expect(left).toEqual({ ...made.metadata.annotations, theirs: "1" });
    const after = { ...before, metadata: { ...before.metadata, annotations: left as Record<string, string> } };
    expect(outcome({ ...there, copy: after })).toEqual(["InStep"]);
  });

  test("serves pods meanwhile, unless it is an account, which webhooks read when pods are created", () => {
    expect(servesPods("Secret", before, object, host)).toBe(true);
    expect(servesPods("Secret", before, source({ data: { k: "bmV3" } }), host)).toBe(false);
    expect(servesPods("Secret", before, source({ metadata: { name: "a", uid: "later" } }), host)).toBe(false);
    expect(servesPods("ServiceAccount", { ...before, digest: object.digest }, object, host)).toBe(true);
    const other = { ...object, metadata: { ...object.metadata, annotations: { role: "another" } } };
    expect(servesPods("ServiceAccount", before, other, host)).toBe(false);
  });
});

describe("an immutable copy", () => {
  const immutable = (metadata: object = {}): Stored<Digested> =>
    source({ data: {}, immutable: true, metadata: { name: "a", ...metadata } });

  test.each<[string, Stored<Digested>]>([
    ["a label has changed", immutable({ labels: { "helm.sh/chart": "web-2" } })],
    ["it was made anew with the same content", immutable({ uid: "later" })],
  ])("is patched in its metadata and nowhere else when of its source no more than %s", (_, object) => {
    const { actions } = decide(see({ copy: copyOf(immutable()), source: { state: "present", object } }), now);
    expect(actions).toMatchObject([
      {
        type: "patch",
        patch: [
          { path: "/metadata/uid" },
          { path: "/metadata/resourceVersion" },
          { path: "/metadata/labels" },
          { path: "/metadata/annotations" },
        ],
      },
    ]);
  });
});
