import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { endedStatus, runningStatus } from "../../../../support/builders/pod.ts";
import { names, now, refused } from "../decided.ts";
import { boundProxy, delegateOf, gone, member, memory, world } from "../world.ts";

describe("a bound proxy", () => {
  test("ends Failed as a disruption when its delegate vanished", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const { actions, outcome } = decide(world(proxy, [member("west")], gone), now);
    expect(outcome).toBe("Vanished");
    expect(actions).toEqual([
      expect.objectContaining({
        type: "status",
        patch: expect.objectContaining({
          status: expect.objectContaining({ phase: "Failed", reason: "DeletedInMember" }),
        }),
      }),
    ]);
  });

  test("gets the end that was seen when its delegate vanished after its end", () => {
    const proxy = boundProxy({ status: runningStatus() });
    const departed = delegateOf(proxy, { status: endedStatus(0) });
    const { actions } = decide(world(proxy, [member("west", { departed })]), now);
    expect(actions).toEqual([
      {
        type: "status",
        patch: expect.objectContaining({ status: expect.objectContaining({ phase: "Succeeded" }) }),
        resourceVersion: "1",
      },
    ]);
  });

  test("ends Failed if the member would not take it again", () => {
    const attempts = new Map([["west", refused("RefusedByMember")]]);
    const { actions, outcome } = decide(
      world(boundProxy(), [member("west")], { memory: memory({ ...gone.memory, attempts }) }),
      now,
    );
    expect(outcome).toBe("Vanished");
    expect(actions).toEqual([
      expect.objectContaining({
        type: "status",
        patch: expect.objectContaining({
          status: expect.objectContaining({
            phase: "Failed",
            message: "Cluster west: the pod was deleted there and cannot be made again: no",
          }),
        }),
      }),
    ]);
  });

  test("ends Failed if it never started and has a controller, which replaces it", () => {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "r", controller: true }];
    const { outcome } = decide(world(boundProxy({ metadata: { ownerReferences } }), [member("west")], gone), now);
    expect(outcome).toBe("Vanished");
  });

  test("ends Failed when its delegate vanished, whatever another member claims, and gets no new one before that is gone", () => {
    const lost = (proxy: ReturnType<typeof boundProxy>): ReturnType<typeof decide> =>
      decide(
        world(proxy, [member("west"), member("east", { delegate: delegateOf(proxy, { uid: "forged" }) })], gone),
        now,
      );
    const failed = lost(boundProxy({ status: runningStatus() }));
    expect([failed.outcome, ...names(failed.actions)]).toEqual(["Vanished", "status", "delete east"]);
    const again = lost(boundProxy());
    expect([again.outcome, ...names(again.actions)]).toEqual(["Withdrawing", "delete east"]);
  });
});
