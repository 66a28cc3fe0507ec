import { describe, expect, onTestFinished, test } from "vitest";
import type { Secret, Stored } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { Copies, type CopiesOptions, type WatchedKind } from "../../../../src/controllers/copying/copies.ts";
import { copyMetadata } from "../../../../src/copies/copy.ts";
import type { ListOptions } from "../../../../src/kube/client.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { ByteBudget } from "../../../../src/kube/limits.ts";
import { configMaps, type Resource, secrets } from "../../../../src/kube/resources.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { quietClient } from "../quiet-client.ts";

const source = { metadata: { name: "a", namespace: "team", uid: "source-uid", resourceVersion: "1" } };
const ours = copyMetadata(source, HOST);

function inMember(metadata: object): Stored<Secret> {
  return { metadata: { name: "a", namespace: "team", uid: "copy-uid", resourceVersion: "3", ...metadata } };
}

/** The copies in a member that has this Secret, and what was asked of it; kinds of `failing` cannot be listed. */
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
  const list = async ({ plural }: Resource<Secret>, { labelSelector }: ListOptions) => {
    asked.push(labelSelector);
    if (failing.includes(plural)) {
      throw new KubeError("not allowed", { code: "Forbidden", cluster: "west", verb: "list", resource: plural });
    }
    return { items: plural === "secrets" ? [has] : [], resourceVersion: "3", size: 1 };
  };
  const client = quietClient([], { list: list as never });
  const west = { name: "west", client, memory: new ByteBudget(1e6), watches: new Set() } as unknown as Member;
  const copies = new Copies<Secret>({
    hostId: HOST.id,
    kinds: new Map<string, WatchedKind<Secret>>([
      ["Secret", { resource: secrets, knownByLabels }],
      ["ConfigMap", { resource: configMaps }],
    ]),
    onCopy: () => {},
    onRead: ({ name }) => read.push(name),
    clock,
    log: createLogger({ level: "silent" }),
    ...parts,
  });
  onTestFinished(() => copies.stop());
  copies.follow([west]);
  await clock.advance(10);
  return { west, copies, asked, read, found: copies.of(west, "Secret", "team", "a") };
}

describe("a copy is", () => {
  const { annotations, labels } = ours;
  const unowned = inMember({ labels });
  test.each<[string, Stored<Secret>, boolean | undefined, boolean]>([
    ["what this host made", inMember(ours), undefined, true],
    ["nothing of another host's", inMember(copyMetadata(source, { ...HOST, id: "other" })), undefined, false],
    ["nothing of somebody else's, whatever it says", inMember({ annotations }), undefined, false],
    ["nothing that has its labels alone: controllers carry them over", unowned, undefined, false],
    ["what has its labels alone, of a kind of which nobody does so", unowned, true, true],
    [
      "none of this host's other objects",
      inMember({ annotations, labels: { "legation.dev/host": HOST.id } }),
      true,
      false,
    ],
  ])("%s", async (_, object, isUnowned, expected) => {
    const { found } = await following(object, isUnowned === undefined ? {} : { knownByLabels: isUnowned });
    expect(found).toBe(expected ? object : undefined);
  });
});

test("of a member nothing is read but this host's copies", async () => {
  const { asked } = await following(inMember(ours));
  expect(new Set(asked)).toEqual(new Set([`legation.dev/host=${HOST.id},legation.dev/copy=true`]));
});

describe("a member's copies are known", () => {
  test("when all of their kinds have been read", async () => {
    const { west, copies, read } = await following(inMember(ours));
    expect([copies.read(west), copies.isCurrent(west), copies.failing(west)]).toEqual([true, true, undefined]);
    expect(read).toContain("west");
  });

  test("not while one kind of them cannot be read, and why is told", async () => {
    const { west, copies, read } = await following(inMember(ours), { failing: ["configmaps"] });
    expect([copies.read(west), copies.isCurrent(west)]).toEqual([false, false]);
    expect(copies.failing(west)).toContain("not allowed");
    expect(read).toEqual([]);
  });

  test("not of one that is not followed", async () => {
    const { copies } = await following(inMember(ours));
    const other = { name: "east" } as unknown as Member;
    expect([copies.read(other), copies.isCurrent(other), copies.in(other)]).toEqual([false, false, []]);
  });
});
