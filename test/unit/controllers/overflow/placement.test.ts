import { expect, test } from "vitest";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../../../src/api/keys.ts";
import type { Namespace, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { OverflowPlacement } from "../../../../src/controllers/overflow/placement.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import type { SchedulingEvents } from "../../../../src/scheduling/events.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { pod } from "../../../support/builders/pod.ts";
import { placementOver } from "../../scheduling/placement-over.ts";

function waitingPod(uid: string): Stored<Pod> {
  return pod({ uid, name: uid, metadata: { labels: { [PROXY_LABEL]: OVERFLOW_LABEL_VALUE } } });
}

/** Returns the placement of pods in overflow mode on one member, and the events that it emits. */
function placing() {
  const namespaces = new Store<Namespace>();
  namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1" } });
  const homeApi = () => ({ state: "unknown", message: "" }) as const;
  const { proxies, placementState: made } = placementOver([candidateNamed("west")], { namespaces, homeApi });
  const events = new Events<SchedulingEvents>();
  let freed = 0;
  events.on("roomFreed", () => {
    freed += 1;
  });
  const overflow = new OverflowPlacement({
    placementState: made,
    identity: HOST,
    proxies,
    observe: () => expect.unreachable(),
    events,
  });
  return { made, overflow, proxies, freed: () => freed };
}

test("does not try a pod for a while where its name is taken, and tries others of its shape", () => {
  const { made, overflow } = placing();
  const [first, second] = [waitingPod("a"), waitingPod("b")];
  const own = ({ metadata: { uid } }: Stored<Pod>) => made.memories.of(uid).attempts.west;
  const shared = (waiting: Stored<Pod>) => made.eligibilities.of(waiting).refusedBefore?.("west")?.refusal.reason;
  const taken = { cluster: "west", reason: "NameTaken", message: "a pod of that name is there" } as const;
  for (const restMs of [30_000, 60_000]) {
    overflow.reserve(first, "west", first);
    overflow.refusedBy(first, taken);
    overflow.giveUp(first.metadata.uid, "west");
    expect(own(first)).toMatchObject({ refusal: taken, until: restMs });
  }
  expect([own(second), shared(second)]).toEqual([undefined, undefined]);
  overflow.refusedBy(first, { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" }, "spec");
  expect([shared(first), shared(second)]).toEqual(["RefusedByMember", "RefusedByMember"]);
  overflow.leave(first.metadata.uid);
  expect(own(first)).toBeUndefined();
});

test("frees the room of a pod that is given up, and keeps that of one that became a proxy", () => {
  const { overflow, proxies, freed, made } = placing();
  const [gone, bound] = [waitingPod("a"), waitingPod("b")];
  for (const each of [gone, bound]) expect(overflow.reserve(each, "west", each)).toBe(true);
  proxies.set(bound);
  overflow.giveUp("a", "west");
  overflow.giveUp("b", "west");
  expect(freed()).toBe(1);
  expect(made.memories.of("b").lastReserved).toBe("west");
  overflow.leave("b");
  expect(made.memories.of("b").lastReserved).toBe("west");
});

test("takes the author's time before a pod overflows, and the default where annotations cannot be read", () => {
  const { overflow } = placing();
  const after = (annotations: Record<string, string>) =>
    overflow.overflowAfterSeconds(pod({ metadata: { annotations } }));
  expect(after({ "legation.dev/overflow-after": "90s" })).toBe(90);
  expect(after({ "legation.dev/overflow-after": "soon" })).toBe(after({}));
});
