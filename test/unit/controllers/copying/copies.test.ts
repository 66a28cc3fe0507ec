import { describe, expect, onTestFinished, test } from "vitest";
import type { Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { Copies, type CopiesOptions, type WatchedKind } from "../../../../src/controllers/copying/copies.ts";
import { copyMetadata } from "../../../../src/copies/copy-metadata.ts";
import { isPolicyCopyName, policyCopyName } from "../../../../src/copies/network-policies.ts";
import { delegatedKind } from "../../../../src/copies/objects.ts";
import { configMaps, secrets } from "../../../../src/kube/resources.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { quietClient } from "../quiet-client.ts";

const source = { metadata: { name: "a", namespace: "team", uid: "source-uid", resourceVersion: "1" } };
const ours = copyMetadata({ source, host: HOST, type: secrets });

function inMember(metadata: object): Stored<Secret> {
  return { metadata: { name: "a", namespace: "team", uid: "copy-uid", resourceVersion: "3", ...metadata } };
}

/** Returns the copies in a member with this Secret, and its requests; kinds of `failing` cannot be listed. */
async function following(
  has: Stored<Secret>,
  {
    failing = [],
    knownByLabels = false,
    ...parts
  }: Partial<CopiesOptions<Secret>> & {
    readonly failing?: readonly string[];
    readonly knownByLabels?: boolean;
  } = {},
) {
  const clock = new FakeClock();
  const asked: (string | undefined)[] = [];
  const read: string[] = [];
  const client = quietClient([], {
    list: async ({ plural }, { labelSelector } = {}) => {
      asked.push(labelSelector);
      if (failing.includes(plural)) {
        throw kubeError("Forbidden", "not allowed", { verb: "list", resource: plural });
      }
      return { items: plural === "secrets" ? [has] : [], resourceVersion: "3", size: 1 };
    },
  });
  const west = member("west", client);
  const copies = new Copies<Secret>({
    hostId: HOST.id,
    kinds: new Map<string, WatchedKind<Secret>>([
      ["Secret", { resource: secrets, ...(knownByLabels ? { knownByLabels: () => true } : {}) }],
      ["ConfigMap", { resource: configMaps }],
    ]),
    onCopy: () => {},
    onRead: ({ name }, kind) => read.push(`${name} ${kind}`),
    clock,
    log: createLogger({ level: "silent" }),
    ...parts,
  });
  onTestFinished(() => copies.stop());
  copies.follow([west]);
  await clock.advance(10);
  return { west, copies, asked, read, found: copies.of(west, "Secret", "team", has.metadata.name) };
}

describe("recognition of copies", () => {
  const { annotations, labels } = ours;
  const unowned = inMember({ labels });
  const ofConfigMap = copyMetadata({ source, host: HOST, type: configMaps });
  const ofOldForm = {
    labels,
    annotations: {
      ...annotations,
      "legation.dev/owner": JSON.stringify({ cluster: HOST.name, namespace: "team", name: "a", uid: "source-uid" }),
    },
  };
  test.each<[string, Stored<Secret>, boolean | undefined, boolean]>([
    ["accepts what this host created", inMember(ours), undefined, true],
    [
      "rejects another host's copy",
      inMember(copyMetadata({ source, host: { ...HOST, id: "other" }, type: secrets })),
      undefined,
      false,
    ],
    ["rejects a foreign object, whatever its annotations", inMember({ annotations }), undefined, false],
    ["rejects an object with the labels alone, since controllers carry them over", unowned, undefined, false],
    ["accepts the labels alone for a kind with unique names", unowned, true, true],
    ["accepts a copy of 0.1, whose owner annotation has no kind", inMember(ofOldForm), undefined, true],
    ["rejects what a controller derived from a copy of another type", inMember(ofConfigMap), undefined, false],
    ["rejects what a controller derived under another name", inMember({ ...ours, name: "b" }), undefined, false],
    [
      "rejects other objects of this host",
      inMember({ annotations, labels: { "legation.dev/host": HOST.id } }),
      true,
      false,
    ],
  ])("%s", async (_, object, isUnowned, expected) => {
    const { found } = await following(object, isUnowned === undefined ? {} : { knownByLabels: isUnowned });
    expect(found).toBe(expected ? object : undefined);
  });
});

test("does not take for a pod's copy what a controller derived from one, under another name or in another namespace", async () => {
  const derived = inMember({ ...ours, name: "derived" });
  const { west, copies } = await following(derived);
  expect(copies.of(west, "Secret", "team", "derived")).toBeUndefined();
  const elsewhere = await following(inMember({ ...ours, namespace: "other" }));
  expect(elsewhere.copies.of(elsewhere.west, "Secret", "other", source.metadata.name)).toBeUndefined();
});

describe("recognition of copies by their labels", () => {
  const policyName = policyCopyName(source.metadata, HOST.id);
  const named = { resource: secrets, knownByLabels: isPolicyCopyName, copyName: policyCopyName };
  const plain = { resource: secrets, knownByLabels: () => true };
  const { labels } = ours;
  test.each<[string, WatchedKind<Secret>, object, boolean]>([
    ["accepts a copy", plain, ours, true],
    ["accepts a copy that lost its owner annotation", plain, { labels }, true],
    ["rejects what a controller derived under another name", plain, { ...ours, name: "b" }, false],
    ["rejects what a controller derived in another namespace", plain, { ...ours, namespace: "b" }, false],
    ["accepts a copy with a name of its own", named, { ...ours, name: policyName }, true],
    ["accepts one that lost its owner annotation", named, { labels, name: policyName }, true],
    ["rejects what was derived under another name than the copy's", named, { ...ours, name: "b" }, false],
    ["rejects what was derived under the source's name", named, ours, false],
    ["rejects what was derived with the labels alone", named, { labels, name: "b" }, false],
  ])("%s", async (_, kind, metadata, expected) => {
    const object = inMember(metadata);
    const { west, copies } = await following(object, { kinds: new Map([["Secret", kind]]) });
    const { namespace = "", name } = object.metadata;
    expect(copies.of(west, "Secret", namespace, name)).toBe(expected ? object : undefined);
  });
});

test.each<[string, object, object, boolean]>([
  ["that was made", {}, {}, true],
  ["that was the member's own before", { adopted: true }, {}, false],
  ["that stays when its source is deleted", { orphan: true }, {}, false],
  ["of another type", { type: "configmaps" }, {}, false],
  ["that a controller of the member owns", {}, { ownerReferences: [{ kind: "Gear" }] }, false],
])(
  "knows a whole object's copy without its owner annotation by its record, or not: one %s",
  async (_, record, metadata, expected) => {
    const applied = { "legation.dev/applied": JSON.stringify({ digest: "d", names: "n", type: "secrets", ...record }) };
    const object = inMember({ labels: ours.labels, annotations: applied, ...metadata });
    const kind = delegatedKind(
      { metadata: { name: "secrets" }, spec: { plural: "secrets", version: "v1", kind: "Secret" } },
      (text) => text,
    );
    const { west, copies } = await following(object, { kinds: new Map([["Secret", kind as WatchedKind<Secret>]]) });
    const ref = { kind: "Secret", namespace: "team", name: "a" };
    expect(copies.of(west, "Secret", "team", "a")).toBeUndefined();
    expect(copies.ownerless(west, ref)).toBe(expected ? object : undefined);
  },
);

test("reads nothing of a member but this host's copies", async () => {
  const { asked } = await following(inMember(ours));
  expect(new Set(asked)).toEqual(new Set([`legation.dev/host=${HOST.id},legation.dev/copy=true`]));
});

test("reads no objects to which controllers of the member carry a copy's labels over, where its kind says so", async () => {
  const kind = { resource: secrets, copies: { labelSelector: "made-by=legation.dev" } };
  const { asked } = await following(inMember(ours), { kinds: new Map([["Secret", kind]]) });
  expect(asked).toEqual([`legation.dev/host=${HOST.id},legation.dev/copy=true,made-by=legation.dev`]);
});

describe("the copies of a member", () => {
  test("are known when all of their kinds have been read", async () => {
    const { west, copies, read } = await following(inMember(ours));
    expect([copies.read(west), copies.isCurrent(west), copies.failing(west)]).toEqual([true, true, undefined]);
    expect(read).toEqual(["west Secret", "west ConfigMap"]);
  });

  test("are unknown, with the reason, while one kind cannot be read", async () => {
    const { west, copies, read } = await following(inMember(ours), { failing: ["configmaps"] });
    expect([copies.read(west), copies.isCurrent(west)]).toEqual([false, false]);
    expect(copies.failing(west)).toContain("not allowed");
    expect(read).toEqual(["west Secret"]);
    expect([["Secret"], ["ConfigMap"], ["Secret", "ConfigMap"]].map((kinds) => copies.read(west, kinds))).toEqual([
      true,
      false,
      false,
    ]);
  });

  test("are unknown for a member that is not followed", async () => {
    const { copies } = await following(inMember(ours));
    const other = member("east");
    expect([copies.read(other), copies.isCurrent(other), copies.in(other)]).toEqual([false, false, []]);
  });
});
