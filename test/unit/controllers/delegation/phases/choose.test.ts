import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { type MemoryParts, member, memory, type TestMember, type WorldParts, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");

test.each<[string, string | undefined, string[]]>([
  ["waits for a member that has not been read and may have its delegate", undefined, ["report"]],
  ["is placed at once if it may not go to the member that has not been read", "not named", ["create"]],
])("%s, as a proxy of an earlier leader", (_, excluded, types) => {
  const west = member("west", { reachable: false, read: false });
  const excludes = ({ name }: { readonly name: string }) => (name === "west" ? excluded : undefined);
  const inherited = world(proxyPod(), [west, member("east")], { memory: memory({ fresh: false }), excludes });
  expect(decide(inherited, now).actions.map(({ type }) => type)).toEqual(types);
});

test("is not placed before its workload is known, and says so after a while", () => {
  const view = world(proxyPod(), [member("west")], { unseen: "Deployment/web", waitingSince: now });
  expect(decide(view, now)).toMatchObject({ outcome: "Waiting", actions: [], requeueAt: now + 5000 });
  const message = "Deployment/web, whose annotations say where the pod goes, has not been read yet";
  expect(decide(view, now + 5000).actions).toMatchObject([{ type: "report", reason: "WorkloadUnread", message }]);
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

describe("the message of a proxy that no member takes", () => {
  const refusal = (message: string) => ({ cluster: "west", reason: "RefusedByMember", message }) as const;
  const attempted = (until: number): Pick<WorldParts, "memory"> => {
    const attempt = { since: 0, refusalCount: 1, refusal: refusal("quota of its own"), until, nodesVersion: 1 };
    return { memory: memory({ attempts: new Map([["west", attempt]]) }) };
  };
  const refusedBefore = () => ({ refusal: refusal("quota of another"), until: now + 5000 });
  const excludes = () => "not named";
  test.each<[string, WorldParts, string]>([
    ["gives the member's own refusal", attempted(now + 1), "quota of its own"],
    [
      "gives the member's own refusal before that of another pod",
      { ...attempted(now + 1), refusedBefore },
      "quota of its own",
    ],
    ["gives the refusal of another pod of its shape", { refusedBefore }, "quota of another"],
    ["gives the refusing rule before the refusal of another pod", { refusedBefore, excludes }, "not named"],
    ["gives the refusing rule if the member's refusal is old", { ...attempted(now), excludes }, "not named"],
  ])("%s", (_, parts, message) => {
    expect(decide(world(proxyPod(), [member("west")], parts), now).actions).toMatchObject([
      { type: "report", message: `west: ${message}` },
    ]);
  });
});

test("reserves room for the pod as its overrides make it in that member", () => {
  const west = member("west");
  const late = { ...west, candidate: { ...west.candidate, overdue: true } };
  const parts = {
    waitingSince: now,
    rules: () => [{ awaits: true, score: ({ name }: { readonly name: string }) => (name === "west" ? 1 : 0) }],
    requestsIn: () => ({ cpu: 3, pods: 1 }),
  };
  expect(decide(world(proxyPod(), [late, member("east")], parts), now).actions).toEqual([
    { type: "reserve", member: "west", proxyUid: "uid-1", requests: { cpu: 3, pods: 1 } },
  ]);
});
