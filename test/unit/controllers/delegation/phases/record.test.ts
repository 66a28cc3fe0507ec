import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { runningStatus } from "../../../../support/builders/pod.ts";
import { held, now, overflowed } from "../decided.ts";
import { delegateOf, member, memory, world } from "../world.ts";

describe("a pod that was bound without a delegate", () => {
  test("gets its finalizer before anything is created for it", () => {
    const { actions } = decide(world(overflowed(), [member("west"), member("east")]), now);
    expect(actions).toEqual([{ type: "addFinalizer", proxyUid: "uid-1" }]);
  });

  test("has the delegate recorded once it has a node there, and reports why while it has none", () => {
    const bound = member("west", { delegate: delegateOf(held, { spec: { nodeName: "node-1" } }) });
    expect(decide(world(held, [bound]), now).actions).toEqual([
      {
        type: "recordDelegate",
        proxyUid: "uid-1",
        resourceVersion: "1",
        delegateUid: "delegate-uid",
        memberNode: "node-1",
      },
    ]);
    const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "too full" }];
    const waiting = member("west", { delegate: delegateOf(held, { status: { phase: "Pending", conditions } }) });
    expect(decide(world(held, [waiting]), now).actions).toMatchObject([
      { type: "report", proxyUid: "uid-1", reason: "NotPlaced", message: "west: too full", bound: true },
    ]);
  });

  test("does not run again if its delegate has run and gone before it was recorded", () => {
    const departed = delegateOf(held, { spec: { nodeName: "node-1" }, status: runningStatus() });
    const { actions } = decide(world(held, [member("west", { departed })]), now);
    expect(actions).toMatchObject([{ type: "recordDelegate", delegateUid: "delegate-uid" }]);
  });

  test("has a delegate recorded that failed without a node, and gets its end then", () => {
    const delegate = delegateOf(held, { status: { phase: "Failed", reason: "DeadlineExceeded" } });
    expect(decide(world(held, [member("west", { delegate })]), now).actions).toMatchObject([
      { type: "recordDelegate", delegateUid: "delegate-uid", memberNode: "" },
    ]);
  });

  test("has a record that was sent, and is not shown yet, sent again as it was, and gets no other delegate", () => {
    const recording = { delegateUid: "delegate-uid", memberNode: "node-1" };
    const sent = world(held, [member("west")], { memory: memory({ recording }) });
    const again = { type: "recordDelegate", proxyUid: "uid-1", resourceVersion: "1", ...recording };
    expect(decide(sent, now).actions).toEqual([again]);
    const ran = world({ ...held, status: runningStatus() }, [member("west")], { memory: memory({ recording }) });
    expect(decide(ran, now).actions).not.toContainEqual(again);
  });
});
