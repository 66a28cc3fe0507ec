import { describe, expect, test } from "vitest";
import { objectKey, type PersistentVolumeClaim, type Stored } from "../../../../src/api/kubernetes.ts";
import type { Member } from "../../../../src/clusters/member.ts";
import { Executor } from "../../../../src/controllers/claims/execute.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { answering, listing } from "../../../support/builders/answers.ts";
import { claim, HOST, memberClaim } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { namespacesThere } from "../fleet.ts";
import { NOTHING_ELSE, shownInWest } from "./executor-options.ts";

const create = { type: "create", member: "west", uid: "uid-1", object: {} } as const;
const assign = { type: "assign", member: "west", uid: "uid-1", resourceVersion: "1" } as const;
const key = objectKey({ namespace: "team", name: "data" });

/** A claim of that name, and its member. */
type Parts = { readonly uid?: string; readonly member?: string };
type Answer = readonly [code: KubeErrorCode, words: string, namespace?: string];

/**
 * Returns an executor and the member that it, or an earlier leader, has given the claim. The member answers creates with
 * `created`, and lists with `listed` or its claims.
 */
async function executing(created: Answer, { inherited = false } = {}) {
  const clock = { now: 0 };
  const west: { created: Answer; listed?: Answer; has: Stored<PersistentVolumeClaim>[] } = { created, has: [] };
  const told: string[] = [];
  const noted: unknown[] = [];
  const fail = ([code, words, namespace]: Answer, verb: string): never => {
    const target = namespace === undefined ? { resource: "claims" } : { resource: "namespaces", objectName: namespace };
    throw kubeError(code, words, { cluster: "west", verb, ...target });
  };
  const memberOf = (name: string): Member => {
    const client = fakeClient({
      create: async () => fail(west.created, "create"),
      list: listing(() => (west.listed ? fail(west.listed, "list") : west.has)),
    });
    return member(name, client, { noteFailure: (error) => noted.push(error) });
  };
  const executor = new Executor({
    ...NOTHING_ELSE,
    host: fakeClient({ patch: answering() }),
    registry: { members: () => [], member: memberOf },
    memberNamespaces: namespacesThere,
    hostId: HOST.id,
    onRefused: (_key, write, message) => told.push(`refused ${write}: ${message}`),
    onUncertain: (_key, _uid, member, message) => told.push(`uncertain in ${member}: ${message}`),
    guard: new WriteGuard({ clock: { now: () => clock.now } }),
    clock: { now: () => clock.now },
  });
  const log = createLogger({ level: "silent" });
  const context = { key, signal: new AbortController().signal, heardAt: 0, log };
  const give = (parts: Parts = {}) => executor.execute({ ...assign, ...parts }, context);
  if (!inherited) await give();
  return {
    clock,
    west,
    told,
    noted,
    give,
    execute: (parts: Parts = {}) => executor.execute({ ...create, ...parts }, context),
  };
}

const LOST: Answer = ["AnswerLost", "socket hang up"];
const WEBHOOK: Answer = ["ServerError", 'failed calling webhook "checks.example.com": connect: connection refused'];
const BUSY: Answer = ["TooManyRequests", "too many requests"];
const QUOTA: Answer = ["Forbidden", "exceeded quota"];
const what = "its API server refused PersistentVolumeClaim data, which the pod needs:";

const DENIED: Answer = ["ServerError", 'admission webhook "pvc.example.com" denied the request: no tenant'];
const NAMESPACE: Answer = ["ServerError", "etcdserver: request timed out", "team"];
test.each<[Answer, string]>([
  [WEBHOOK, WEBHOOK[1]],
  [DENIED, DENIED[1]],
  [NAMESPACE, `create namespaces team: ${NAMESPACE[1]}`],
])(
  "counts a create that certainly fails for ten seconds as a refusal, so that another member may get the claim (%s)",
  async (answer, words) => {
    const { clock, told, noted, execute } = await executing(answer);
    await expect(execute()).rejects.toThrow(answer[1]);
    clock.now = 10_000;
    await execute();
    expect(told).toEqual([`refused creation in west: ${what} ${words}`]);
    expect(noted).toHaveLength(2);
  },
);

test("reports an uncertain create to the claim's pods, and gives the claim to no other member", async () => {
  const { clock, told, execute } = await executing(["ServerError", "etcdserver: request timed out"]);
  await expect(execute()).rejects.toThrow("timed out");
  clock.now = 10_000;
  await expect(execute()).rejects.toThrow("timed out");
  expect(told).toEqual([`uncertain in west: ${what} etcdserver: request timed out`]);
});

describe("a claim that an earlier request may have created", () => {
  test.each([[WEBHOOK], [BUSY]])("stays in its member when later requests certainly fail with %s", async (later) => {
    const { clock, west, told, execute } = await executing(LOST);
    await expect(execute()).rejects.toThrow(LOST[1]);
    west.created = later;
    for (const at of [10_000, 40_000, 59_999]) {
      clock.now = at;
      await expect(execute()).rejects.toThrow(later[1]);
    }
    const doubt = `uncertain in west: ${what} ${later[1]}`;
    expect(told.splice(0)).toEqual(Array(3).fill(doubt));
    // A list does not tell whether it exists, either.
    west.listed = BUSY;
    clock.now = 60_000;
    await expect(execute()).rejects.toThrow(BUSY[1]);
    expect(told.splice(0)).toEqual([doubt]);
    // By now the earlier request has ended, and the claim does not exist.
    delete west.listed;
    await execute();
    expect(told).toEqual([`refused creation in west: ${what} ${later[1]}`]);
  });

  test.each([[WEBHOOK], [BUSY], [QUOTA]])(
    "stays with an earlier leader's member when this leader's requests fail with %s",
    async (answer) => {
      const { clock, told, execute } = await executing(answer, { inherited: true });
      for (const at of [10_000, 20_000, 59_999]) {
        clock.now = at;
        await execute().catch(() => undefined);
      }
      expect(new Set(told.splice(0))).toEqual(new Set([`uncertain in west: ${what} ${answer[1]}`]));
      clock.now = 60_000;
      await execute();
      expect(told).toEqual([`refused creation in west: ${what} ${answer[1]}`]);
    },
  );

  test("stays with an earlier leader's member when it exists before the watch shows it", async () => {
    const { clock, west, told, execute } = await executing(BUSY, { inherited: true });
    await expect(execute()).rejects.toThrow(BUSY[1]);
    west.has = [memberClaim(claim())];
    clock.now = 60_000;
    const shown = await execute();
    expect(told).toEqual([]);
    expect(shown?.(shownInWest(...west.has))).toBe(true);
  });

  test.each([[LOST], [["AlreadyExists", "already exists"] as const]])(
    "stays when a read found it and the watch is still late: %s",
    async (first) => {
      const { clock, west, told, execute } = await executing(first);
      west.has = [memberClaim(claim())];
      if (first === LOST) await expect(execute()).rejects.toThrow(LOST[1]);
      else await execute();
      west.created = BUSY;
      for (const at of [50_000, 60_000, 70_000, 80_000]) {
        clock.now = at;
        await execute().catch(() => undefined);
      }
      expect(told.filter((text) => text.startsWith("refused"))).toEqual([]);
    },
  );

  test("stays when it seems to exist", async () => {
    for (const created of [["AlreadyExists", "already exists"], QUOTA] as const) {
      const { clock, west, told, execute } = await executing(created);
      west.listed = BUSY;
      await expect(execute()).rejects.toThrow(BUSY[1]);
      clock.now = 10_000;
      await expect(execute()).rejects.toThrow(BUSY[1]);
      expect(told).toEqual([`uncertain in west: ${what} ${BUSY[1]}`]);
    }
  });

  test("stays when its read was not sent, and later requests certainly fail", async () => {
    const { clock, west, told, execute } = await executing(["AlreadyExists", "already exists"]);
    west.listed = ["NotSent", "no connection"];
    await expect(execute()).rejects.toThrow("no connection");
    west.created = BUSY;
    for (const at of [1_000, 11_000]) {
      clock.now = at;
      await expect(execute()).rejects.toThrow(BUSY[1]);
    }
    expect(told).toEqual([`uncertain in west: ${what} ${BUSY[1]}`]);
  });

  test("stays until it was refused and is not there a minute after that request", async () => {
    const { clock, west, told, execute } = await executing(LOST);
    await expect(execute()).rejects.toThrow(LOST[1]);
    west.created = QUOTA;
    clock.now = 59_999;
    const shown = await execute();
    expect(shown?.(shownInWest())).toBe(false);
    expect(shown?.(shownInWest(claim()))).toBe(true);
    clock.now = 60_000;
    await execute();
    expect(told).toEqual([`uncertain in west: ${what} ${QUOTA[1]}`, `refused creation in west: ${what} ${QUOTA[1]}`]);
  });

  test("is refused by a certain failure as any other after that", async () => {
    const { clock, west, told, execute } = await executing(LOST);
    await expect(execute()).rejects.toThrow(LOST[1]);
    west.created = QUOTA;
    clock.now = 60_000;
    await execute();
    west.created = WEBHOOK;
    clock.now = 90_000;
    await expect(execute()).rejects.toThrow(WEBHOOK[1]);
    clock.now = 100_000;
    await execute();
    expect(told.at(-1)).toBe(`refused creation in west: ${what} ${WEBHOOK[1]}`);
  });

  test.each<[string, Parts]>([
    ["an earlier claim of that name", { uid: "uid-2" }],
    ["another member", { member: "east" }],
  ])("leaves no doubt about %s", async (_, asked) => {
    const { west, told, give, execute } = await executing(LOST);
    await expect(execute()).rejects.toThrow(LOST[1]);
    west.created = QUOTA;
    await give(asked);
    await execute(asked);
    expect(told).toEqual([`refused creation in ${asked.member ?? "west"}: ${what} ${QUOTA[1]}`]);
  });

  test("leaves no doubt once it was seen there", async () => {
    const { west, told, execute } = await executing(LOST);
    await expect(execute()).rejects.toThrow(LOST[1]);
    west.created = ["AlreadyExists", "already exists"];
    west.has = [memberClaim(claim())];
    await execute();
    west.has = [];
    west.created = QUOTA;
    await execute();
    expect(told).toEqual([`refused creation in west: ${what} ${QUOTA[1]}`]);
  });
});
