import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import type { Action } from "../../../../../src/controllers/delegation/decision/decision.ts";
import { runningStatus } from "../../../../support/builders/pod.ts";
import { names, now } from "../decided.ts";
import { boundProxy, delegateOf, gone, member, type WorldParts, world } from "../world.ts";

describe("a bound proxy", () => {
  test("gets a new delegate in the same member, and records it, if it has no controller and never started", () => {
    const proxy = boundProxy();
    expect(names(decide(world(proxy, [member("west"), member("east")], gone), now).actions)).toEqual(["create west"]);
    const again = delegateOf(proxy, { uid: "two", spec: { nodeName: "n2" } });
    expect(decide(world(proxy, [member("west", { delegate: again })]), now).actions).toEqual([
      { type: "recordDelegate", proxyUid: "uid-1", resourceVersion: "1", delegateUid: "two", memberNode: "n2" },
    ]);
  });

  test("gets no new delegate while its namespace is not opted in, and reports that", () => {
    const observed = world(boundProxy(), [member("west")], { optedIn: false, ...gone });
    expect(decide(observed, now)).toMatchObject({
      actions: [{ type: "report", reason: "NotOptedIn" }],
      outcome: "Waiting",
      requeueAt: now + 1000,
    });
  });

  test("does not keep the conditions of the earlier delegate with the new one", () => {
    const [theirs, ours] = ["example.com/theirs", "example.com/ours"].map((type) => ({ type, status: "True" }));
    const conditions = [theirs, ours].flatMap((condition) => condition ?? []);
    const proxy = boundProxy({ status: { phase: "Pending", conditions } });
    const again = (record: object, told: typeof conditions): Action[] => {
      const metadata = { annotations: { "legation.dev/forwarded": JSON.stringify(record) } };
      const made = delegateOf(proxy);
      const annotations = { ...made.metadata.annotations, ...metadata.annotations };
      const departed = {
        ...made,
        metadata: { ...made.metadata, annotations, deletionTimestamp: "2026-01-01T00:00:00Z" },
        status: { phase: "Pending", conditions: told },
      };
      return [...decide(world(proxy, [member("west", { departed })], gone), now).actions];
    };
    const withdrawn = {
      type: "status",
      patch: { status: { conditions: [{ type: "example.com/theirs", $patch: "delete" }] } },
    };
    const made = { type: "create", member: "west" };
    const told = conditions.slice(0, 1);
    const keys = { labels: [], annotations: [] };
    expect(again({ ...keys, conditions: ["example.com/theirs"] }, told)).toMatchObject([withdrawn, made]);
    // The condition was about to be withdrawn.
    expect(again({ ...keys, conditions: ["example.com/theirs"] }, [])).toMatchObject([withdrawn, made]);
    // An earlier version created it.
    expect(again(keys, told)).toMatchObject([withdrawn, made]);
    expect(again({ ...keys, conditions: [] }, told)).toMatchObject([made]);
  });
});

describe("a bare pod that has not started as far as the host knows, and whose delegate vanished", () => {
  const proxy = boundProxy();
  const metadata = { deletionTimestamp: "2026-02-03T04:05:00Z" };
  const outcomeOf = (departed: ReturnType<typeof delegateOf> | undefined, parts: WorldParts = {}): string =>
    decide(world(proxy, [member("west", departed === undefined ? {} : { departed })], { ...gone, ...parts }), now)
      .outcome;

  test("does not run again if the delegate was last seen running", () => {
    expect(outcomeOf(delegateOf(proxy, { metadata, status: runningStatus() }))).toBe("Vanished");
    expect(outcomeOf(delegateOf(proxy, { metadata }))).toBe("Placing");
    // The state of an earlier delegate does not count.
    expect(outcomeOf(delegateOf(proxy, { uid: "earlier", metadata, status: runningStatus() }))).toBe("Placing");
  });

  test("gets no new delegate without its overrides if they no longer fit", () => {
    const problem = "legation.dev/overrides: path /spec/containers/1 does not exist";
    expect(outcomeOf(undefined, { misfit: () => problem })).toBe("Vanished");
    const { actions } = decide(world(proxy, [member("west")], { ...gone, misfit: () => problem }), now);
    expect(JSON.stringify(actions)).toContain(`cannot be made again: ${problem}`);
  });
});
