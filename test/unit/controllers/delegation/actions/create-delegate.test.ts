import { describe, expect, test, vi } from "vitest";
import type { Needs } from "../../../../../src/placement/needs.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { boundProxy, delegateOf, member, world } from "../world.ts";
import { type Answers, executorOf, failure, type TestAction } from "./executing.ts";

const proxy = proxyPod();
const delegate = delegateOf(proxy);
const { uid: proxyUid } = proxy.metadata;
const create = { type: "create", member: "west", proxyUid, delegate, controlled: false } as const;
const refusal = { cluster: "west", reason: "RefusedByMember", message: "timed out" } as const;
const resolve: TestAction = { type: "confirmCreated", member: "west", proxyUid, refusal };

describe("a member that may have the delegate after a lost response", () => {
  test("keeps the pod when it has the delegate", async () => {
    const { execute, memories } = executorOf({ find: async () => delegate });
    memories.noteUncertain(proxyUid, "west");
    expect(await execute(resolve)).toBeTypeOf("function");
    expect(memories.of(proxyUid).uncertain).toBe("west");
    expect(memories.of(proxyUid).attempts.west?.refusal).toBeUndefined();
  });

  test("loses the pod to other members when another pod has the name there", async () => {
    const { execute, memories } = executorOf({ find: async () => delegateOf(proxyPod({ uid: "earlier" })) });
    memories.noteUncertain(proxyUid, "west");
    expect(await execute(resolve)).toBeTypeOf("function");
    expect(memories.of(proxyUid).uncertain).toBeUndefined();
    expect(memories.of(proxyUid).attempts.west).toMatchObject({ refusal });
  });
});

describe("a member whose admission makes pods larger", () => {
  const sized = (cpu: string) =>
    delegateOf(proxy, {
      spec: { containers: [{ name: "main", image: "busybox", resources: { requests: { cpu } } }] },
    });

  test("is booked with what it stored, and the next pod of the shape with the same", async () => {
    const used: unknown[] = [];
    const scene = executorOf({
      proxyOf: () => proxy,
      create: async () => {
        used.push({ ...scene.members.west.requests.used });
        return sized("20");
      },
    });
    await scene.execute(create);
    expect(scene.onRoom).toHaveBeenCalledOnce();
    expect(scene.members.west.requests.used).toEqual({ cpu: 20, pods: 1 });
    scene.members.west.requests.release(proxyUid);
    await scene.execute(create);
    expect(used).toEqual([{ pods: 1 }, { cpu: 20, pods: 1 }]);
    expect(scene.onRoom).toHaveBeenCalledOnce();
  });

  test.each<[string, Answers["proxyOf"], boolean, boolean]>([
    [
      "is not sent a create whose turn comes after another pod's answer, and the pod is placed anew",
      () => proxy,
      false,
      true,
    ],
    ["is sent it all the same if an earlier create is uncertain", () => proxy, true, false],
    ["is sent it all the same if the pod is bound to it", () => boundProxy(), false, false],
  ])("%s", async (_, proxyOf = () => proxy, uncertain, outdated) => {
    const scene = executorOf({
      proxyOf,
      create: async (_resource, _object, { isWanted }) => {
        const made = { sent: delegate, stored: sized("20") };
        scene.reservations.noteStored("other", "west", proxyOf(), made);
        if (isWanted?.() === false) throw failure("NotSent", "not wanted");
        return delegate;
      },
    });
    if (uncertain) scene.memories.noteUncertain(proxyUid, "west");
    const shown = await scene.execute(create);
    const { made, attempts } = scene.memories.of(proxyUid);
    expect([made, attempts.west === undefined]).toEqual(outdated ? [undefined, true] : ["delegate-uid", false]);
    expect(scene.members.west.requests.reservedFor(proxyUid) === undefined).toBe(outdated);
    // The pod is decided on again at once.
    if (outdated) expect(shown?.(world(proxy, [member("west")]))).toBe(true);
  });
});

test("sends no pod whose ConfigMap is gone, but asks a member that may have its delegate", async () => {
  let sent = 0;
  const { execute, memories } = executorOf({
    prepared: false,
    create: async () => {
      sent += 1;
      return delegate;
    },
  });
  await execute(create);
  expect(sent).toBe(0);
  memories.noteUncertain(proxyUid, "west");
  await execute(create);
  expect(sent).toBe(1);
});

test.each([
  ['error looking up service account team/builder: serviceaccount "builder" not found', "ServiceAccount"],
  ["no PriorityClass with name batch was found", "PriorityClass"],
  ['pod rejected: RuntimeClass "gvisor" not found', "RuntimeClass"],
  ["exceeded quota: small", undefined],
])("reports to the dependencies what the member lacks: %s", async (detail, kind) => {
  const answer = failure("Forbidden", `pods "web-0" is forbidden: ${detail}`);
  const { execute, onMissing } = executorOf({ create: () => Promise.reject(answer) });
  await execute(create);
  expect(onMissing.mock.calls).toEqual(kind === undefined ? [] : [[delegate, "west", kind]]);
});

test("sends the pod again for ten seconds while the API server does not see a class that was copied", async () => {
  const answer = failure("Forbidden", 'pods "web-0" is forbidden: no PriorityClass with name batch was found');
  const { clock, execute, memories } = executorOf({ create: () => Promise.reject(answer), copied: true });
  await expect(execute(create)).rejects.toBe(answer);
  expect(memories.of(proxyUid).attempts.west?.refusal).toBeUndefined();
  clock.now += 11_000;
  await execute(create);
  expect(memories.of(proxyUid).attempts.west?.refusal).toMatchObject({ reason: "RefusedByMember" });
});

test("waits for a missing service account where it is copied, and counts it as a refusal where it is not", async () => {
  const detail = 'error looking up service account team/builder: serviceaccount "builder" not found';
  const answer = failure("Forbidden", `pods "web-0" is forbidden: ${detail}`);
  const refusalAfter = async (prepared: boolean[]): Promise<unknown> => {
    const { execute, memories } = executorOf({ create: () => Promise.reject(answer), prepared });
    expect(await execute(create)).toBeTypeOf("function");
    return memories.of(proxyUid).attempts.west?.refusal;
  };
  expect(await refusalAfter([true, false])).toBeUndefined();
  // An override gives such a spec.
  expect(await refusalAfter([true, true])).toMatchObject({ reason: "RefusedByMember" });
});

test("wakes pods that waited for the create of a bound pod when it is not made", async () => {
  const unbound = proxyPod({ uid: "other" });
  let answer = failure("Forbidden", 'pods "web-0" is forbidden: exceeded quota: small');
  let pod = unbound;
  const { execute, onRoom } = executorOf({ create: () => Promise.reject(answer), proxyOf: () => pod });
  await execute({ ...create, proxyUid: "other" });
  expect(onRoom).toHaveBeenCalledTimes(1);
  pod = boundProxy();
  answer = failure("TooManyRequests", "try again later");
  await expect(execute(create)).rejects.toBe(answer);
  expect(onRoom).toHaveBeenCalledTimes(2);
});

test("wakes pods of the same shape when the name is taken, since that concerns one pod", async () => {
  const there = { ...delegate, metadata: { ...delegate.metadata, uid: "own", labels: {}, annotations: {} } };
  const { clock, execute, onRoom, memories } = executorOf({
    create: () => Promise.reject(answer),
    find: async () => there,
    proxyOf: () => proxy,
  });
  let answer = failure("Forbidden", 'pods "web-0" is forbidden: exceeded quota: small');
  await execute(create);
  expect(onRoom).toHaveBeenCalledTimes(1);
  clock.now += 60_000;
  answer = failure("AlreadyExists", "it exists");
  await execute(create);
  expect(memories.of(proxyUid).attempts.west?.refusal?.reason).toBe("NameTaken");
  expect(onRoom).toHaveBeenCalledTimes(2);
  await execute(create);
  expect(onRoom).toHaveBeenCalledTimes(3);
});

describe("a pod whose namespace in the member is gone", () => {
  const unprepared: Needs = { state: "there", in: () => "unprepared" };
  const bound = proxyPod({ spec: { containers: [], nodeName: "legation-west" } });

  function comingToNew(answers: Pick<Answers, "prepared" | "needs" | "proxyOf">) {
    const sent: boolean[] = [];
    const executing = executorOf({
      proxyOf: () => proxy,
      createIn: async (make) => {
        await make(false).catch(() => undefined);
        return make(true);
      },
      create: async () => {
        sent.push(true);
        if (sent.length === 1) throw failure("NotFound", 'namespaces "team" not found');
        return delegate;
      },
      ...answers,
    });
    return { ...executing, sent };
  }

  test("waits until its dependencies are in the new namespace, and reserves no room meanwhile", async () => {
    const { execute, sent, memories, members } = comingToNew({ prepared: [true, false] });
    const release = vi.spyOn(members.west.requests, "release");
    const shown = await execute(create);
    expect(sent).toHaveLength(1);
    expect(memories.of(proxyUid).uncertain).toBeUndefined();
    expect(release).toHaveBeenCalledWith(proxyUid);
    expect(shown?.(world(proxy, [member("west", { preparation: "unprepared" })]))).toBe(false);
  });

  test("waits there in overflow mode, too, although it has its node", async () => {
    const { execute, sent } = comingToNew({ needs: () => unprepared, proxyOf: () => bound });
    await execute(create);
    expect(sent).toHaveLength(1);
  });

  test("stays uncertain where it may have been created before", async () => {
    const { execute, sent, memories } = comingToNew({ prepared: [false, false] });
    memories.noteUncertain(proxyUid, "west");
    await execute(create);
    expect(sent).toHaveLength(1);
    expect(memories.of(proxyUid).uncertain).toBe("west");
  });

  test("is created at once when it needs nothing there", async () => {
    const { execute, sent, memories } = comingToNew({});
    await execute(create);
    expect(sent).toHaveLength(2);
    expect(memories.of(proxyUid).made).toBe(delegate.metadata.uid);
  });
});

test("reports free room when the name is taken, even if no pod waited for the answer", async () => {
  const there = { ...delegate, metadata: { ...delegate.metadata, uid: "own", labels: {}, annotations: {} } };
  const { execute, onRoom, members } = executorOf({
    create: () => Promise.reject(failure("AlreadyExists", "it exists")),
    find: async () => there,
    proxyOf: () => proxy,
  });
  await execute(create);
  expect(members.west.requests.used).toEqual({ pods: 0 });
  expect(onRoom).toHaveBeenCalledOnce();
});

test("reports free room after a definite refusal", async () => {
  const refused = executorOf({ create: () => Promise.reject(failure("Forbidden", "denied by policy")) });
  await refused.execute(create);
  expect(refused.onRoom).toHaveBeenCalledOnce();
  const made = executorOf({ create: async () => delegate });
  await made.execute(create);
  expect(made.onRoom).not.toHaveBeenCalled();
});

test("remembers for ten minutes that a member keeps all fields of a pod", async () => {
  const sent: boolean[] = [];
  const { clock, execute } = executorOf({
    create: async (_resource, object, options) => {
      sent.push(options.dryRun === true);
      return object;
    },
  });
  const isolated: TestAction = { ...create, delegate: { ...delegate, spec: { containers: [], hostUsers: false } } };
  await execute(isolated);
  clock.now += 599_999;
  await execute(isolated);
  expect(sent).toEqual([true, false, false]);
  clock.now += 1;
  await execute(isolated);
  expect(sent.slice(3)).toEqual([true, false]);
});

describe("fields that a member's API server does not know", () => {
  const unknown = (path: string): string => `unknown field "${path}"`;

  async function toldAfter(warnings: readonly string[]): Promise<unknown[]> {
    const { execute, told } = executorOf({
      create: async (_resource, _object, { onWarning }) => {
        for (const warning of warnings) onWarning?.(warning);
        return delegate;
      },
    });
    await execute(create);
    return told;
  }

  test("are told on the proxy, with the member", async () => {
    const message =
      "west: its API server does not know spec.containers[0].later, spec.future, so the pod runs there without; a newer Kubernetes there may know it";
    expect(await toldAfter([unknown("spec.containers[0].later"), unknown("spec.future")])).toEqual([
      { reason: "FieldsDropped", message },
    ]);
  });

  test("are told in part if they are many", async () => {
    const [event] = await toldAfter(Array.from({ length: 9 }, (_, index) => unknown(`spec.f${index}`)));
    expect(event).toMatchObject({ message: expect.stringContaining("spec.f7, …,") });
  });

  test("are not told of any other warning, or of none", async () => {
    expect(await toldAfter(['duplicate field "spec.x"', "spec.nodeSelector[old]: deprecated"])).toEqual([]);
    expect(await toldAfter([])).toEqual([]);
  });
});
