import { describe, expect, test } from "vitest";
import type { NetworkPolicy, Stored } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/network-policies/execute.ts";
import { type Action, placeKey } from "../../../../src/controllers/network-policies/model.ts";
import { toPolicyCopy } from "../../../../src/copies/network-policies.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { fakeClient } from "../../cli/client.ts";

const HOST = { id: "host-id", name: "cern" };
const place = { member: "west", namespace: "team" };
const source: Stored<NetworkPolicy> = {
  metadata: { name: "rules", namespace: "team", uid: "source-uid", resourceVersion: "7" },
  spec: { podSelector: {} },
};
const object = toPolicyCopy(source, HOST);
const name = object.metadata?.name ?? "";
const copy: Stored<NetworkPolicy> = {
  ...object,
  metadata: { ...object.metadata, name, uid: "c", resourceVersion: "3" },
};
const create: Action = { type: "create", place, object, source };
const remove: Action = { type: "delete", place, copy };

/** An executor and its member, which answers writes with these errors first; `there` is what a list finds then. */
function executing(errors: readonly KubeErrorCode[], there: readonly Stored<NetworkPolicy>[] = []) {
  const remaining = [...errors];
  const told: string[] = [];
  const reassessed: string[] = [];
  let now = 0;
  const answer = async (): Promise<Stored<NetworkPolicy>> => {
    const code = remaining.shift();
    if (code === undefined) return copy;
    throw new KubeError("exceeded quota", { code, cluster: "west", verb: "write", resource: "networkpolicies" });
  };
  const west = {
    name: "west",
    reachableSince: 0,
    client: fakeClient({
      create: answer as never,
      patch: answer as never,
      delete: answer as never,
      list: (async () => ({ items: there })) as never,
    }),
    answerOf: (promise: Promise<unknown>) => promise,
    noteFailure: () => {},
  };
  const tell = (_about: object, { reason, message }: { reason: string; message: string }): void => {
    told.push(`${reason} ${message}`);
  };
  const executor = new Executor({
    recorder: { record: tell },
    hostId: HOST.id,
    registry: { member: () => west },
    memberNamespaces: { createIn: (_member: object, _name: string, _signal: object, make: () => unknown) => make() },
    onRefusal: (of: object) => reassessed.push(JSON.stringify(of)),
    clock: { now: () => now, wall: () => 0 },
  } as never);
  const log = createLogger({ level: "silent" });
  const context = { key: placeKey(place), signal: new AbortController().signal, heardAt: 0, log };
  return {
    executor,
    told,
    reassessed,
    execute: (action: Action) => executor.execute(action, context),
    advance: (ms: number) => {
      now += ms;
    },
  };
}

describe("a policy that the member refuses", () => {
  const why = "its API server refused NetworkPolicy rules, which may concern the pod: exceeded quota";

  test("is told once on the policy, and rests until it is changed or a minute is over", async () => {
    const { executor, told, reassessed, execute, advance } = executing(["Forbidden", "Forbidden"]);
    await execute(create);
    expect(executor.refusal(place, source)).toBe(why);
    expect(executor.restsUntil(place, source)).toBe(60_000);
    const changed = { ...source, metadata: { ...source.metadata, resourceVersion: "8" } };
    // Who waits hears of it until the other version is there, or refused as well.
    expect([executor.refusal(place, changed), executor.restsUntil(place, changed)]).toEqual([why, undefined]);
    advance(60_000);
    await execute(create);
    expect(executor.refusedUntil(place)).toBe(120_000);
    expect(told).toEqual([`NotInMember west: ${why}`]);
    expect(reassessed).toHaveLength(2);
  });

  test("is told again when the event is about to go", async () => {
    const { told, execute, advance } = executing(Array(4).fill("Forbidden"));
    for (const ms of [0, 49 * 60_000, 60_000, 60_000]) {
      advance(ms);
      await execute(create);
    }
    expect(told).toEqual([`NotInMember west: ${why}`, `NotInMember west: ${why}`]);
  });

  test.each<Action>([create, { type: "patch", place, copy, patch: [], source }])(
    "is one that it fails to $type for ten seconds, too, and rests for half a minute",
    async (action) => {
      const { executor, told, execute, advance } = executing(["ServerError", "ServerError"]);
      await expect(execute(action)).rejects.toThrow("exceeded quota");
      expect(executor.refusal(place, source)).toBeUndefined();
      advance(10_000);
      await execute(action);
      expect(executor.refusal(place, source)).toMatch("which may concern the pod: exceeded quota");
      expect([executor.refusedUntil(place), told.length]).toEqual([40_000, 1]);
      // It is not the policy that is in the way.
      const changed = { ...source, metadata: { ...source.metadata, resourceVersion: "8" } };
      expect(executor.restsUntil(place, changed)).toBe(40_000);
      advance(30_000);
      await execute(action);
      expect(executor.refusal(place, source)).toBeUndefined();
    },
  );

  test("is not refused any more when it was made in the end, or the last attempt had made it", async () => {
    for (const [errors, there] of [
      [["Forbidden"], []],
      [["Forbidden", "AlreadyExists"], [copy]],
    ] as const) {
      const list: Stored<NetworkPolicy>[] = [];
      const { executor, execute } = executing(errors, list);
      await execute(create);
      expect(executor.refusal(place, source)).toBe(why);
      list.push(...there);
      await execute(create);
      expect([executor.refusal(place, source), executor.refusedUntil(place)]).toEqual([undefined, undefined]);
    }
  });

  test("is thought about again when nobody has tried it for a minute, and who waits is told", async () => {
    const { executor, reassessed, execute } = executing(["Forbidden"]);
    await execute(create);
    await execute({ type: "reconsider", place });
    expect(executor.refusedUntil(place)).toBeUndefined();
    expect(reassessed).toHaveLength(2);
  });
});

test.each([
  ["was answered", [], true],
  ["got no answer", ["AnswerLost"], true],
  ["found nothing", ["NotFound"], true],
  ["was refused", ["Forbidden"], false],
  ["met another version", ["Conflict"], false],
] as const)("a copy whose deletion %s is on its way out, or not", async (_, errors, expected) => {
  const { executor, execute } = executing(errors);
  await execute(remove).catch(() => {});
  expect(executor.isLeaving(place, copy)).toBe(expected);
  expect([...executor.leaving(place, [copy])]).toEqual(expected ? ["c"] : []);
  expect([...executor.leaving(place, [])]).toEqual([]);
});

test("forgets a policy's copy with the policy while other policies keep the namespace", async () => {
  const { executor, execute } = executing([]);
  for (let write = 0; write < 5; write += 1) await execute(create);
  expect(executor.contestedUntil(place, source)).toBe(600_000);
  executor.noteSources(place, [source]);
  expect(executor.contestedUntil(place, source)).toBe(600_000);
  executor.noteSources(place, []);
  expect(executor.contestedUntil(place, source)).toBeUndefined();
});
