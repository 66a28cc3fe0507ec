import { describe, expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/copying/decide.ts";
import type { Observed } from "../../../../src/controllers/copying/model.ts";

type Seen = Observed<KubeObject>;

const now = Date.parse("2026-02-03T04:05:06Z");
const ref = { member: "west", kind: "Secret", namespace: "team", name: "a" } as const;
const source: Stored<KubeObject> = {
  metadata: { name: "a", namespace: "team", uid: "source-uid", resourceVersion: "7" },
};
const copy: Stored<KubeObject> = { metadata: { name: "a", namespace: "team", uid: "copy-uid", resourceVersion: "3" } };

function see(parts: Partial<Seen> = {}): Seen {
  return {
    ref,
    usable: true,
    source: { state: "present", object: source },
    use: { demand: "needed" },
    unusedSince: now,
    ...parts,
  };
}

function outcome(parts: Partial<Seen>): string[] {
  const { actions, outcome } = decide(see(parts), now);
  return [outcome, ...actions.map(({ type }) => type)];
}

const missing = { source: { state: "missing" } } as const;
const unknown = { source: { state: "unknown" } } as const;
const refused = { held: { reason: "Refused", until: now + 1 }, refusedUntil: now + 1 } as const;
const undone = { held: { reason: "Undone", until: now + 1 } } as const;
const needed = { use: { demand: "needed" } } as const;
const kept = { use: { demand: "kept" } } as const;
const held = { use: { demand: "frozen", outlivesSource: true } } as const;
const unused = { use: { demand: "unused", outlivesSource: true } } as const;

describe("a missing copy", () => {
  test.each<[string, Partial<Seen>, string[]]>([
    ["is created when it is needed", {}, ["Copying", "create"]],
    ["is not created for users that can do without", kept, ["Idle"]],
    ["is not created for a delegate whose proxy does not name it", held, ["Idle"]],
    ["is not created when its source is missing", missing, ["Idle"]],
    ["waits for its source to be read", unknown, ["Idle"]],
    ["waits for its member", { usable: false }, ["Unreachable"]],
    ["waits after a refusal", refused, ["Refused"]],
    ["does not wait after a refusal of an earlier version", { refusedUntil: now + 1 }, ["Copying", "create"]],
    ["is tried again some time after a refusal", { refusedUntil: now }, ["Copying", "create"]],
    ["is left out for a while when another manager keeps deleting it", undone, ["Undone"]],
    ["is refused for a while, though no user needs it any more", { ...unused, refusedUntil: now + 1 }, ["Refused"]],
    ["is reconsidered some time after a refusal", { ...unused, refusedUntil: now }, ["Refused", "reconsider"]],
  ])("%s", (_, parts, expected) => {
    expect(outcome(parts)).toEqual(expected);
  });
});

describe("an existing copy", () => {
  const going = { metadata: { ...copy.metadata, deletionTimestamp: "2026-02-03T04:05:06Z" } };
  const over = { unusedSince: now - 10_000 };
  test.each<[string, Partial<Seen>, string[]]>([
    ["is left alone when it equals its source", { drift: "none" }, ["InStep"]],
    ["is left alone while a field is contested", { drift: "none", contestedUntil: now + 1 }, ["Contested"]],
    [
      "is changed when a contested field may be tried again",
      { drift: "none", contestedUntil: now },
      ["Copying", "patch"],
    ],
    ["is changed in its other fields meanwhile", { drift: "content", contestedUntil: now + 1 }, ["Copying", "patch"]],
    [
      "keeps a contested field while its writes are held",
      { drift: "none", contestedUntil: now, ...undone },
      ["Undone"],
    ],
    [
      "is changed in a contested field though the last write of this version left it",
      { drift: "none", contestedUntil: now, held: { reason: "NoEffect", until: now + 1 } },
      ["Copying", "patch"],
    ],
    ["keeps a contested field for a delegate whose proxy is gone", { contestedUntil: now, ...held }, ["InStep"]],
    ["follows its source", { drift: "content" }, ["Copying", "patch"]],
    ["follows the labels of its source", { drift: "metadata" }, ["Copying", "patch"]],
    ["follows its source while it may be in use", { ...kept, drift: "content" }, ["Copying", "patch"]],
    ["stays as it is for a delegate whose proxy is gone", { ...held, drift: "content" }, ["InStep"]],
    ["is created anew when a fixed field has to change", { drift: "immutable" }, ["Replacing", "delete"]],
    [
      "is not created anew while a running user prevents that",
      { use: { demand: "needed", preventsReplacement: true }, drift: "immutable" },
      ["InUse"],
    ],
    [
      "is not created anew while users of another host keep it",
      { drift: "immutable", keptUntil: now + 1 },
      ["UsedByOthers"],
    ],
    ["is deleted with its source, though it has users", missing, ["Removing", "delete"]],
    [
      "stays without its source for users that cannot do without",
      { ...missing, use: { demand: "needed", outlivesSource: true } },
      ["InStep"],
    ],
    ["stays without its source for a delegate whose proxy is gone", { ...missing, ...held }, ["InStep"]],
    ["stays while the host is being read", unknown, ["Waiting"]],
    ["is waited for while it terminates", { copy: going, drift: "content" }, ["Removing"]],
    ["is waited for while it terminates, though its source is gone", { copy: going, ...missing }, ["Removing"]],
    ["stays a while without users", { ...unused, unusedSince: now - 9_999 }, ["Idle"]],
    ["is deleted after that", { ...unused, ...over }, ["Removing", "delete"]],
    ["is deleted although the host has not been read", { ...unused, ...over, ...unknown }, ["Removing", "delete"]],
    ["stays while users of another host keep it", { ...unused, ...over, keptUntil: now + 1 }, ["UsedByOthers"]],
    ["is not deleted again soon after a refusal", { ...missing, deletionRefusedUntil: now + 1 }, ["Refused"]],
    ["is deleted some time after a refusal", { ...missing, deletionRefusedUntil: now }, ["Removing", "delete"]],
    [
      "is in step when the refused deletion is no longer wanted",
      { drift: "none", deletionRefusedUntil: now + 1 },
      ["InStep", "reconsider"],
    ],
    ["stays when its member does not answer", { ...unused, unusedSince: 0, usable: false }, ["Unreachable"]],
    [
      "is deleted for certain and created anew when its deletion may still happen",
      { leaving: true, drift: "none" },
      ["Replacing", "delete"],
    ],
    ["is not deleted again while a delegate without a proxy mounts it", { ...held, leaving: true }, ["InStep"]],
    [
      "stays while the host is being read, though its deletion may still happen",
      { leaving: true, ...unknown },
      ["Waiting"],
    ],
    ["is not changed again soon after a refusal", { drift: "content", ...refused }, ["Refused"]],
    ["may be changed some time after a refusal", { drift: "content", refusedUntil: now }, ["Copying", "patch"]],
    ["is in step when the refused change is no longer wanted", { drift: "none", ...refused }, ["InStep", "reconsider"]],
    [
      "is left as it is when the member stores no change",
      { drift: "content", held: { reason: "NoEffect", until: now + 1 } },
      ["NoEffect"],
    ],
  ])("%s", (_, parts, expected) => {
    expect(outcome({ copy, ...needed, ...parts })).toEqual(expected);
  });

  test("is deleted with the seen uid and version as preconditions", () => {
    expect(decide(see({ copy, ...unused, ...over }), now).actions).toEqual([{ type: "delete", ref, copy }]);
  });

  test("is left for a while when another manager keeps changing it", () => {
    const until = now + 600_000;
    const observed = see({ copy, drift: "content", held: { reason: "Undone", until } });
    expect(decide(observed, now)).toEqual({ actions: [], outcome: "Undone", requeueAt: until });
  });

  test("is deleted ten seconds after the last user", () => {
    const observed = see({ copy, ...unused, unusedSince: 1_000 });
    expect(decide(observed, 10_999)).toEqual({ actions: [], outcome: "Idle", requeueAt: 11_000 });
    expect(decide(observed, 11_000).actions).toHaveLength(1);
  });
});
