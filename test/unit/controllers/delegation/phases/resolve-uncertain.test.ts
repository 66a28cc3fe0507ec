import { describe, expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { names, now } from "../decided.ts";
import { member, memory, world } from "../world.ts";

describe("a proxy without a node", () => {
  describe("with a delegate that a member may have and does not show", () => {
    test("is created in that member again, and nowhere else, after a lost response", () => {
      const observed = world(proxyPod(), [member("west", { used: 90 }), member("east")], {
        memory: memory({ uncertain: "west" }),
      });
      expect(names(decide(observed, now).actions)).toEqual(["create west"]);
    });

    test("reports the failing creates, and is created elsewhere once the member is known not to have it", () => {
      const uncertainCreate = { since: now - 30_000, lastAt: now, message: "etcdserver: request timed out" };
      const observed = world(proxyPod(), [member("west"), member("east", { used: 90 })], {
        memory: memory({ uncertain: "west", uncertainCreate }),
      });
      const early = decide(observed, now - 26_000);
      expect(names(early.actions)).toEqual(["create west"]);
      const told = decide(observed, now - 1);
      expect(names(told.actions)).toEqual(["report", "create west"]);
      const message = "west: may have the pod, and fails to say so: etcdserver: request timed out";
      expect(told.actions[0]).toMatchObject({ reason: "ClusterNotReady", message });
      const waits = decide(observed, now);
      expect(names(waits.actions)).toEqual(["report"]);
      expect(waits.requeueAt).toBe(now + 60_000);
      const known = decide(observed, now + 60_000);
      expect(names(known.actions)).toEqual(["report", "confirmCreated west"]);
      expect(known.actions[1]).toMatchObject({ refusal: { cluster: "west", message: uncertainCreate.message } });

      const alone = world(proxyPod(), [member("west")], { memory: memory({ uncertain: "west", uncertainCreate }) });
      expect(names(decide(alone, now + 60_000).actions)).toEqual(["report", "create west"]);
    });

    test("waits after a lost response of a member that has gone silent", () => {
      const west = member("west", { reachable: false });
      const observed = world(proxyPod(), [west, member("east")], { memory: memory({ uncertain: "west" }) });
      expect(names(decide(observed, now).actions)).toEqual(["report"]);
    });
  });
});
