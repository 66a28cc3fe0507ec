import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { type MemoryParts, member, memory, type TestMember, type WorldParts, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");

test.each<[string, string | undefined, string[]]>([
  ["waits for a member that has not been read and may have its delegate", undefined, ["report"]],
  ["is placed at once when it may not go to the member that has not been read", "not named", ["create"]],
])("a proxy of an earlier leader %s", (_, excluded, types) => {
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

  test("is placed when each member has been asked for it, at a time when all that was sent before is done", () => {
    const early = decide(world(proxyPod(), members, inherited()), settled - 1);
    expect(early).toMatchObject({ actions: [], requeueAt: settled });
    const due = decide(world(proxyPod(), members, inherited()), settled);
    const asked = [
      { name: "west", since: settled },
      { name: "east", since: settled - 500 },
    ];
    expect(due.actions).toEqual([{ type: "ask", proxyUid: "uid-1", members: asked }]);
    const half = decide(world(proxyPod(), members, inherited({ denied: new Set(["east"]) })), settled);
    expect(half.actions).toMatchObject([{ type: "ask", members: [{ name: "west" }] }]);
    const denied = decide(world(proxyPod(), members, inherited({ denied: new Set(["east", "west"]) })), settled);
    expect(denied.actions).toMatchObject([{ type: "create" }]);
  });

  test("waits for one that cannot be asked, and not for one that has denied it and is lost since", () => {
    const lost = [member("west", { reachable: false }), member("east")];
    const unasked = decide(world(proxyPod(), lost, inherited({ denied: new Set(["east"]) })), now);
    expect(unasked.actions).toMatchObject([
      { type: "report", message: expect.stringContaining("west: may have the pod from before the controller started") },
    ]);
    const closed = { reason: "ClusterNotReady", message: "it does not answer" } as const;
    const [west, east] = lost as [TestMember, TestMember];
    const away = { ...west, candidate: { ...west.candidate, closed } };
    const denied = new Set(["east", "west"]);
    expect(decide(world(proxyPod(), [away, east], inherited({ denied })), now).actions).toMatchObject([
      { type: "create", member: "east" },
    ]);
  });

  test.each([
    ["there is no other member", members.slice(0, 1), inherited()],
    ["no earlier leader has seen it", members, {}],
    [
      "it was shown, and withdrawn",
      members,
      inherited({ attempts: new Map([["north", { since: now, refusals: 0 }]]) }),
    ],
  ])("is asked for nowhere when %s", (_, all, parts) => {
    expect(decide(world(proxyPod(), all, parts), settled).actions).toMatchObject([{ type: "create" }]);
  });
});

describe("a proxy that no member may have is told of a member", () => {
  const refusal = (message: string) => ({ cluster: "west", reason: "RefusedByMember", message }) as const;
  const attempted = (until: number): Pick<WorldParts, "memory"> => {
    const attempt = { since: 0, refusals: 1, refusal: refusal("quota of its own"), until, nodesVersion: 1 };
    return { memory: memory({ attempts: new Map([["west", attempt]]) }) };
  };
  const refusedBefore = () => ({ refusal: refusal("quota of another"), until: now + 5000 });
  const excludes = () => "not named";
  test.each<[string, WorldParts, string]>([
    ["what it has said of it", attempted(now + 1), "quota of its own"],
    ["what it has said of it, rather than of another", { ...attempted(now + 1), refusedBefore }, "quota of its own"],
    ["what it has said of another like it", { refusedBefore }, "quota of another"],
    ["the rule against it, rather than what it has said of another", { refusedBefore, excludes }, "not named"],
    ["the rule against it, when what it has said is long ago", { ...attempted(now), excludes }, "not named"],
  ])("%s", (_, parts, message) => {
    expect(decide(world(proxyPod(), [member("west")], parts), now).actions).toMatchObject([
      { type: "report", message: `west: ${message}` },
    ]);
  });
});

test("a place that is waited for is kept for what the pod's overrides make of it there", () => {
  const west = member("west");
  const late = { ...west, candidate: { ...west.candidate, overdue: true } };
  const parts = {
    waitingSince: now,
    rules: () => [{ awaits: true, cost: ({ name }: { readonly name: string }) => (name === "west" ? 0 : 1) }],
    requestsIn: () => ({ cpu: 3, pods: 1 }),
  };
  expect(decide(world(proxyPod(), [late, member("east")], parts), now).actions).toEqual([
    { type: "promise", member: "west", proxyUid: "uid-1", requests: { cpu: 3, pods: 1 } },
  ]);
});
