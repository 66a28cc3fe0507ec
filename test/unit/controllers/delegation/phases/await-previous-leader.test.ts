import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { names, now } from "../decided.ts";
import { type MemoryParts, member, memory, type TestMember, type WorldParts, world } from "../world.ts";

test("a proxy waits for every member that might have its delegate after a change of leader", () => {
  const west = member("west", { reachable: false, read: false });
  const inherited = world(proxyPod(), [west, member("east")], { memory: memory({ fresh: false }) });
  expect(names(decide(inherited, now).actions)).toEqual(["report"]);
  const fresh = world(proxyPod(), [west, member("east")]);
  expect(names(decide(fresh, now).actions)).toEqual(["create east"]);
});

test.each<[string, string | undefined, string[]]>([
  ["waits for a member that has not been read and may have its delegate", undefined, ["report"]],
  ["is placed at once if it may not go to the member that has not been read", "not named", ["create"]],
])("%s, as a proxy of an earlier leader", (_, excluded, types) => {
  const west = member("west", { reachable: false, read: false });
  const excludes = ({ name }: { readonly name: string }) => (name === "west" ? excluded : undefined);
  const inherited = world(proxyPod(), [west, member("east")], { memory: memory({ fresh: false }), excludes });
  expect(decide(inherited, now).actions.map(({ type }) => type)).toEqual(types);
});

describe("a proxy of an earlier leader that no member shows", () => {
  const settled = now + 1000;
  const inherited = (parts: MemoryParts = {}): Pick<WorldParts, "memory"> => ({
    memory: memory({ fresh: false, ...parts }),
  });
  const members = [member("west", { reachableSince: now }), member("east", { reachableSince: now - 500 })];

  test("is placed when each member was asked for it after the earlier leader's requests had ended", () => {
    const early = decide(world(proxyPod(), members, inherited()), settled - 1);
    expect(early).toMatchObject({ actions: [], requeueAt: settled });
    const due = decide(world(proxyPod(), members, inherited()), settled);
    const asked = [
      { name: "west", since: settled },
      { name: "east", since: settled - 500 },
    ];
    expect(due.actions).toEqual([{ type: "readPreviousDelegate", proxyUid: "uid-1", members: asked }]);
    const half = decide(world(proxyPod(), members, inherited({ confirmedAbsent: new Set(["east"]) })), settled);
    expect(half.actions).toMatchObject([{ type: "readPreviousDelegate", members: [{ name: "west" }] }]);
    const confirmedAbsent = decide(
      world(proxyPod(), members, inherited({ confirmedAbsent: new Set(["east", "west"]) })),
      settled,
    );
    expect(confirmedAbsent.actions).toMatchObject([{ type: "create" }]);
  });

  test("waits for a member that cannot be asked, and not for one that has denied it and is lost since", () => {
    const lost = [member("west", { reachable: false }), member("east")];
    const unasked = decide(world(proxyPod(), lost, inherited({ confirmedAbsent: new Set(["east"]) })), now);
    expect(unasked.actions).toMatchObject([
      { type: "report", message: expect.stringContaining("west: may have the pod from before the controller started") },
    ]);
    const closed = { reason: "ClusterNotReady", message: "it does not answer" } as const;
    const [west, east] = lost as [TestMember, TestMember];
    const away = { ...west, candidate: { ...west.candidate, closed } };
    const confirmedAbsent = new Set(["east", "west"]);
    expect(decide(world(proxyPod(), [away, east], inherited({ confirmedAbsent })), now).actions).toMatchObject([
      { type: "create", member: "east" },
    ]);
  });

  test.each([
    ["there is no other member", members.slice(0, 1), inherited()],
    ["no earlier leader has seen it", members, {}],
    [
      "it was shown, and withdrawn",
      members,
      inherited({ attempts: new Map([["north", { since: now, refusalCount: 0 }]]) }),
    ],
  ])("is asked for nowhere when %s", (_, all, parts) => {
    expect(decide(world(proxyPod(), all, parts), settled).actions).toMatchObject([{ type: "create" }]);
  });
});
