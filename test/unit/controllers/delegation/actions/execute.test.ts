import { describe, expect, test } from "vitest";
import { PLACED_CONDITION } from "../../../../../src/api/keys.ts";
import type { OwnerReference, Pod, Stored } from "../../../../../src/api/kubernetes.ts";
import type { ActionOf } from "../../../../../src/controllers/delegation/model/decision.ts";
import { type PodParts, pod, proxyPod } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, member, world } from "../world.ts";
import { type Answers, executorOf, failure, type TestAction } from "./executing.ts";

const proxy = proxyPod();
const delegate = delegateOf(proxy);
const { uid: proxyUid } = proxy.metadata;

/** A refusal without the name of the pod that it was for. */
const wordsOf = (detail: string): string => detail.replace('pods "web-0" is forbidden: ', "");

const create = { type: "create", member: "west", proxyUid, delegate, controlled: false } as const;

describe("a delegate from which somebody has taken the marks, and that is not bound yet,", () => {
  const taken = failure("AlreadyExists", "already exists");
  const unmarked = { ...delegate, metadata: { ...delegate.metadata, labels: {}, annotations: {} } };

  test("gets them back, and no other member gets the pod", async () => {
    let patched = 0;
    let made = false;
    const { memories, execute } = executorOf({
      create: () => (made ? Promise.reject(taken) : Promise.resolve(delegate)),
      find: async () => unmarked,
      patch: async () => {
        patched += 1;
        return delegate;
      },
    });
    await execute(create);
    made = true;
    await execute(create);
    expect(patched).toBe(1);
    expect(memories.of(proxyUid)).toMatchObject({ uncertain: "west", made: delegate.metadata.uid });
    expect(memories.of(proxyUid).attempts.west?.refusal).toBeUndefined();
  });

  test("is known by what is left of them, whoever made it", async () => {
    const half = { ...unmarked, metadata: { ...unmarked.metadata, annotations: delegate.metadata.annotations ?? {} } };
    const answers = { create: () => Promise.reject(taken), find: async () => half, patch: async () => delegate };
    const { memories, execute } = executorOf(answers);
    await execute(create);
    expect(memories.of(proxyUid).uncertain).toBe("west");
  });

  test("is somebody else's when nothing says otherwise: another member gets the pod", async () => {
    const { memories, execute } = executorOf({ create: () => Promise.reject(taken), find: async () => unmarked });
    await execute(create);
    expect(memories.of(proxyUid).attempts.west?.refusal?.reason).toBe("NameTaken");
  });
});

// No API server can be made to have a creation under way that has charged the quota and is not stored yet.
test("a refusal says nothing of a creation before it that was not answered, until that one is over", async () => {
  let answer = failure("AnswerLost", "cut");
  let stored: Stored<Pod> | undefined;
  const { clock, memories, execute } = executorOf({ create: () => Promise.reject(answer), find: async () => stored });
  await expect(execute(create)).rejects.toBe(answer);
  const quota = failure("Forbidden", "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1");
  answer = quota;
  clock.now += 50;
  await expect(execute(create)).rejects.toBe(quota);
  expect(memories.of(proxyUid).uncertain).toBe("west");

  stored = delegate;
  expect(await execute(create)).toBeTypeOf("function");
  expect(memories.of(proxyUid).uncertain).toBe("west");

  stored = undefined;
  clock.now += 60_000;
  expect(await execute(create)).toBeTypeOf("function");
  expect(memories.of(proxyUid).uncertain).toBeUndefined();
});

test("a member whose own admission webhook does not answer refuses the pod; any other failure leaves it open", async () => {
  let answer = failure("ServerError", "etcdserver: request timed out");
  const { clock, memories, execute } = executorOf({
    create: () => Promise.reject(answer),
    find: async () => undefined,
  });
  await expect(execute(create)).rejects.toBe(answer);
  const { now } = clock;
  expect(memories.of(proxyUid)).toMatchObject({
    uncertain: "west",
    doubt: { since: now, lastAt: now, message: "etcdserver: request timed out" },
  });
  clock.now += 1000;
  await expect(execute(create)).rejects.toBe(answer);
  expect(memories.of(proxyUid).doubt).toMatchObject({ since: now, lastAt: now + 1000 });
  const resolve: TestAction = {
    type: "resolve",
    member: "west",
    proxyUid,
    refusal: { cluster: "west", reason: "RefusedByMember", message: "timed out" },
  };
  expect(await execute(resolve)).toBeTypeOf("function");
  expect(memories.of(proxyUid).uncertain).toBeUndefined();
  expect(memories.of(proxyUid).doubt).toBeUndefined();
  expect(memories.of(proxyUid).attempts.west).toMatchObject({ refusal: { message: "timed out" } });

  answer = failure(
    "ServerError",
    'Internal error occurred: failed calling webhook "images.example": connection refused',
  );
  memories.forget(proxyUid);
  // Most are back soon.
  await expect(execute(create)).rejects.toBe(answer);
  clock.now += 9_999;
  await expect(execute(create)).rejects.toBe(answer);
  expect(memories.of(proxyUid).uncertain).toBeUndefined();
  clock.now += 1;
  expect(await execute(create)).toBeTypeOf("function");
  expect(memories.of(proxyUid).attempts.west?.refusal).toMatchObject({
    reason: "RefusedByMember",
    message: expect.stringContaining("failed calling webhook"),
  });
});

test("room that was kept in another member is given back when the first one has found a node after all", async () => {
  const { members, memories, execute } = executorOf({ createSubresource: async () => ({}) });
  const requests = { cpu: 1, pods: 1 };
  memories.noteAttempt(proxyUid, "west", 0);
  members.west.load.reserve(proxyUid, requests);
  // The withdrawal from west finds the delegate changed.
  const promise: TestAction = { type: "promise", member: "east", proxyUid, requests };
  await execute(promise);
  expect(members.east.load.used).toEqual(requests);
  members.west.load.reserve(proxyUid, requests);
  await execute({ type: "bind", member: "west", proxyUid, delegateUid: delegate.metadata.uid, memberNode: "n1" });
  expect(members.east.load.used).toEqual({ cpu: 0, pods: 0 });
  expect(members.west.load.used).toEqual(requests);
});

test.each([
  { what: "is done", createSubresource: async () => ({}) },
  { what: "is not answered", createSubresource: () => Promise.reject(failure("AnswerLost", "timed out")) },
])("a Binding to a lost member that $what names no delegate, and nothing of the doubt is forgotten", async (host) => {
  const bodies: unknown[] = [];
  const { memories, execute } = executorOf({
    createSubresource: (...[, , , body]: readonly unknown[]) => {
      bodies.push(body);
      return host.createSubresource();
    },
  });
  memories.noteUncertain(proxyUid, "west");
  await execute({ type: "bind", member: "west", proxyUid }).catch(() => undefined);
  expect(bodies).toMatchObject([{ metadata: { uid: proxyUid, annotations: { "legation.dev/cluster": "west" } } }]);
  expect(JSON.stringify(bodies)).not.toMatch(/delegate-uid|member-node/);
  expect(memories.of(proxyUid)).toMatchObject({ uncertain: "west", binding: "west" });
});

test("a member that will not delete what a proxy of another has there holds nothing up", async () => {
  const { execute } = executorOf({ remove: () => Promise.reject(failure("ServerError", "no")) });
  const remove: TestAction = { type: "delete", member: "west", uid: "forged" };
  await expect(execute(remove)).rejects.toThrow("no");
  expect(await execute({ ...remove, surplus: true })).toBeUndefined();
});

test("a delegate that is on record is in no doubt any more, unless the record was refused", async () => {
  let answer = (): Promise<unknown> => Promise.reject(failure("Conflict", "the pod has changed"));
  const { memories, execute } = executorOf({ patch: () => answer() });
  memories.noteUncertain(proxyUid, "west");
  const record: TestAction = {
    type: "record",
    proxyUid,
    resourceVersion: "1",
    delegateUid: "delegate-uid",
    memberNode: "n",
  };
  await expect(execute(record)).rejects.toThrow("the pod has changed");
  expect(memories.of(proxyUid).uncertain).toBe("west");
  answer = async () => proxy;
  expect(await execute(record)).toBeTypeOf("function");
  expect(memories.of(proxyUid).uncertain).toBeUndefined();
});

test.each(["Forbidden", "Unprocessable"] as const)(
  "a condition that this cluster refuses (%s) holds nothing up",
  async (code) => {
    let answer = (): Promise<unknown> => Promise.reject(failure("ServerError", "no"));
    const { memories, told, execute } = executorOf({ patch: () => answer(), proxyOf: () => proxy });
    const report: TestAction = { type: "report", proxyUid, reason: "NotPlaced", message: "west: full" };
    await expect(execute(report)).rejects.toThrow("no");
    expect(memories.of(proxyUid).told).toBeUndefined();
    answer = () => Promise.reject(failure(code, "denied by policy"));
    expect(await execute(report)).toBeTypeOf("function");
    // As an event it is told, and it is not tried again.
    expect(told).toEqual([{ reason: "NotPlaced", message: "west: full" }]);
    expect(memories.of(proxyUid).told?.message).toBe("west: full");
  },
);

const unasked = failure("ServerError", 'Internal error occurred: failed calling webhook "images.example": refused');

test("a pod that is made again in its member, whose webhook does not answer, says so and is made when it does", async () => {
  let fails: unknown = unasked;
  const { clock, memories, told, execute } = executorOf({
    create: () => Promise.reject(fails),
    proxyOf: () => boundProxy(),
  });
  await expect(execute(create)).rejects.toBe(unasked);
  expect(told).toEqual([]);
  for (const later of [10_000, 2_400_000]) {
    clock.now += later;
    await expect(execute(create)).rejects.toBe(unasked);
  }
  expect(told).toMatchObject([{ reason: "RefusedByMember", message: expect.stringContaining("images.example") }]);
  expect(memories.of(proxyUid).attempts.west).not.toHaveProperty("refusal");
  // What was in the way before does not count against what is now.
  fails = failure("Forbidden", "exceeded quota");
  await expect(execute(create)).rejects.toBe(fails);
  clock.now += 9_999;
  await expect(execute(create)).rejects.toBe(fails);
  expect(memories.of(proxyUid).attempts.west).not.toHaveProperty("refusal");
  clock.now += 1;
  expect(await execute(create)).toBeTypeOf("function");
  expect(memories.of(proxyUid).attempts.west).toHaveProperty("refusal");
});

describe("a bound pod that is made again in its member, for which a refusal would be the end,", () => {
  const quota = 'pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1';
  const ending =
    'pods "web-0" is forbidden: unable to create new content in namespace team because it is being terminated';
  const unwell =
    'pods "web-0" is forbidden: User "legation" cannot create resource "pods" in API group "" in the namespace';
  const made = (detail: string) => {
    const answer = failure("Forbidden", detail);
    return { answer, ...executorOf({ create: () => Promise.reject(answer), proxyOf: () => boundProxy() }) };
  };

  test.each([
    ["the quota still counts the delegate before it", quota],
    ["a quota was just made", 'pods "web-0" is forbidden: status unknown for quota: small, resources: pods'],
    ["a policy is there for a moment", 'pods "web-0" is forbidden: denied by policy'],
  ])("is not ended by what passes in a moment, but by what lasts: %s", async (_, detail) => {
    const { answer, clock, memories, execute } = made(detail);
    await expect(execute(create)).rejects.toBe(answer);
    clock.now += 9_999;
    await expect(execute(create)).rejects.toBe(answer);
    expect(memories.of(proxyUid).attempts.west).not.toHaveProperty("refusal");
    clock.now += 1;
    expect(await execute(create)).toBeTypeOf("function");
    expect(memories.of(proxyUid).attempts.west).toMatchObject({
      refusal: { message: expect.stringContaining(wordsOf(detail)) },
    });
  });

  test.each([
    ["its namespace ends there", ending],
    ["its member has not yet read Legation's rights, or has taken them away", unwell],
    ["its member's admission has only begun to start", 'pods "web-0" is forbidden: not yet ready to handle request'],
  ])("waits and says so, however long: %s", async (_, detail) => {
    const { answer, clock, memories, told, execute } = made(detail);
    await expect(execute(create)).rejects.toBe(answer);
    expect(told).toEqual([]);
    for (const later of [10_000, 2_400_000]) {
      clock.now += later;
      await expect(execute(create)).rejects.toBe(answer);
    }
    expect(told).toMatchObject([{ reason: "RefusedByMember", message: expect.stringContaining(wordsOf(detail)) }]);
    expect(memories.of(proxyUid).attempts.west).not.toHaveProperty("refusal");
  });
});

test("a namespace that ends in a member refuses a pod at once, for another may take it, and never for longer", async () => {
  const detail =
    'pods "web-0" is forbidden: unable to create new content in namespace team because it is being terminated';
  const { clock, memories, execute } = executorOf({ create: () => Promise.reject(failure("Forbidden", detail)) });
  for (const _ of [1, 2, 3]) {
    expect(await execute(create)).toBeTypeOf("function");
    const attempt = memories.of(proxyUid).attempts.west;
    expect(attempt).toMatchObject({
      refusal: { message: expect.stringContaining(wordsOf(detail)) },
      until: clock.now + 30_000,
    });
    clock.now += 30_000;
  }
});

test("one that has overflowed is refused by it after a while, so that others like it need not follow", async () => {
  const annotations = { "legation.dev/cluster": "west" };
  const overflowed = proxyPod({ metadata: { annotations }, spec: { nodeName: "legation-west" } });
  const { clock, memories, execute } = executorOf({
    create: () => Promise.reject(unasked),
    proxyOf: () => overflowed,
  });
  await expect(execute(create)).rejects.toBe(unasked);
  clock.now += 10_000;
  expect(await execute(create)).toBeTypeOf("function");
  expect(memories.of(proxyUid).attempts.west).toHaveProperty("refusal");
});

describe("a member that goes on saying that it may take the pod in a moment refuses it in the end:", () => {
  const answers = {
    "the namespace's default account is not there": failure(
      "Forbidden",
      'pods "web-0" is forbidden: error looking up service account team/default: serviceaccount "default" not found',
    ),
    "its namespace is not there, though it was just made": failure("NotFound", 'namespaces "team" not found'),
    "too many requests": failure("TooManyRequests", "too many requests, please try again later"),
    "its webhook does not answer": unasked,
  };
  const each = Object.entries(answers).map(([what, answer]) => ({ what, answer }));

  test.each(each)("$what", async ({ answer }) => {
    const { clock, members, memories, execute } = executorOf({ create: () => Promise.reject(answer) });
    memories.noteAttempt(proxyUid, "west", clock.now);
    // Its turn came late, which the member is not to blame for.
    clock.now += 60_000;
    await expect(execute(create)).rejects.toBe(answer);
    clock.now += 9_999;
    await expect(execute(create)).rejects.toBe(answer);
    expect(memories.of(proxyUid).attempts.west).not.toHaveProperty("refusal");
    expect(members.west.load.used).toEqual({ pods: 0 });
    clock.now += 1;
    expect(await execute(create)).toBeTypeOf("function");
    expect(memories.of(proxyUid).attempts.west?.refusal).toMatchObject({
      reason: "RefusedByMember",
      message: expect.stringContaining(wordsOf(answer.detail)),
    });
    expect(memories.of(proxyUid).uncertain).toBeUndefined();
  });

  test.each(each)("$what, unless it was away meanwhile", async ({ answer }) => {
    const { clock, members, execute } = executorOf({ create: () => Promise.reject(answer) });
    await expect(execute(create)).rejects.toBe(answer);
    clock.now += 3_600_000;
    members.west.reachableSince = clock.now;
    await expect(execute(create)).rejects.toBe(answer);
    clock.now += 10_000;
    expect(await execute(create)).toBeTypeOf("function");
  });

  test.each(each)("$what, unless the pod can go nowhere else: it says so", async ({ answer }) => {
    const { clock, memories, told, execute } = executorOf({
      create: () => Promise.reject(answer),
      proxyOf: () => boundProxy(),
    });
    await expect(execute(create)).rejects.toBe(answer);
    clock.now += 10_000;
    await expect(execute(create)).rejects.toBe(answer);
    expect(told).toMatchObject([
      { reason: "RefusedByMember", message: expect.stringContaining(wordsOf(answer.detail)) },
    ]);
    expect(memories.of(proxyUid).attempts.west).not.toHaveProperty("refusal");
  });

  test.each(each)("$what, unless an earlier creation may have been done", async ({ answer }) => {
    let stored: Stored<Pod> | undefined;
    const { clock, memories, execute } = executorOf({ create: () => Promise.reject(answer), find: async () => stored });
    memories.noteAttempt(proxyUid, "west", clock.now);
    memories.noteUncertain(proxyUid, "west", { at: clock.now, message: "cut" });
    await expect(execute(create)).rejects.toBe(answer);
    expect(memories.of(proxyUid).uncertain).toBe("west");
    stored = delegate;
    clock.now += 60_000;
    expect(await execute(create)).toBeTypeOf("function");
    expect(memories.of(proxyUid).uncertain).toBe("west");
  });
});

describe("a quota that refuses a pod", () => {
  const full = "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1";
  const unknown = "status unknown for quota: small, resources: pods";

  test.each([
    ["may still count a delegate that has just ended: it is asked again soon, once", full, ["team"], 2_000],
    ["may have been made a moment ago: it is asked again soon, once", unknown, [], 2_000],
    ["is full when no delegate has ended in its namespace", full, ["other"], 30_000],
  ])("%s", async (_, detail, endedIn, firstMs) => {
    const answer = failure("Forbidden", `pods "web-0" is forbidden: ${detail}`);
    const { clock, memories, execute } = executorOf({ create: () => Promise.reject(answer), endedIn });
    const waits: number[] = [];
    for (const wait of [1, 2, 3]) {
      await execute(create);
      const { until = 0 } = memories.of(proxyUid).attempts.west ?? {};
      waits[wait - 1] = until - clock.now;
      clock.now = until;
    }
    expect(waits).toEqual(firstMs === 2_000 ? [2_000, 30_000, 60_000] : [30_000, 60_000, 120_000]);
  });
});

describe("pods that wait for a quota hear", () => {
  const west = { member: "west", namespace: "team" };

  test("of one more that it has no room for", async () => {
    const full = 'pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1';
    const { quotas, execute } = executorOf({ create: () => Promise.reject(failure("Forbidden", full)) });
    await execute(create);
    expect(quotas.refused.mock.calls).toEqual([[west, proxyUid, "team/web-0"]]);
    expect(quotas.accepted).not.toHaveBeenCalled();
  });

  test("of one that was made, and of none that was refused for something else", async () => {
    let answer: Promise<unknown> = Promise.reject(failure("Forbidden", 'pods "web-0" is forbidden: no such class'));
    const { quotas, execute } = executorOf({ create: () => answer });
    await execute(create);
    expect(quotas.refused).not.toHaveBeenCalled();
    answer = Promise.resolve(delegate);
    await execute(create);
    expect(quotas.accepted.mock.calls).toEqual([[west, proxyUid]]);
  });
});

test("a delegate whose proxy has a controller is its namespace's, and not sent before that is known", async () => {
  const namespace = { apiVersion: "v1", kind: "Namespace", name: "team", uid: "ns-1", controller: true };
  const made: unknown[] = [];
  let known = (): Promise<OwnerReference[]> => Promise.reject(failure("AnswerLost", "timed out"));
  const { memories, execute } = executorOf({
    controllersOf: () => known(),
    create: async (_resource, pod) => {
      made.push((pod as Pod).metadata?.ownerReferences);
      return delegate;
    },
  });
  const controlled: TestAction = { ...create, controlled: true };
  await expect(execute(controlled)).rejects.toMatchObject({ code: "AnswerLost", detail: "timed out" });
  const untold = 'namespaces "team" not found, and spec.createNamespaces of Cluster west is false';
  known = () => Promise.reject(failure("NotFound", untold));
  expect(await execute(controlled)).toBeTypeOf("function");
  expect(memories.of(proxyUid).attempts.west?.refusal?.message).toContain(untold);
  known = async () => [namespace];
  await execute(controlled);
  await execute(create);
  expect(made).toEqual([[namespace], undefined]);
});

const isolated: TestAction = { ...create, delegate: { ...delegate, spec: { containers: [], hostUsers: false } } };

describe("a request before the creation that has no plain answer, of which the delegate cannot be made:", () => {
  const cut = failure("AnswerLost", "cut");
  const before: Record<string, { readonly action: TestAction; readonly answers: (fails: () => unknown) => Answers }> = {
    "the dry run": {
      action: isolated,
      answers: (fails) => ({
        create: (_resource, _pod, { dryRun }) => Promise.reject(dryRun === true ? fails() : cut),
      }),
    },
    "the read of its namespace": {
      action: { ...create, controlled: true },
      answers: (fails) => ({ create: () => Promise.reject(cut), controllersOf: () => Promise.reject(fails()) }),
    },
    "the creation of its namespace": {
      action: create,
      answers: (fails) => ({
        create: () => Promise.reject(failure("NotFound", 'namespaces "team" not found')),
        createIn: async (make) => {
          await expect(make(false)).rejects.toThrow("not found");
          throw fails();
        },
      }),
    },
  };
  const cases = Object.entries(before).flatMap(([what, parts]) =>
    (["AnswerLost", "ServerError", "BadAnswer"] as const).map((code) => ({ what, code, ...parts })),
  );

  test.each(cases)(
    "$what ($code) leaves nothing in doubt, and gives the room back",
    async ({ action, answers, code }) => {
      const lost = failure(code, "nobody knows");
      const { members, memories, execute } = executorOf(answers(() => lost));
      await expect(execute(action)).rejects.toBe(lost);
      expect(memories.of(proxyUid).uncertain).toBeUndefined();
      expect(memories.of(proxyUid).doubt).toBeUndefined();
      expect(members.west.load.used).toEqual({ pods: 0 });
    },
  );

  test.each(cases)("$what ($code) that goes on failing is a refusal", async ({ action, answers, code }) => {
    const failing = failure(code, "nobody knows");
    const { clock, memories, execute } = executorOf(answers(() => failing));
    await expect(execute(action)).rejects.toBe(failing);
    clock.now += 10_000;
    expect(await execute(action)).toBeTypeOf("function");
    const { refusal } = memories.of(proxyUid).attempts.west ?? {};
    expect(refusal?.message).toBe(
      "its API server failed before it was sent the pod (create pods team/web-0): nobody knows",
    );
    expect(memories.of(proxyUid).uncertain).toBeUndefined();
  });

  const each = Object.entries(before).map(([what, parts]) => ({ what, ...parts }));
  test.each(each)("$what does not end the doubt about an earlier creation", async ({ action, answers }) => {
    const lost = failure("AnswerLost", "timed out");
    const { members, memories, execute } = executorOf(answers(() => lost));
    memories.noteUncertain(proxyUid, "west");
    await expect(execute(action)).rejects.toBe(lost);
    expect(memories.of(proxyUid)).toMatchObject({ uncertain: "west", doubt: { message: "timed out" } });
    expect(members.west.load.used).toEqual({ pods: 1 });
  });
});

test("a member that would drop a field of the pod is asked before, and refuses it", async () => {
  const sent: boolean[] = [];
  let keeps = false;
  const { members, memories, execute } = executorOf({
    create: async (_resource, pod, options) => {
      sent.push(options.dryRun === true);
      const { hostUsers: _dropped, ...rest } = (pod as Pod).spec ?? { containers: [] };
      return keeps ? pod : { ...(pod as Pod), spec: rest };
    },
  });
  await execute(isolated);
  expect(memories.of(proxyUid).attempts.west?.refusal).toMatchObject({
    reason: "RefusedByMember",
    message: expect.stringContaining("it would run without spec.hostUsers"),
  });
  expect(sent).toEqual([true]);
  keeps = true;
  await execute(isolated);
  // It is known now, as long as the member's version is the same.
  await execute(isolated);
  expect(sent.splice(0)).toEqual([true, true, false, false]);
  members.west.probed.version = "v1.30.1";
  await execute(isolated);
  expect(sent).toEqual([true, false]);
});

test("a member that cannot be asked is given the pod; one that fails to answer is asked again, as for the pod itself", async () => {
  const webhook = 'Internal error occurred: failed calling webhook "images.example": refused';
  let answer = failure("ServerError", webhook);
  const { clock, memories, execute } = executorOf({
    create: (_resource, pod, options) => (options.dryRun === true ? Promise.reject(answer) : Promise.resolve(pod)),
  });
  await expect(execute(isolated)).rejects.toBe(answer);
  clock.now += 10_000;
  expect(await execute(isolated)).toBeTypeOf("function");
  expect(memories.of(proxyUid).attempts.west?.refusal?.message).toContain("failed calling webhook");
  memories.forget(proxyUid);
  answer = failure("BadRequest", 'webhook "w" does not support dry run');
  await execute(isolated);
  expect(memories.of(proxyUid)).toMatchObject({ uncertain: "west" });
});

test("that a proxy waits is said of it as it was when that was decided: said long after, it would take back that it is scheduled", async () => {
  const gated = { type: "PodScheduled", status: "False", reason: "SchedulingGated" };
  const waiting = proxyPod({ metadata: { resourceVersion: "7" }, status: { phase: "Pending", conditions: [gated] } });
  const { execute, told, writes } = executorOf({
    proxyOf: () => waiting,
    patch: () => Promise.reject(failure("Conflict", "the object has been modified")),
  });
  const report: TestAction = { type: "report", proxyUid, reason: "NotPlaced", message: "west: full" };
  await expect(execute(report)).rejects.toMatchObject({ code: "Conflict" });
  expect(writes).toEqual([{ to: "host patch status", demands: { uid: proxyUid, resourceVersion: "7" } }]);
  expect(told).toEqual([]);
});

describe("a proxy that waits", () => {
  const waits: ActionOf<"report"> = { type: "report", proxyUid, reason: "NotPlaced", message: "west: full" };
  const waitsInMember: TestAction = { ...waits, bound: true };
  const former = { type: PLACED_CONDITION, status: "True" };
  const nodeName = "legation-west";
  const writtenFor = async (parts: PodParts, report: TestAction): Promise<unknown[]> => {
    const written: unknown[] = [];
    const { execute } = executorOf({
      proxyOf: () => proxyPod(parts),
      patch: (async (_resource: unknown, _ref: unknown, { body }: { readonly body: Pod }) => {
        written.push(body.status?.conditions);
        return proxyPod(parts);
      }) as never,
    });
    await execute(report);
    return written;
  };

  test.each<[string, PodParts, TestAction, object[]]>([
    ["in its condition PodScheduled", {}, waits, [[{ type: "PodScheduled" }]]],
    [
      "and no longer in the condition of an earlier version",
      { status: { phase: "Pending", conditions: [former] } },
      waits,
      [[{ type: "PodScheduled" }, { type: PLACED_CONDITION, $patch: "delete" }]],
    ],
    [
      "as its kubelet would, once it is bound",
      { spec: { nodeName } },
      waitsInMember,
      [[{ type: "PodReadyToStartContainers" }]],
    ],
    ["in an event alone, when it was bound meanwhile", { spec: { nodeName } }, waits, []],
    ["in an event alone, when another pod has its name by now", { uid: "another" }, waits, []],
  ])("says so %s", async (_, parts, report, conditions) => {
    expect(await writtenFor(parts, report)).toMatchObject(conditions);
  });
});

describe("a write to a pod that is there demands that it is", () => {
  const uid = "delegate-uid";
  const remove: TestAction = { type: "delete", member: "west", uid };
  const resized = { uid, resourceVersion: "3" };
  test.each<[string, TestAction, string, object]>([
    ["the very delegate", remove, "west delete", { uid }],
    ["ending as gently", { ...remove, graceSeconds: 17 }, "west delete", { uid, gracePeriodSeconds: 17 }],
    ["without a node still", { ...remove, resourceVersion: "7" }, "west delete", { uid, resourceVersion: "7" }],
    ["the very delegate, of a proxy elsewhere", { ...remove, surplus: true }, "west delete", { uid }],
    [
      "the very delegate, of a proxy that is gone",
      { ...remove, type: "sweep", proxyUid: "old" },
      "west delete",
      { uid },
    ],
    [
      "as it was when that was forwarded",
      { type: "forward", member: "west", proxyUid, resourceVersion: "3", patch: { body: { metadata: { uid } } } },
      "west patch",
      resized,
    ],
    [
      "the very proxy, to be bound",
      { type: "bind", member: "west", proxyUid, delegateUid: uid, memberNode: "n" },
      "host create binding",
      { uid: proxyUid },
    ],
    ["the very proxy, to be held", { type: "hold", proxyUid }, "host patch", { uid: proxyUid }],
    [
      "not started or ended since, to have another delegate",
      { type: "record", proxyUid, resourceVersion: "3", delegateUid: uid, memberNode: "n" },
      "host patch",
      { uid: proxyUid, resourceVersion: "3" },
    ],
    [
      "as it was when its status was read",
      { type: "status", patch: { metadata: { uid: proxyUid }, status: { phase: "Running" } }, resourceVersion: "3" },
      "host patch status",
      { uid: proxyUid, resourceVersion: "3" },
    ],
    ["the very proxy, to end", { type: "finish", proxyUid }, "host delete", { uid: proxyUid, gracePeriodSeconds: 0 }],
    [
      "the very proxy, to end as gently",
      { type: "evict", proxyUid, graceSeconds: 17 },
      "host delete",
      { uid: proxyUid, gracePeriodSeconds: 17 },
    ],
    ["the very proxy, to be let go", { type: "release", proxyUid }, "host patch", { uid: proxyUid }],
  ])("%s", async (_, action, to, demands) => {
    const answers = { find: async () => undefined, remove: async () => ({}), createSubresource: async () => ({}) };
    const { execute, writes } = executorOf({ ...answers, patch: async () => delegate });
    await execute(action);
    expect(writes).toEqual([{ to, demands }]);
  });

  test("and a withdrawal that finds the delegate changed is decided anew when its member shows how", async () => {
    const { execute } = executorOf({ remove: () => Promise.reject(failure("Conflict", "it has changed")) });
    const shown = await execute({ ...remove, resourceVersion: "7" });
    const shows = (resourceVersion: string): boolean | undefined =>
      shown?.(world(proxy, [member("west", { delegate: pod({ uid, metadata: { uid, resourceVersion } }) })]));
    expect([shows("7"), shows("8")]).toEqual([false, true]);
    await expect(execute(remove)).rejects.toMatchObject({ code: "Conflict" });
  });
});

describe("a delegate whose proxy the host's watch does not show", () => {
  const sweep: TestAction = { type: "sweep", member: "west", uid: "delegate-uid", proxyUid };

  test("runs on when the host has the proxy: the watch is behind", async () => {
    const { execute, writes } = executorOf({ find: async () => proxy, remove: async () => ({}) });
    expect(await execute(sweep)).toBeUndefined();
    expect(writes).toEqual([]);
  });

  test("runs on when another leads, or the host was set back", async () => {
    const { execute, writes } = executorOf({ find: async () => undefined, confirmLease: async () => false });
    await expect(execute(sweep)).rejects.toMatchObject({ code: "NotSent" });
    expect(writes).toEqual([]);
  });

  test("holds up no later pod of that name, which may be in another member", async () => {
    const refusing = () => Promise.reject(failure("ServerError", "no"));
    const replaced = executorOf({ find: async () => proxyPod({ uid: "next" }), remove: refusing });
    expect(await replaced.execute(sweep)).toBeUndefined();
    expect(replaced.writes).toHaveLength(1);
    await expect(executorOf({ find: async () => undefined, remove: refusing }).execute(sweep)).rejects.toThrow("no");
  });
});

test("a pod that is told again why it waits costs an event and no write of the pod", async () => {
  const { execute, told, memories, clock } = executorOf({});
  const report = { type: "report", proxyUid, reason: "NotPlaced", message: "west: full", again: true } as const;
  // The next time is reckoned from this one.
  expect(await execute(report)).toBeTypeOf("function");
  expect(told).toEqual([{ reason: "NotPlaced", message: "west: full" }]);
  expect(memories.of(proxyUid)).toMatchObject({ told: { message: "west: full", at: clock.now } });
});

test.each([
  ["a policy of the host denies", "Forbidden", "ValidatingAdmissionPolicy 'nodes' denied request: not there", true],
  ["a webhook of the host fails to judge", "ServerError", 'failed calling webhook "checks": refused', true],
  [
    "the host denies for a moment after its start",
    "Forbidden",
    'User "x" cannot create resource "pods/binding"',
    false,
  ],
  ["the host cannot store", "ServerError", "etcdserver: request timed out", false],
] as const)(
  "a Binding that %s is tried again, and its pod says so once where that lasts",
  async (_, code, words, lasts) => {
    const error = failure(code, words);
    const patched: unknown[] = [];
    const { clock, told, execute } = executorOf({
      createSubresource: () => Promise.reject(error),
      proxyOf: () => proxy,
      patch: (async (_resource: unknown, _ref: unknown, { body }: { readonly body: object }) => {
        patched.push(body);
        return proxy;
      }) as never,
    });
    const bind: TestAction = { type: "bind", member: "west", proxyUid, delegateUid: "d", memberNode: "n" };
    await expect(execute(bind)).rejects.toBe(error);
    // A webhook may only be away for a moment.
    expect(told).toHaveLength(lasts && code === "Forbidden" ? 1 : 0);
    clock.now += 10_000;
    await expect(execute(bind)).rejects.toBe(error);
    await expect(execute(bind)).rejects.toBe(error);
    const message = `west: has the pod, and this cluster refuses to bind it to node legation-west: ${words}`;
    expect(told).toEqual(lasts ? [{ reason: "NotBound", message }] : []);
    expect(patched).toHaveLength(lasts ? 1 : 0);
    clock.now += 60 * 60_000;
    await expect(execute(bind)).rejects.toBe(error);
    expect(told).toHaveLength(lasts ? 2 : 0);
  },
);
