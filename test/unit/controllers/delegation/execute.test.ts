import { expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { Load } from "../../../../src/clusters/load.ts";
import { Executor } from "../../../../src/controllers/delegation/execute.ts";
import { Memories } from "../../../../src/controllers/delegation/memory.ts";
import { Shapes } from "../../../../src/controllers/delegation/shapes.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../cli/client.ts";
import { delegateOf } from "./world.ts";

const log = createLogger({ level: "silent" });
const proxy = proxyPod();
const delegate = delegateOf(proxy);
const { uid: proxyUid } = proxy.metadata;

function failure(code: KubeErrorCode, detail: string): KubeError {
  return new KubeError(detail, { code, cluster: "west", verb: "create", resource: "pods team/web-0" });
}

// No API server can be made to have a creation under way that has charged the quota and is not stored yet.
test("a refusal says nothing of a creation before it that was not answered, until that one is over", async () => {
  let now = 1_000_000;
  let answer = failure("AnswerLost", "cut");
  let stored: Stored<Pod> | undefined;
  const client = fakeClient({
    create: async () => {
      throw answer;
    },
    find: (async () => stored) as never,
  });
  const member = {
    name: "west",
    client,
    load: new Load(),
    nodesVersion: 1,
    roomVersion: "1.0",
    answerOf: (promise: Promise<unknown>) => promise,
    noteFailure: () => {},
  };
  const memories = new Memories();
  const clock = { now: () => now, wall: () => now };
  const options = {
    memories,
    clock,
    registry: { member: () => member },
    shapes: new Shapes(),
    proxyOf: () => undefined,
    mayEnter: () => true,
    waitingSince: () => undefined,
    dependencies: { prepare: () => true },
    memberNamespaces: { createIn: (_member: unknown, _name: string, _signal: unknown, make: () => unknown) => make() },
  };
  const executor = new Executor(options as never);
  const create = (): Promise<unknown> =>
    executor.execute(
      { type: "create", member: "west", proxyUid, delegate },
      { key: "team/web-0" as never, signal: new AbortController().signal, heardAt: now, log },
    );
  await expect(create()).rejects.toBe(answer);
  const quota = failure("Forbidden", "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1");
  answer = quota;
  now += 50;
  await expect(create()).rejects.toBe(quota);
  expect(memories.of(proxyUid).uncertain).toBe("west");

  stored = delegate;
  expect(await create()).toBeTypeOf("function");
  expect(memories.of(proxyUid).uncertain).toBe("west");

  stored = undefined;
  now += 60_000;
  expect(await create()).toBeTypeOf("function");
  expect(memories.of(proxyUid).uncertain).toBeUndefined();
});

test("a member that will not delete what a proxy of another has there holds nothing up", async () => {
  const member = {
    name: "west",
    noteFailure: () => {},
    client: fakeClient({
      delete: async () => {
        throw failure("ServerError", "no");
      },
    }),
  };
  const executor = new Executor({ registry: { member: () => member } } as never);
  const remove = (surplus: boolean): Promise<unknown> =>
    executor.execute(
      { type: "delete", member: "west", uid: "forged", surplus },
      { key: "team/web-0" as never, signal: new AbortController().signal, heardAt: 0, log },
    );
  await expect(remove(false)).rejects.toThrow("no");
  expect(await remove(true)).toBeUndefined();
});

test("a delegate that is on record is in no doubt any more, unless the record was refused", async () => {
  const memories = new Memories();
  memories.uncertain(proxyUid, "west");
  let answer = async (): Promise<unknown> => {
    throw failure("Conflict", "the pod has changed");
  };
  const host = fakeClient({ patch: (() => answer()) as never });
  const executor = new Executor({ host, memories } as never);
  const record = (): Promise<unknown> =>
    executor.execute(
      { type: "record", proxyUid, resourceVersion: "1", delegateUid: "delegate-uid", memberNode: "n" },
      { key: "team/web-0" as never, signal: new AbortController().signal, heardAt: 0, log },
    );
  await expect(record()).rejects.toThrow("the pod has changed");
  expect(memories.of(proxyUid).uncertain).toBe("west");
  answer = async () => proxy;
  expect(await record()).toBeTypeOf("function");
  expect(memories.of(proxyUid).uncertain).toBeUndefined();
});
