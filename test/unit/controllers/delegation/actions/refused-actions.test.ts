import { describe, expect, test } from "vitest";
import { objectKey } from "../../../../../src/api/kubernetes.ts";
import { RefusedActions } from "../../../../../src/controllers/delegation/actions/refused-actions.ts";
import type { Action } from "../../../../../src/controllers/delegation/decision/decision.ts";
import type { ControllerEvents } from "../../../../../src/controllers/events.ts";
import { RefusedWrites } from "../../../../../src/controllers/refused-writes.ts";
import type { KubeError, KubeErrorCode } from "../../../../../src/kube/errors.ts";
import { Events } from "../../../../../src/runtime/event-bus.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";

const proxy = proxyPod({ uid: "proxy-uid" });
const proxyUid = "proxy-uid";
const key = objectKey({ namespace: "team", name: "web-0" });
const toWest = { member: "west", proxyUid } as const;
const delegate = { delegateUid: "delegate-uid", memberNode: "node-1" };
const body = { metadata: { uid: "delegate-uid" } };
const patch = { metadata: { uid: proxyUid }, status: {} };
const refusal = { cluster: "west", reason: "Full", message: "full" } as const;
const said = { proxyUid, reason: "NotPlaced", message: "west: full" };

/** Every kind of action, and the reason of its reported refusal; undefined if its own code reports it, or it writes nothing. */
const actions: Readonly<Record<Action["type"], readonly [Action, string | undefined]>> = {
  delete: [{ type: "delete", member: "west", uid: "delegate-uid" }, "DeletionRefused"],
  deleteProxy: [{ type: "deleteProxy", proxyUid }, "ReleaseRefused"],
  removeFinalizer: [{ type: "removeFinalizer", proxyUid }, "ReleaseRefused"],
  evict: [{ type: "evict", proxyUid, graceSeconds: 1 }, "EvictionRefused"],
  addFinalizer: [{ type: "addFinalizer", proxyUid }, "NotHeld"],
  recordDelegate: [{ type: "recordDelegate", proxyUid, resourceVersion: "1", ...delegate }, "NotRecorded"],
  status: [{ type: "status", patch, resourceVersion: "1" }, "StatusRefused"],
  report: [{ type: "report", ...said }, "NotPlaced"],
  forward: [{ type: "forward", ...toWest, patch: { body }, resourceVersion: "1" }, "NotForwarded"],
  restoreMarks: [{ type: "restoreMarks", ...toWest, delegateUid: "delegate-uid" }, "NotFollowed"],
  confirmCreated: [{ type: "confirmCreated", ...toWest }, "NotFollowed"],
  create: [{ type: "create", ...toWest, controlled: false }, undefined],
  bind: [{ type: "bind", ...toWest, ...delegate }, undefined],
  readPreviousDelegate: [{ type: "readPreviousDelegate", proxyUid, members: [] }, undefined],
  announce: [{ type: "announce", ...said }, undefined],
  prepare: [{ type: "prepare", ...toWest }, undefined],
  reserve: [{ type: "reserve", ...toWest, requests: {} }, undefined],
  gather: [{ type: "gather", ...toWest }, undefined],
  handOver: [{ type: "handOver", proxyUid }, undefined],
  noteRefusal: [{ type: "noteRefusal", proxyUid, refusal, nodesVersion: 1, sharedBy: undefined }, undefined],
  sweep: [{ type: "sweep", ...toWest, uid: "delegate-uid" }, undefined],
};

function answered(code: KubeErrorCode, status?: number, detail = "policy 'keep' says no"): KubeError {
  const fields = { verb: "delete", namespace: "team", objectName: "web-0" };
  return kubeError(code, detail, { ...fields, ...(status === undefined ? {} : { status }) });
}

function refusals() {
  const clock = { at: 1_000_000 };
  const told: { readonly reason: string; readonly message: string }[] = [];
  const memories = new Memories({ now: () => clock.at });
  let woken = 0;
  const events = new Events<ControllerEvents>();
  events.on("refusedWrite", () => {
    woken += 1;
  });
  const recorder = { record: (_about: unknown, news: (typeof told)[number]) => void told.push(news) };
  const subject = new RefusedActions(new RefusedWrites({ writes: memories.writes, recorder, events }), {
    get: () => proxy,
  });
  return {
    subject,
    told,
    clock,
    memory: () => Object.values(memories.of(proxyUid).held ?? {}).filter(({ refusal }) => refusal !== undefined),
    woken: () => woken,
  };
}

describe("an action that is refused for good", () => {
  test.each(Object.values(actions))("is reported for $type by the reason %s", (action, reason) => {
    const { subject, told, memory, woken } = refusals();
    for (let attempts = 0; attempts < 3; attempts += 1) subject.failed(key, action, answered("Forbidden", 403));
    expect(told.map((each) => each.reason)).toEqual(reason === undefined ? [] : [reason]);
    expect([memory().length, woken()]).toEqual(reason === undefined ? [0, 0] : [1, 1]);
    for (const { message } of told) {
      expect(message).toContain("policy 'keep' says no");
      expect(message).toMatch(/this cluster refuses|^west: its API server/);
    }
  });

  test("is over once it is done", () => {
    const { subject, memory, woken } = refusals();
    const [removal] = actions.delete;
    subject.failed(key, removal, answered("Forbidden", 403));
    subject.done(key, actions.deleteProxy[0]);
    expect(memory()).toHaveLength(1);
    subject.done(key, removal);
    expect([memory().length, woken()]).toEqual([0, 2]);
  });

  test("is reported again when its event expires, and at once with another message", () => {
    const { subject, told, clock } = refusals();
    const [removal] = actions.delete;
    const fail = (error: KubeError): void => subject.failed(key, removal, error);
    fail(answered("Forbidden", 403));
    clock.at += 60 * 60_000;
    fail(answered("Forbidden", 403));
    expect(told.length).toBe(2);
    fail(answered("Forbidden", 403, "another policy"));
    expect(told.length).toBe(3);
  });
});

describe("an action that fails otherwise", () => {
  const [removal] = actions.delete;
  test.each<[string, KubeError, number]>([
    ["is reported when its webhook has not answered for ten seconds", answered("ServerError", 500), 1],
    ["is reported when it has met conflicts for ten seconds", answered("Conflict", 409), 1],
    ["is not reported where the member does not answer: its node shows that", answered("NotSent"), 0],
  ])("%s", (_, error, times) => {
    const { subject, told, clock } = refusals();
    subject.failed(key, removal, error);
    clock.at += 9_000;
    subject.failed(key, removal, error);
    expect(told).toEqual([]);
    clock.at += 1_000;
    subject.failed(key, removal, error);
    expect(told.length).toBe(times);
  });

  test.each([
    ["a deletion", actions.delete[0]],
    ["a status", actions.status[0]],
    ["a change", actions.forward[0]],
  ])("starts over after it was done: %s", (_, action) => {
    const { subject, told, clock } = refusals();
    subject.failed(key, action, answered("Conflict", 409));
    subject.done(key, action);
    clock.at += 60_000;
    subject.failed(key, action, answered("Conflict", 409));
    expect(told).toEqual([]);
  });

  test("is not reported on a pod that has taken the name", () => {
    const { subject, told } = refusals();
    subject.failed(key, { type: "removeFinalizer", proxyUid: "earlier" }, answered("Forbidden", 403));
    expect(told).toEqual([]);
  });
});
