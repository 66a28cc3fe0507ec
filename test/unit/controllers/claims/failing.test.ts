import { expect, test } from "vitest";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/claims/execute.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { fakeClient } from "../../cli/client.ts";

const create = { type: "create", member: "west", uid: "uid-1", object: {} } as const;
const key = objectKey({ namespace: "team", name: "data" });

/** An executor and its member, which answers each creation with these words. */
function executing(words: string) {
  const clock = { now: 0 };
  const told: string[] = [];
  const tell =
    (what: string) =>
    (_key: string, _uid: string, member: string, message: string): void => {
      told.push(`${what} ${member}: ${message}`);
    };
  const fail = (async () => {
    throw new KubeError(words, { code: "ServerError", cluster: "west", verb: "create", resource: "claims" });
  }) as never;
  const west = {
    name: "west",
    reachableSince: 0,
    client: fakeClient({ create: fail }),
    answerOf: (promise: Promise<unknown>) => promise,
    noteFailure: () => {},
  };
  const executor = new Executor({
    registry: { member: () => west },
    memberNamespaces: { createIn: (_m: object, _n: string, _s: object, make: () => unknown) => make() },
    hostId: "host-id",
    onRefusal: tell("refused by"),
    onDoubt: tell("in doubt in"),
    clock: { now: () => clock.now },
  } as never);
  const log = createLogger({ level: "silent" });
  const context = { key, signal: new AbortController().signal, heardAt: 0, log };
  return { clock, told, execute: () => executor.execute(create, context) };
}

const words = 'failed calling webhook "checks.example.com": connect: connection refused';
const what = "its API server refused PersistentVolumeClaim data, which the pod needs:";

test("a claim that is surely not made, for ten seconds, is refused: another member may have it", async () => {
  const { clock, told, execute } = executing(words);
  await expect(execute()).rejects.toThrow(words);
  clock.now = 10_000;
  await execute();
  expect(told).toEqual([`refused by west: ${what} ${words}`]);
});

test("of a claim that may have been made its pods hear, and no other member gets it", async () => {
  const { clock, told, execute } = executing("etcdserver: request timed out");
  await expect(execute()).rejects.toThrow("timed out");
  clock.now = 10_000;
  await expect(execute()).rejects.toThrow("timed out");
  expect(told).toEqual([`in doubt in west: ${what} etcdserver: request timed out`]);
});
