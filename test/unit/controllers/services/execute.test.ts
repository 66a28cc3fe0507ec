import { expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/services/execute.ts";
import { type Action, copyKey, settlement } from "../../../../src/controllers/services/model.ts";
import {
  type ServiceObject,
  type ServiceSpec,
  serviceCopyPatch,
  toServiceCopy,
} from "../../../../src/copies/services.ts";
import type { Patch } from "../../../../src/kube/client.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { fakeClient } from "../../cli/client.ts";

const log = createLogger({ level: "silent" });
const HOST = { id: "host-id", name: "cern" };
const REF = { member: "west", kind: "Service", namespace: "team", name: "web" } as const;
const KEY = copyKey(REF);
const UNKNOWN_VALUE =
  'Service "web" is invalid: spec.trafficDistribution: Unsupported value: "PreferSameZone": supported values: "PreferClose"';
const OTHERWISE_INVALID = 'Service "web" is invalid: spec.ports[0].port: Invalid value: 0';

const source: Stored<ServiceObject> = {
  metadata: { name: "web", namespace: "team", uid: "source-uid", resourceVersion: "7" },
  spec: { selector: { app: "web" }, ports: [{ port: 80 }], trafficDistribution: "PreferSameZone" },
};

/** An executor and its member, which answers writes with these errors first. */
function executing(answers: readonly string[], code: KubeErrorCode = "Unprocessable") {
  const remaining = [...answers];
  const sent: unknown[] = [];
  const told: string[] = [];
  const woken: string[] = [];
  const clock = { now: 0 };
  const answer = (): Stored<KubeObject> => {
    const detail = remaining.shift();
    if (detail === undefined) return { metadata: { name: "web", uid: "copy-uid", resourceVersion: "4" } };
    throw new KubeError(detail, { code, cluster: "west", verb: "write", resource: "services" });
  };
  const west = {
    name: "west",
    reachableSince: 0,
    client: fakeClient({
      create: (async (_resource: object, { spec }: { spec?: ServiceSpec }) => {
        sent.push(spec?.trafficDistribution);
        return answer();
      }) as never,
      delete: async () => {
        answer();
      },
      list: (async () => ({ items: [] })) as never,
      patch: (async (
        _resource: object,
        _ref: object,
        { body }: Patch & { body: { path: string; value: unknown }[] },
      ) => {
        sent.push(body.filter(({ path }) => path === "/spec/trafficDistribution").at(-1)?.value);
        return answer();
      }) as never,
    }),
    answerOf: (promise: Promise<unknown>) => promise,
    noteFailure: () => {},
  };
  const executor = new Executor({
    recorder: { record: (_about: object, { message }: { message: string }) => told.push(message) },
    hostId: HOST.id,
    hostName: HOST.name,
    registry: { member: () => west },
    memberNamespaces: {
      createIn: (_member: object, _name: string, _signal: object, create: () => unknown) => create(),
    },
    onRefusal: ({ name }: { name: string }) => woken.push(name),
    clock: { now: () => clock.now, wall: () => 0 },
  } as never);
  const context = { key: KEY, signal: new AbortController().signal, heardAt: 0, log };
  return { executor, sent, told, woken, clock, execute: (action: Action) => executor.execute(action, context) };
}

const create: Action = { type: "create", ref: REF, object: toServiceCopy("Service", source, HOST), source };

test("a Service is made without a traffic distribution that the member does not know", async () => {
  const { executor, sent, told, execute } = executing([UNKNOWN_VALUE]);
  await execute(create);
  expect(sent).toEqual(["PreferSameZone", undefined]);
  expect(told).toEqual([]);
  expect(executor.isRefused(KEY)).toBe(false);
});

test("a Service is changed without a traffic distribution that the member does not know, and then left so", async () => {
  const there = toServiceCopy("Service", { ...source, spec: { trafficDistribution: "PreferClose" } }, HOST);
  const copy = { ...there, metadata: { ...there.metadata, name: "web", uid: "copy-uid", resourceVersion: "3" } };
  const { executor, sent, told, execute } = executing([UNKNOWN_VALUE]);
  const patch = serviceCopyPatch("Service", copy, source, HOST);
  await execute({ type: "patch", ref: REF, patch, copy, source });
  expect(sent).toEqual(["PreferSameZone", null]);
  expect(told).toEqual([]);
  expect(executor.settled(KEY)).toBe(settlement(source, "4"));
});

test.each<[string, string[], number]>([
  ["for something else", [OTHERWISE_INVALID], 1],
  ["for something else, too", [UNKNOWN_VALUE, OTHERWISE_INVALID], 2],
])("a Service that the member refuses %s is told of", async (_, answers, requests) => {
  const { executor, sent, told, execute } = executing(answers);
  await execute(create);
  expect(sent).toHaveLength(requests);
  expect(told).toEqual([`west: its API server refused the Service: ${OTHERWISE_INVALID}`]);
  expect(executor.isRefused(KEY)).toBe(true);
  expect(executor.refusal(KEY, source)).toBeDefined();
  const corrected = { ...source, metadata: { ...source.metadata, resourceVersion: "corrected" } };
  expect(executor.refusal(KEY, corrected)).toBeUndefined();
});

test.each<[string, KubeErrorCode | undefined, boolean]>([
  ["was answered", undefined, true],
  ["got no answer", "AnswerLost", true],
  ["found nothing", "NotFound", true],
  ["was refused", "Forbidden", false],
  ["met another version", "Conflict", false],
])(
  "a copy whose deletion %s is on its way out, or not; pods that wait for one that stays hear of it",
  async (_, code, expected) => {
    const { executor, woken, execute } = executing(code === undefined ? [] : ["no"], code);
    const copy = { metadata: { name: "web", namespace: "team", uid: "copy-uid", resourceVersion: "3" } };
    await execute({ type: "delete", ref: REF, copy }).catch(() => {});
    expect(executor.isLeaving(KEY, copy)).toBe(expected);
    expect(woken).toEqual(expected ? [] : ["web"]);
  },
);

test("a Service that the member fails to make for ten seconds is told of", async () => {
  const words = 'failed calling webhook "checks.example.com": connect: connection refused';
  const { executor, told, woken, clock, execute } = executing(Array(4).fill(words), "ServerError");
  await expect(execute(create)).rejects.toThrow(words);
  clock.now = 10_000;
  await execute(create);
  expect(executor.refusal(KEY, source)?.until).toBe(40_000);
  // It is not the Service that is in the way.
  const changed = { ...source, metadata: { ...source.metadata, resourceVersion: "changed" } };
  expect(executor.refusal(KEY, changed)?.until).toBe(40_000);
  const message = `west: its API server refused the Service: ${words}`;
  expect([told, woken]).toEqual([[message], ["web"]]);
  clock.now = 40_000;
  await execute(create);
  expect(told).toEqual([message]);
});

test("a Service that the member goes on refusing is told of again when the event is about to go", async () => {
  const { told, clock, execute } = executing(Array(3).fill(OTHERWISE_INVALID));
  for (const now of [0, 49 * 60_000, 50 * 60_000]) {
    clock.now = now;
    await execute(create);
  }
  const message = `west: its API server refused the Service: ${OTHERWISE_INVALID}`;
  expect(told).toEqual([message, message]);
});
