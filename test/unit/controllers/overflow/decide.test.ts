import { describe, expect, test } from "vitest";
import type { PodCondition, PodStatus } from "../../../../src/api/kubernetes.ts";
import { decide, unschedulableSince } from "../../../../src/controllers/overflow/decide.ts";
import type { Observed } from "../../../../src/controllers/overflow/model.ts";
import { UnschedulableSince } from "../../../../src/controllers/overflow/unschedulable-since.ts";
import { toOverflow } from "../../../../src/pods/overflow.ts";
import { type PodParts, pod } from "../../../support/builders/pod.ts";
import { delegateOf, member, world } from "../delegation/world.ts";

const since = "2026-01-01T00:00:00Z";
const start = Date.parse(since);
const due = start + 30_000;

function unschedulable(parts: Partial<PodCondition> = {}): PodStatus {
  const message = "0/2 nodes are available";
  const condition = {
    type: "PodScheduled",
    status: "False",
    reason: "Unschedulable",
    message,
    lastTransitionTime: since,
  };
  return { phase: "Pending", conditions: [{ ...condition, ...parts }] };
}

function observed(parts: PodParts = {}, others: Partial<Observed> = {}): Observed {
  const built = pod({ status: unschedulable(), ...parts });
  const marked = { ...built, metadata: { ...built.metadata, ...toOverflow(built).metadata } };
  return {
    pod: marked,
    supported: true,
    optedIn: true,
    seen: { otherwiseAt: start - 1000, unplacedAt: start + 500 },
    afterMs: 30_000,
    reported: false,
    view: () => world(marked, [member("west"), member("east", { used: 5 })]),
    ...others,
  };
}

describe("a pod in overflow mode", () => {
  test("is bound to the best member when the host has had no node for it for long enough", () => {
    const { actions } = decide(observed(), due);
    expect(actions).toMatchObject([{ type: "overflow", member: "west", uid: "uid-1", resourceVersion: "1" }]);
  });

  test("is made a proxy if it is bound to a virtual node without the marks, even while it is being deleted", () => {
    const spec = { nodeName: "legation-west" };
    for (const metadata of [{}, { deletionTimestamp: since }]) {
      expect(decide(observed({ spec, metadata }), due).actions).toEqual([
        { type: "mark", uid: "uid-1", member: "west" },
      ]);
    }
  });

  test("is looked at again when it is due", () => {
    expect(decide(observed(), due - 1)).toEqual({ actions: [], outcome: "Unschedulable", requeueAt: due });
  });

  test.each<[string, PodParts, Partial<Observed>?]>([
    ["that no scheduler has looked at", { status: { phase: "Pending" } }],
    ["whose scheduler has failed", { status: unschedulable({ reason: "SchedulerError" }) }],
    ["that is gated", { spec: { schedulingGates: [{ name: "quota" }] } }],
    ["that has a node of the host", { spec: { nodeName: "node-1" } }],
    ["for which room is being made by preemption", { status: { ...unschedulable(), nominatedNodeName: "node-1" } }],
    ["that is being deleted", { metadata: { deletionTimestamp: since } }],
    ["that has failed", { status: { ...unschedulable(), phase: "Failed" } }],
    ["of a namespace that is not opted in any more", {}, { optedIn: false }],
  ])("is left alone if it is one %s", (_, parts, others) => {
    expect(decide(observed(parts, others), due + 3_600_000).actions).toEqual([]);
  });

  test("stays if the host's API server cannot make it a proxy in its Binding", () => {
    expect(JSON.stringify(decide(observed({}, { supported: false }), due).actions)).toContain(
      "Kubernetes 1.35 or newer",
    );
  });

  test("stays with pods of its group on the host's nodes, and waits until unknown places of its group are known", () => {
    const group = (onHost?: boolean): Partial<Observed> => ({
      group: () => ({ text: "group flow", ...(onHost === undefined ? {} : { onHost }) }),
    });
    const actions = (others: Partial<Observed>): unknown => decide(observed({}, others), due).actions;
    expect(actions(group(true))).toEqual([
      { type: "tell", uid: "uid-1", message: "stays on this cluster: group flow has pods on its nodes" },
    ]);
    expect(actions(group())).toEqual([{ type: "readHostGroups", uid: "uid-1" }]);
    expect(actions(group(false))).toMatchObject([{ type: "overflow", member: "west" }]);
    expect(decide(observed({}, group(true)), due).requeueAt).toBeGreaterThan(due);
    // Without room in any member, unknown places do not matter.
    const full = { ...group(), view: () => world(observed().pod, []) };
    expect(actions(full)).toMatchObject([
      { type: "tell", message: expect.stringContaining("no member cluster has room") },
    ]);
  });

  test.each([
    ["a claim", { persistentVolumeClaim: { claimName: "data" } }],
    ["a claim of its own", { ephemeral: { volumeClaimTemplate: { spec: {} } } }],
  ])("stays with %s, and its author is told once", (_, source) => {
    const spec = { volumes: [{ name: "data", ...source }] };
    expect(decide(observed({ spec }), due).actions).toEqual([
      {
        type: "tell",
        uid: "uid-1",
        message: "stays on this cluster: its claim is this cluster's (spec.volumes: data)",
      },
    ]);
    expect(decide(observed({ spec }, { reported: true }), due).actions).toEqual([]);
  });
});

describe("a pod for which no member has room either", () => {
  const full = { cpu: 1, pods: 0 };
  const candidate = { name: "west", labels: {}, allocatable: full, largestNode: full, used: {} };

  test("stays, and its author is told why, once", () => {
    const view: Observed["view"] = () => world(observed().pod, [member("west", { candidate })]);
    const [told] = decide(observed({}, { view }), due).actions;
    expect(told).toMatchObject({ type: "tell" });
    expect(JSON.stringify(told)).toContain("no member cluster has room either: west: ");
    expect(decide(observed({}, { view, reported: true }), due).actions).toEqual([]);
  });

  test("is tried again in a member that refused it after a while, and goes elsewhere meanwhile", () => {
    const refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" } as const;
    const refusedBefore = (name: string) => (name === "west" ? { refusal, until: due + 30_000 } : undefined);
    const both: Observed["view"] = () => world(observed().pod, [member("west"), member("east")], { refusedBefore });
    expect(decide(observed({}, { view: both }), due).actions).toMatchObject([{ type: "overflow", member: "east" }]);
    const one: Observed["view"] = () => world(observed().pod, [member("west")], { refusedBefore });
    expect(decide(observed({}, { view: one }), due)).toMatchObject({
      actions: [{ type: "tell", message: "no member cluster has room either: west: exceeded quota" }],
      requeueAt: due + 30_000,
    });
  });

  test("waits silently while an earlier pod's delegate has its name", () => {
    const held = member("west", { delegate: delegateOf(pod({ uid: "earlier" })) });
    const view: Observed["view"] = () => world(observed().pod, [held]);
    expect(decide(observed({}, { view }), due)).toEqual({ actions: [], outcome: "Waiting", requeueAt: due + 1000 });
  });

  test("follows its group", () => {
    const view: Observed["view"] = () => world(observed().pod, [member("west")], { follows: true });
    expect(decide(observed({}, { view }), due)).toMatchObject({ actions: [], requeueAt: due + 1000 });
  });
});

describe("the waiting time of a pod without a node", () => {
  const waiting = pod({ status: unschedulable() });
  test.each([
    ["counts from its condition by default", { unplacedAt: start + 90_000 }, start],
    [
      "counts from the removal of a gate, which the condition does not show",
      { otherwiseAt: start + 60_000, unplacedAt: start + 61_000 },
      start + 60_000,
    ],
    [
      "is not shortened by another machine's clock",
      { otherwiseAt: start - 9_000, unplacedAt: start - 8_000 },
      start - 8_000,
    ],
  ])("%s", (_, seen, expected) => {
    expect(unschedulableSince(waiting, seen)).toBe(expected);
  });

  test("starts over when the host may place the pod, and survives a clock that is set back", () => {
    const times = new UnschedulableSince();
    times.note(pod(), 1000);
    times.note(waiting, 2000);
    times.note(waiting, 3000);
    expect(times.of("uid-1", 4000)).toEqual({ otherwiseAt: 1000, unplacedAt: 2000 });
    expect(times.of("uid-1", 500)).toEqual({ otherwiseAt: 500, unplacedAt: 500 });
    times.note(pod({ status: { ...unschedulable(), nominatedNodeName: "node-1" } }), 5000);
    times.note(waiting, 6000);
    expect(times.of("uid-1", 7000)).toEqual({ otherwiseAt: 5000, unplacedAt: 6000 });
    times.forget("uid-1");
    expect(times.of("uid-1", 8000)).toEqual({ unplacedAt: 8000 });
  });
});
