import { describe, expect, test } from "vitest";
import { HOST_LABEL, OWNER_ANNOTATION } from "../../../../../src/api/keys.ts";
import { objectKey, type Pod, type Stored } from "../../../../../src/api/kubernetes.ts";
import { restoreDelegateMarks } from "../../../../../src/controllers/delegation/actions/restore-delegate-marks.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import type { View } from "../../../../../src/controllers/delegation/decision/view.ts";
import type { KubeError, KubeErrorCode } from "../../../../../src/kube/errors.ts";
import type { Expectation } from "../../../../../src/runtime/controller.ts";
import { HOLD_MS } from "../../../../../src/runtime/held-writes.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { DELEGATE_MARKS } from "../../../../../src/scheduling/memory.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import { member as memberOf } from "../../../../support/builders/member.ts";
import { endedStatus, runningStatus } from "../../../../support/builders/pod.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { registryOf } from "../../fleet.ts";
import { boundProxy, delegateOf, gone, member, memory, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const deleting = { deletionTimestamp: "2026-02-03T04:05:00Z" };
const action = { type: "restoreMarks", member: "west", proxyUid: "uid-1", delegateUid: "delegate-uid" } as const;
const running = boundProxy({ status: runningStatus() });
const ending = boundProxy({ metadata: { ...deleting, deletionGracePeriodSeconds: 17 }, status: runningStatus() });

describe("a delegate that its member no longer shows", () => {
  test.each([
    ["of a pod that runs", running],
    ["of a pod that has not started", boundProxy()],
    ["of a pod that is being deleted", ending],
  ])("is asked for before its end is written: %s", (_case, proxy) => {
    const departed = delegateOf(proxy, { status: proxy.status ?? {} });
    for (const parts of [{}, { departed }, { departed: delegateOf(proxy, { uid: "other", metadata: deleting }) }]) {
      const expected = proxy === ending ? { ...action, ends: { gracePeriodSeconds: 17 } } : action;
      expect(decide(world(proxy, [member("west", parts)]), now)).toEqual({ actions: [expected], outcome: "Looking" });
    }
    expect(decide(world(proxy, [member("west")], gone), now).outcome).not.toBe("Looking");
  });

  test.each([
    ["on its way out", { metadata: deleting, status: runningStatus() }],
    ["with its work done", { status: endedStatus(0) }],
  ])("is not asked for when it was last seen %s", (_case, parts) => {
    for (const proxy of [running, ending]) {
      const west = member("west", { departed: delegateOf(proxy, parts) });
      expect(decide(world(proxy, [west]), now).outcome).not.toBe("Looking");
    }
  });

  test("is not asked for in a member that does not answer", () => {
    for (const proxy of [running, ending]) {
      expect(decide(world(proxy, [member("west", { reachable: false })]), now).actions).toEqual([]);
    }
  });

  test("is left alone for a while when it does not get its marks back", () => {
    const observed = world(running, [member("west")], {
      memory: memory({ ineffective: new Map([[DELEGATE_MARKS, now + 5]]) }),
    });
    expect(decide(observed, now)).toEqual({ actions: [], outcome: "Looking", requeueAt: now + 5 });
    expect(decide(observed, now + 5).actions).toEqual([action]);
    // The end of the proxy does not wait.
    const over = decide({ ...observed, proxy: ending }, now).actions;
    expect(over).toEqual([{ ...action, ends: { gracePeriodSeconds: 17 } }]);
  });

  test("is not swept under the name of another owner, since the proxy records it", () => {
    const owner = JSON.stringify({ cluster: "cern", namespace: "team", name: "web-0", uid: "other" });
    const delegate = delegateOf(running, { metadata: { annotations: { [OWNER_ANNOTATION]: owner } } });
    expect(decide(world(running, [member("west", { delegate })]), now).actions).toEqual([action]);
  });
});

interface Answers {
  readonly find: () => Promise<Stored<Pod> | undefined>;
  readonly patch?: (object: unknown) => Promise<Stored<Pod>>;
}

function looking({ find, patch = () => Promise.reject(new Error("nobody should write")) }: Answers) {
  const memories = new Memories({ now: () => now });
  const patches: unknown[] = [];
  const told: string[] = [];
  const failures: unknown[] = [];
  const deletions: unknown[] = [];
  const client = fakeClient({
    find: find,
    delete: async (_resource: unknown, _ref: unknown, { signal: _, ...how }: { signal: AbortSignal }) => {
      deletions.push(how);
    },
    patch: (_resource: unknown, _ref: unknown, { body }: { body: unknown }) => {
      patches.push(body);
      return patch(body);
    },
  });
  const west = memberOf("west", client, { noteFailure: (error) => void failures.push(error) });
  const options = {
    registry: registryOf([west]),
    identity: { id: "host-id", name: "cern" },
    memories,
    refusedWrites: {
      tell: (_key: unknown, _uid: string, _what: string, { reason }: { readonly reason: string }) => {
        told.push(reason);
        return true;
      },
      over: () => undefined,
    },
  };
  const context = {
    key: objectKey({ namespace: "team", name: "web-0" }),
    signal: new AbortController().signal,
    heardAt: now,
    log: createLogger({ level: "silent" }),
  };
  const run = (ends?: object) =>
    restoreDelegateMarks(ends === undefined ? action : { ...action, ends }, context, options);
  return { memories, patches, told, failures, deletions, run };
}

const bare = delegateOf(running, { metadata: { labels: {}, annotations: {} } });

function isShown(shown: Expectation<View> | undefined, delegate?: Stored<Pod>): boolean | undefined {
  return shown?.(world(running, [member("west", delegate === undefined ? {} : { delegate })]));
}

describe("a member that is asked for a delegate", () => {
  test.each([
    ["has no such pod", undefined],
    ["has another one of that name", delegateOf(running, { uid: "other" })],
  ])("proves that it is gone if it %s", async (_case, there) => {
    const { memories, run } = looking({ find: async () => there });
    expect(isShown(await run())).toBe(true);
    expect(memories.of("uid-1").gone).toBe("delegate-uid");
  });

  test("proves nothing if it does not answer", async () => {
    const lost = kubeError("AnswerLost", "cut", { verb: "get" });
    const { memories, failures, run } = looking({ find: () => Promise.reject(lost) });
    await expect(run()).rejects.toBe(lost);
    expect(failures).toEqual([lost]);
    expect(memories.of("uid-1").gone).toBeUndefined();
  });

  test("waits for its watch if it has it with its marks", async () => {
    const there = delegateOf(running);
    const shown = await looking({ find: async () => there }).run();
    expect([isShown(shown), isShown(shown, there)]).toEqual([false, true]);
  });

  test.each([
    ["its label", { labels: { mine: "yes" } }],
    ["its owner annotation", { annotations: { mine: "yes" } }],
    [
      "its owner's uid",
      { annotations: { [OWNER_ANNOTATION]: '{"cluster":"c","namespace":"n","name":"n","uid":"u"}' } },
    ],
  ])("gets %s put back on this very pod", async (_case, metadata) => {
    const marked = delegateOf(running);
    const there = { ...marked, metadata: { ...marked.metadata, ...metadata } };
    const { memories, patches, run } = looking({ find: async () => there, patch: async () => marked });
    const shown = await run();
    expect(patches).toEqual([
      {
        metadata: {
          uid: "delegate-uid",
          labels: { [HOST_LABEL]: "host-id" },
          annotations: { [OWNER_ANNOTATION]: marked.metadata.annotations?.[OWNER_ANNOTATION] },
        },
      },
    ]);
    expect([isShown(shown), isShown(shown, marked)]).toEqual([false, true]);
    expect(memories.of("uid-1").gone).toBeUndefined();
  });

  const refused = (code: KubeErrorCode): KubeError => kubeError(code, "no", { verb: "patch" });

  test.each([
    ["it refuses to", () => Promise.reject(refused("Forbidden"))],
    ["it drops them", async () => bare],
  ])("has the marks reported and left alone for a while if %s", async (_case, patch) => {
    const { memories, told, run } = looking({ find: async () => bare, patch });
    expect(isShown(await run())).toBe(true);
    expect(told).toEqual(["NotFollowed"]);
    expect(memories.of("uid-1").held?.[DELEGATE_MARKS]?.until).toBe(now + HOLD_MS);
  });

  test("has the delegate deleted if it does not put the marks back while the pod is being deleted", async () => {
    let there: Stored<Pod> | undefined = bare;
    const patch = () => Promise.reject(refused("Forbidden"));
    const { memories, deletions, run } = looking({ find: async () => there, patch });
    await run({ gracePeriodSeconds: 17 });
    expect(deletions).toEqual([]);
    expect(isShown(await run({ gracePeriodSeconds: 17 }))).toBe(false);
    expect(deletions).toEqual([{ uid: "delegate-uid", gracePeriodSeconds: 17 }]);
    there = undefined;
    await run({ gracePeriodSeconds: 17 });
    expect(memories.of("uid-1").gone).toBe("delegate-uid");
  });

  test("is left alone for a while if a client there keeps removing the marks", async () => {
    const { memories, told, run } = looking({ find: async () => bare, patch: async () => delegateOf(running) });
    for (let time = 0; time < 4; time += 1) await run();
    expect(memories.of("uid-1").held).toBeUndefined();
    await run();
    expect(memories.of("uid-1").held?.[DELEGATE_MARKS]?.until).toBe(now + HOLD_MS);
    expect(told).toEqual(["NotFollowed"]);
  });

  test("is asked again if it has another pod by the time of the write", async () => {
    const { memories, run } = looking({ find: async () => bare, patch: () => Promise.reject(refused("Conflict")) });
    expect(isShown(await run())).toBe(true);
    expect(memories.of("uid-1")).toEqual({ fresh: true, attempts: {} });
  });
});
