import { expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { CORDONED } from "../../../../../src/placement/member-candidate.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { delegateOf, member, world } from "../world.ts";

const minute = 60_000;

test("gives a member its whole timeout when it gets the pod again after it was cordoned", () => {
  const memories = new Memories({ now: () => 0 });
  const proxy = proxyPod();
  const { uid } = proxy.metadata;
  const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "too full" }];
  // 0:00 west gets the pod, whose scheduler finds no node; no other member has room.
  memories.noteAttempt(uid, "west", 0);
  const waits = member("west", { delegate: delegateOf(proxy, { status: { phase: "Pending", conditions } }) });
  const cordoned = { ...waits, candidate: { ...waits.candidate, closed: CORDONED } };
  // 0:20 west is cordoned: the delegate is withdrawn, and the pod waits.
  const withdrawn = decide(world(proxy, [cordoned], { memory: memories.of(uid) }), 20_000);
  expect(withdrawn.outcome).toBe("Withdrawing");
  expect(withdrawn.actions.map(({ type }) => type)).toEqual(["report", "delete"]);
  memories.noteUnplaced(uid);
  // 10:00 west is uncordoned, and east has room as well: west is the better one.
  const now = 10 * minute;
  const placed = decide(
    world(proxy, [member("west"), member("east", { used: 50 })], { memory: memories.of(uid) }),
    now,
  );
  expect(placed.actions).toMatchObject([{ type: "create", member: "west" }]);
  memories.noteAttempt(uid, "west", now);
  memories.noteMade(uid, "west", "delegate-uid");
  memories.noteFound(uid, "west", now);
  // A moment later its scheduler has not answered yet.
  const fresh = member("west", { delegate: delegateOf(proxy) });
  const held = decide(world(proxy, [fresh, member("east", { used: 50 })], { memory: memories.of(uid) }), now + 50);
  expect(held).toMatchObject({ outcome: "Scheduling", actions: [], requeueAt: now + 30_000 });
});

test("gives a member that could not be reached at first its whole timeout when it gets the pod later", () => {
  const memories = new Memories({ now: () => 0 });
  const proxy = proxyPod();
  const { uid } = proxy.metadata;
  // 0:00 the create in west is not sent (connection refused); west is lost, and returns at 1:00. East gets the pod and has no node.
  memories.noteAttempt(uid, "west", 0);
  memories.noteAttempt(uid, "east", 2_000);
  memories.noteRefusal(uid, { cluster: "east", reason: "Unschedulable", message: "too full" }, 1, 5 * minute);
  // 5:00 west gets it at last.
  const now = 5 * minute;
  memories.noteAttempt(uid, "west", now);
  const west = member("west", { reachableSince: minute, delegate: delegateOf(proxy) });
  const held = decide(world(proxy, [west, member("north")], { memory: memories.of(uid) }), now + 50);
  expect(held).toMatchObject({ outcome: "Scheduling", requeueAt: now + 30_000 });
});
