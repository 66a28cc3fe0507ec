import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decisions/decide.ts";
import { endedStatus, proxyPod, runningStatus } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, gone, member, memory, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const deletionTimestamp = "2026-02-03T04:05:00Z";

describe("a proxy that is being deleted", () => {
  test.each<[string, string | undefined, string]>([
    ["waits for a member that has not been read and may have its delegate", undefined, "Ending"],
    ["waits for no member that it may not go to, which has not been read", "not named", "Released"],
  ])("after a restart, unbound, %s", (_, excluded, outcome) => {
    const proxy = proxyPod({ metadata: { deletionTimestamp, deletionGracePeriodSeconds: 0 } });
    const west = member("west", { reachable: false, read: false });
    const excludes = ({ name }: { readonly name: string }) => (name === "west" ? excluded : undefined);
    const inherited = world(proxy, [west, member("east")], { memory: memory({ fresh: false }), excludes });
    expect(decide(inherited, now).outcome).toBe(outcome);
  });

  test("is not told the end of an earlier pod of its name", () => {
    const metadata = { deletionTimestamp, deletionGracePeriodSeconds: 30 };
    const proxy = boundProxy({ metadata, status: runningStatus() });
    const departed = delegateOf(proxyPod({ uid: "uid-0" }), { uid: "earlier", status: endedStatus(0) });
    const { actions } = decide(world(proxy, [member("west", { departed })], gone), now);
    expect(actions).toMatchObject([
      { type: "status", patch: { status: { phase: "Failed" } } },
      { type: "finish" },
      { type: "release" },
    ]);
  });
});
