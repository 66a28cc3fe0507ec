import { describe, expect, test } from "vitest";
import { PLACED_CONDITION } from "../../../../../src/api/keys.ts";
import type { OwnerReference, Pod, Stored } from "../../../../../src/api/kubernetes.ts";
import type { ActionOf } from "../../../../../src/controllers/delegation/decision/decision.ts";
import { fieldsOf } from "../../../../support/builders/answers.ts";
import { withState } from "../../../../support/builders/member.ts";
import { type PodParts, pod, proxyPod } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, member, world } from "../world.ts";
import { type Answers, executorOf, failure, type TestAction } from "./executing.ts";

const proxy = proxyPod();
const delegate = delegateOf(proxy);
const { uid: proxyUid } = proxy.metadata;

/** Returns a refusal without the name of its pod. */
const wordsOf = (detail: string): string => detail.replace('pods "web-0" is forbidden: ', "");

const create = { type: "create", member: "west", proxyUid, delegate, controlled: false } as const;

describe("an unbound delegate that lost its marks", () => {
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

  test("is recognised by the remaining marks", async () => {
    const half = { ...unmarked, metadata: { ...unmarked.metadata, annotations: delegate.metadata.annotations ?? {} } };
    const answers = { create: () => Promise.reject(taken), find: async () => half, patch: async () => delegate };
    const { memories, execute } = executorOf(answers);
    await execute(create);
    expect(memories.of(proxyUid).uncertain).toBe("west");
  });

  test("is foreign when no mark is left: another member gets the pod", async () => {
    const { memories, execute } = executorOf({ create: () => Promise.reject(taken), find: async () => unmarked });
    await execute(create);
    expect(memories.of(proxyUid).attempts.west?.refusal?.reason).toBe("NameTaken");
  });
});

// No real API server shows a create that has charged the quota and is not stored yet.
test("leaves an unanswered create uncertain after a later refusal, until the create has ended", async () => {
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

test("counts an unavailable admission webhook of the member as a refusal, and any other failure as open", async () => {
  let answer = failure("ServerError", "etcdserver: request timed out");
  const { clock, memories, execute } = executorOf({
    create: () => Promise.reject(answer),
    find: async () => undefined,
  });
  await expect(execute(create)).rejects.toBe(answer);
  const { now } = clock;
  expect(memories.of(proxyUid)).toMatchObject({
    uncertain: "west",
    uncertainCreate: { since: now, lastAt: now, message: "etcdserver: request timed out" },
  });
  clock.now += 1000;
  await expect(execute(create)).rejects.toBe(answer);
  expect(memories.of(proxyUid).uncertainCreate).toMatchObject({ since: now, lastAt: now + 1000 });
  const resolve: TestAction = {
    type: "confirmCreated",
    member: "west",
    proxyUid,
    refusal: { cluster: "west", reason: "RefusedByMember", message: "timed out" },
  };
  expect(await execute(resolve)).toBeTypeOf("function");
  expect(memories.of(proxyUid).uncertain).toBeUndefined();
  expect(memories.of(proxyUid).uncertainCreate).toBeUndefined();
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

test("releases room in another member when the first one has found a node after all", async () => {
  const { members, memories, execute } = executorOf({ createSubresource: async () => ({}) });
  const requests = { cpu: 1, pods: 1 };
  memories.noteAttempt(proxyUid, "west", 0);
  members.west.requests.reserve(proxyUid, requests);
  // The withdrawal from west finds the delegate changed.
  const promise: TestAction = { type: "reserve", member: "east", proxyUid, requests };
  await execute(promise);
  expect(members.east.requests.used).toEqual(requests);
  members.west.requests.reserve(proxyUid, requests);
  await execute({ type: "bind", member: "west", proxyUid, delegateUid: delegate.metadata.uid, memberNode: "n1" });
  expect(members.east.requests.used).toEqual({ cpu: 0, pods: 0 });
  expect(members.west.requests.used).toEqual(requests);
});

test.each([
  { what: "is done", createSubresource: async () => ({}) },
  { what: "is not answered", createSubresource: () => Promise.reject(failure("AnswerLost", "timed out")) },
])("keeps the doubt when a Binding to a lost member $what, and names no delegate in it", async (host) => {
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
  expect(memories.of(proxyUid)).toMatchObject({ uncertain: "west", binding: { member: "west" } });
});

test("is not held up by a member that refuses to delete the delegate of another proxy", async () => {
  const { execute } = executorOf({ remove: () => Promise.reject(failure("ServerError", "no")) });
  const remove: TestAction = { type: "delete", member: "west", uid: "forged" };
  await expect(execute(remove)).rejects.toThrow("no");
  expect(await execute({ ...remove, surplus: true })).toBeUndefined();
});

test("holds up the next pod of the name until a delegate that was deleted by force has gone, unless its member refuses", async () => {
  const answers = [async () => ({}), () => Promise.reject(failure("ServerError", "no"))];
  const { execute } = executorOf({ remove: () => answers.shift()?.() ?? Promise.reject(new Error("asked again")) });
  const remove: TestAction = { type: "delete", member: "west", uid: "delegate-uid", graceSeconds: 0, forced: true };
  const isGone = await execute(remove);
  expect(isGone?.(world(undefined, [member("west", { delegate })]))).toBe(false);
  expect(isGone?.(world(undefined, [member("west")]))).toBe(true);
  expect(await execute(remove)).toBeUndefined();
});

test("ends the doubt when the delegate is recorded, unless the record was refused", async () => {
  let answer = (): Promise<object> => Promise.reject(failure("Conflict", "the pod has changed"));
  const { memories, execute } = executorOf({ patch: () => answer() });
  memories.noteUncertain(proxyUid, "west");
  const record: TestAction = {
    type: "recordDelegate",
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
  "is not held up by a condition that the host refuses (%s)",
  async (code) => {
    let answer = (): Promise<object> => Promise.reject(failure("ServerError", "no"));
    const { memories, told, execute } = executorOf({ patch: () => answer(), proxyOf: () => proxy });
    const report: TestAction = { type: "report", proxyUid, reason: "NotPlaced", message: "west: full" };
    await expect(execute(report)).rejects.toThrow("no");
    expect(memories.of(proxyUid).reported).toBeUndefined();
    answer = () => Promise.reject(failure(code, "denied by policy"));
    expect(await execute(report)).toBeTypeOf("function");
    // The event carries it, and the condition is not retried.
    expect(told).toEqual([{ reason: "NotPlaced", message: "west: full" }]);
    expect(memories.of(proxyUid).reported?.message).toBe("west: full");
  },
);

const unasked = failure("ServerError", 'Internal error occurred: failed calling webhook "images.example": refused');

test("reports a pod that is created anew while the member's webhook does not answer, and creates it when it does", async () => {
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
  // Earlier failures do not count against this refusal.
  fails = failure("Forbidden", "exceeded quota");
  await expect(execute(create)).rejects.toBe(fails);
  clock.now += 9_999;
  await expect(execute(create)).rejects.toBe(fails);
  expect(memories.of(proxyUid).attempts.west).not.toHaveProperty("refusal");
  clock.now += 1;
  expect(await execute(create)).toBeTypeOf("function");
  expect(memories.of(proxyUid).attempts.west).toHaveProperty("refusal");
});

describe("a bound pod that is created anew in its member", () => {
  const quota = 'pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1';
  const ending =
    'pods "web-0" is forbidden: unable to create new content in namespace team because it is being terminated';
  const unwell =
    'pods "web-0" is forbidden: User "legation" cannot create resource "pods" in API group "" in the namespace';
  const made = (detail: string, cause?: string) => {
    const answer = failure("Forbidden", detail, cause);
    return { answer, ...executorOf({ create: () => Promise.reject(answer), proxyOf: () => boundProxy() }) };
  };

  test.each([
    ["a quota that still counts the earlier delegate", quota],
    ["a quota that was just created", 'pods "web-0" is forbidden: status unknown for quota: small, resources: pods'],
    ["a policy", 'pods "web-0" is forbidden: denied by policy'],
  ])("fails only after a refusal that lasts: %s", async (_, detail) => {
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
    ["its namespace ends there", ending, "NamespaceTerminating"],
    ["its member has not read Legation's rights yet, or has removed them", unwell],
    ["its member's admission is starting", 'pods "web-0" is forbidden: not yet ready to handle request'],
  ])("waits with the reason, however long: %s", async (_, detail, cause = undefined) => {
    const { answer, clock, memories, told, execute } = made(detail, cause);
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

test("counts an ending namespace in the member as a refusal at once, and never for longer", async () => {
  const detail =
    'pods "web-0" is forbidden: unable to create new content in namespace team because it is being terminated';
  const error = failure("Forbidden", detail, "NamespaceTerminating");
  const { clock, memories, execute } = executorOf({ create: () => Promise.reject(error) });
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

test("counts an ending namespace as a refusal of an overflowed pod after a while, so that pods like it need not follow", async () => {
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

describe("a temporary answer of a member that lasts", () => {
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

  test.each(each)("becomes a refusal: $what", async ({ answer }) => {
    const { clock, members, memories, execute } = executorOf({ create: () => Promise.reject(answer) });
    memories.noteAttempt(proxyUid, "west", clock.now);
    // The wait for its turn is not the member's fault.
    clock.now += 60_000;
    await expect(execute(create)).rejects.toBe(answer);
    clock.now += 9_999;
    await expect(execute(create)).rejects.toBe(answer);
    expect(memories.of(proxyUid).attempts.west).not.toHaveProperty("refusal");
    expect(members.west.requests.used).toEqual({ pods: 0 });
    clock.now += 1;
    expect(await execute(create)).toBeTypeOf("function");
    expect(memories.of(proxyUid).attempts.west?.refusal).toMatchObject({
      reason: "RefusedByMember",
      message: expect.stringContaining(wordsOf(answer.detail)),
    });
    expect(memories.of(proxyUid).uncertain).toBeUndefined();
  });

  test.each(each)("becomes no refusal if the member was unreachable meanwhile: $what", async ({ answer }) => {
    const { clock, members, execute } = executorOf({ create: () => Promise.reject(answer) });
    await expect(execute(create)).rejects.toBe(answer);
    clock.now += 3_600_000;
    withState(members.west, { reachableSince: clock.now });
    await expect(execute(create)).rejects.toBe(answer);
    clock.now += 10_000;
    expect(await execute(create)).toBeTypeOf("function");
  });

  test.each(each)("becomes an event if the pod can go nowhere else: $what", async ({ answer }) => {
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

  test.each(each)("becomes no refusal if an earlier create may have happened: $what", async ({ answer }) => {
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
    ["is asked again soon, once, if it may still count a delegate that has just ended", full, ["team"], 2_000],
    ["is asked again soon, once, if it may have been created a moment ago", unknown, [], 2_000],
    ["is full if no delegate has ended in its namespace", full, ["other"], 30_000],
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

describe("pods that wait for a quota", () => {
  const west = { member: "west", namespace: "team" };

  test("hear of another pod that it has no room for", async () => {
    const full = 'pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1';
    const { quotas, execute } = executorOf({ create: () => Promise.reject(failure("Forbidden", full)) });
    await execute(create);
    expect(quotas.refused.mock.calls).toEqual([[west, proxyUid, "team/web-0"]]);
    expect(quotas.accepted).not.toHaveBeenCalled();
  });

  test("hear of a pod that was created, and of none that was refused for another reason", async () => {
    let answer: Promise<object> = Promise.reject(failure("Forbidden", 'pods "web-0" is forbidden: no such class'));
    const { quotas, execute } = executorOf({ create: () => answer });
    await execute(create);
    expect(quotas.refused).not.toHaveBeenCalled();
    answer = Promise.resolve(delegate);
    await execute(create);
    expect(quotas.accepted.mock.calls).toEqual([[west, proxyUid]]);
  });
});

test("reads the member's namespace for a delegate whose proxy has a controller before it is sent", async () => {
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

describe("a request before the create, without a definite answer", () => {
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
    "leaves nothing uncertain, and releases the room: $what ($code)",
    async ({ action, answers, code }) => {
      const lost = failure(code, "nobody knows");
      const { members, memories, execute } = executorOf(answers(() => lost));
      await expect(execute(action)).rejects.toBe(lost);
      expect(memories.of(proxyUid).uncertain).toBeUndefined();
      expect(memories.of(proxyUid).uncertainCreate).toBeUndefined();
      expect(members.west.requests.used).toEqual({ pods: 0 });
    },
  );

  test.each(cases)("becomes a refusal if it goes on failing: $what ($code)", async ({ action, answers, code }) => {
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
  test.each(each)("does not end the doubt about an earlier create: $what", async ({ action, answers }) => {
    const lost = failure("AnswerLost", "timed out");
    const { members, memories, execute } = executorOf(answers(() => lost));
    memories.noteUncertain(proxyUid, "west");
    await expect(execute(action)).rejects.toBe(lost);
    expect(memories.of(proxyUid)).toMatchObject({ uncertain: "west", uncertainCreate: { message: "timed out" } });
    expect(members.west.requests.used).toEqual({ pods: 1 });
  });
});

test("asks a member by a dry-run whether it would drop a field, and counts that as a refusal", async () => {
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
  // The result stays known as long as the member's version is the same.
  await execute(isolated);
  expect(sent.splice(0)).toEqual([true, true, false, false]);
  withState(members.west, { probed: { reachable: true, version: "v1.30.1" } });
  await execute(isolated);
  expect(sent).toEqual([true, false]);
});

test("sends the pod to a member whose dry-run cannot be sent, and repeats a dry-run that fails", async () => {
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

test("writes why a proxy waits with the version of the decision, so that a later PodScheduled stays", async () => {
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
      patch: async (_resource, _ref, patch) => {
        const { status }: Partial<Pod> = fieldsOf(patch);
        written.push(status?.conditions);
        return proxyPod(parts);
      },
    });
    await execute(report);
    return written;
  };

  test.each<[string, PodParts, TestAction, object[]]>([
    ["in its condition PodScheduled", {}, waits, [[{ type: "PodScheduled" }]]],
    [
      "without the condition of an earlier version",
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
    ["in an event alone, if it was bound meanwhile", { spec: { nodeName } }, waits, []],
    ["in an event alone, if another pod has its name by now", { uid: "another" }, waits, []],
  ])("reports it %s", async (_, parts, report, conditions) => {
    expect(await writtenFor(parts, report)).toMatchObject(conditions);
  });
});

describe("the preconditions of a write to an existing pod", () => {
  const uid = "delegate-uid";
  const remove: TestAction = { type: "delete", member: "west", uid };
  const resized = { uid, resourceVersion: "3" };
  test.each<[string, TestAction, string, object]>([
    ["name the delegate's uid in its deletion", remove, "west delete", { uid }],
    [
      "name the grace period in its deletion",
      { ...remove, graceSeconds: 17 },
      "west delete",
      { uid, gracePeriodSeconds: 17 },
    ],
    [
      "name the version of a delegate without a node",
      { ...remove, resourceVersion: "7" },
      "west delete",
      { uid, resourceVersion: "7" },
    ],
    ["name the uid of a surplus delegate", { ...remove, surplus: true }, "west delete", { uid }],
    [
      "name the uid of a delegate without a proxy",
      { ...remove, type: "sweep", proxyUid: "old" },
      "west delete",
      { uid },
    ],
    [
      "name the version on which the forwarded change was decided",
      { type: "forward", member: "west", proxyUid, resourceVersion: "3", patch: { body: { metadata: { uid } } } },
      "west patch",
      resized,
    ],
    [
      "name the proxy's uid in its Binding",
      { type: "bind", member: "west", proxyUid, delegateUid: uid, memberNode: "n" },
      "host create binding",
      { uid: proxyUid },
    ],
    [
      "name the proxy's uid when the finalizer is added",
      { type: "addFinalizer", proxyUid },
      "host patch",
      { uid: proxyUid },
    ],
    [
      "name the proxy's version when a new delegate is recorded",
      { type: "recordDelegate", proxyUid, resourceVersion: "3", delegateUid: uid, memberNode: "n" },
      "host patch",
      { uid: proxyUid, resourceVersion: "3" },
    ],
    [
      "name the version on which the status was decided",
      { type: "status", patch: { metadata: { uid: proxyUid }, status: { phase: "Running" } }, resourceVersion: "3" },
      "host patch status",
      { uid: proxyUid, resourceVersion: "3" },
    ],
    [
      "name the proxy's uid in its deletion with grace 0",
      { type: "deleteProxy", proxyUid },
      "host delete",
      { uid: proxyUid, gracePeriodSeconds: 0 },
    ],
    [
      "name the grace period in its eviction",
      { type: "evict", proxyUid, graceSeconds: 17 },
      "host delete",
      { uid: proxyUid, gracePeriodSeconds: 17 },
    ],
    [
      "name the proxy's uid when the finalizer is removed",
      { type: "removeFinalizer", proxyUid },
      "host patch",
      { uid: proxyUid },
    ],
  ])("%s", async (_, action, to, demands) => {
    const answers = { find: async () => undefined, remove: async () => ({}), createSubresource: async () => ({}) };
    const { execute, writes } = executorOf({ ...answers, patch: async () => delegate });
    await execute(action);
    expect(writes).toEqual([{ to, demands }]);
  });

  test("reject a withdrawal of a changed delegate, which is decided anew when its member shows the change", async () => {
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

  test("runs on when the host has the proxy, and only the watch is behind", async () => {
    const { execute, writes } = executorOf({ find: async () => proxy, remove: async () => ({}) });
    expect(await execute(sweep)).toBeUndefined();
    expect(writes).toEqual([]);
  });

  test("runs on when another process leads, or the host was restored", async () => {
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

test("costs an event and no write of the pod to repeat why it waits", async () => {
  const { execute, told, memories, clock } = executorOf({});
  const report = { type: "report", proxyUid, reason: "NotPlaced", message: "west: full", again: true } as const;
  // The next repetition counts from this one.
  expect(await execute(report)).toBeTypeOf("function");
  expect(told).toEqual([{ reason: "NotPlaced", message: "west: full" }]);
  expect(memories.of(proxyUid)).toMatchObject({ reported: { message: "west: full", at: clock.now } });
});

test("costs the condition and no event to write other numbers", async () => {
  const { execute, told, writes, memories, clock } = executorOf({
    proxyOf: () => proxyPod(),
    patch: async () => proxyPod(),
  });
  memories.noteReported(proxyUid, { reason: "NotPlaced", message: "west: 3 left" }, clock.now - 60_000);
  await execute({ type: "report", proxyUid, reason: "NotPlaced", message: "west: 2 left", amounts: true });
  expect(told).toEqual([]);
  expect(writes).toHaveLength(1);
  expect(memories.of(proxyUid).reported).toEqual({
    ...{ reason: "NotPlaced", message: "west: 2 left", at: clock.now - 60_000 },
    amounts: { count: 1, at: clock.now },
  });
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
] as const)("is repeated, and reported once if that lasts: a Binding that %s", async (_, code, words, lasts) => {
  const error = failure(code, words);
  const patched: unknown[] = [];
  const { clock, told, execute } = executorOf({
    createSubresource: () => Promise.reject(error),
    proxyOf: () => proxy,
    patch: async (_resource, _ref, { body }) => {
      patched.push(body);
      return proxy;
    },
  });
  const bind: TestAction = { type: "bind", member: "west", proxyUid, delegateUid: "d", memberNode: "n" };
  await expect(execute(bind)).rejects.toBe(error);
  // A webhook may be unavailable for a moment only.
  expect(told).toHaveLength(lasts && code === "Forbidden" ? 1 : 0);
  clock.now += 10_000;
  await expect(execute(bind)).rejects.toBe(error);
  await expect(execute(bind)).rejects.toBe(error);
  const message = `west: has the pod, and this cluster refuses to bind it to node legation-west: ${words}`;
  expect(told).toEqual(lasts ? [{ reason: "NotBound", message }] : []);
  expect(patched).toHaveLength(lasts ? 1 : 0);
  clock.now += 60 * 60_000;
  await expect(execute(bind)).rejects.toBe(error);
  // After such a pause the failure counts anew.
  clock.now += 10_000;
  await expect(execute(bind)).rejects.toBe(error);
  expect(told).toHaveLength(lasts ? 2 : 0);
});

test("waits until the finalizer's removal is shown, though its own deletion with grace 0 is shown before", async () => {
  const { execute } = executorOf({ patch: async () => proxy });
  const expectation = await execute({ type: "removeFinalizer", proxyUid });
  const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 0 };
  const shown = (finalizers: string[]): boolean | undefined =>
    expectation?.(world(boundProxy({ metadata: { ...deleted, finalizers } }), []));
  expect([shown(proxy.metadata.finalizers ?? []), shown([])]).toEqual([false, true]);
});
