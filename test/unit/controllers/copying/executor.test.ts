import { describe, expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { CopyExecutor } from "../../../../src/controllers/copying/executor.ts";
import { type Action, copyKey } from "../../../../src/controllers/copying/model.ts";
import { DEPENDENCIES } from "../../../../src/copies/dependencies.ts";
import { type CopiedKind, toCopy } from "../../../../src/copies/kind.ts";
import { SERVICES, type ServiceObject } from "../../../../src/copies/services.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { everyKind } from "../../copies/every-kind.ts";
import { namespacesThere, registryOf } from "../fleet.ts";

const NO_ANSWER = 'Internal error occurred: failed calling webhook "checks.example.com": connect: connection refused';
const CLAUSES: Readonly<Record<string, string>> = {
  ConfigMap: ", which the pod needs",
  NetworkPolicy: ", which may concern the pod",
};

interface Answers {
  /** Errors of the first writes. */
  readonly errors?: readonly (readonly [code: KubeErrorCode, detail: string, refusedField?: string])[];
  /** The objects that a list finds. */
  readonly there?: readonly Stored<KubeObject>[];
}

/** Returns an executor for one kind, and its member. */
function executing<T extends KubeObject>(
  kind: CopiedKind<T>,
  source: Stored<T>,
  { errors = [], there = [] }: Answers = {},
) {
  const remaining = [...errors];
  const name = kind.copyName?.(source.metadata, HOST.id) ?? source.metadata.name;
  const { namespace = "" } = source.metadata;
  const ref = { member: "west", kind: kind.resource.kind, namespace, name };
  const made = toCopy(kind, source, HOST);
  const copy = { ...made, metadata: { ...made.metadata, name, uid: "copy-uid", resourceVersion: "3" } };
  const list = [...there];
  const objects: KubeObject[] = [];
  const patches: { path?: string; value?: unknown }[][] = [];
  const told: string[] = [];
  const woken: string[] = [];
  const clock = { ms: 0 };
  const answer = (): Stored<KubeObject> => {
    const [code, detail = "", field] = remaining.shift() ?? [];
    if (code === undefined) return { metadata: { name, uid: "copy-uid", resourceVersion: "4" } };
    const details = { causes: field === undefined ? [] : [{ field }] };
    throw kubeError(code, detail, { verb: "write", resource: kind.resource.plural, details });
  };
  const client = fakeClient({
    create: async (_resource, object, { dryRun = false } = {}) => {
      if (!dryRun) objects.push(object);
      return answer();
    },
    patch: async (_resource, _ref, { type, body }) => {
      if (type === "json") patches.push([...body]);
      return answer();
    },
    delete: async () => {
      answer();
    },
    list: async () => ({ items: list }),
  });
  const executor = new CopyExecutor<T>({
    kinds: new Map([[kind.resource.kind, kind]]),
    identity: HOST,
    registry: registryOf([member("west", client)]),
    memberNamespaces: namespacesThere,
    recorder: { record: (_about, { reason, message }) => void told.push(`${reason} ${message}`) },
    clause: CLAUSES[kind.resource.kind] ?? "",
    isSameContent: () => false,
    onChange: (of) => void woken.push(of.name),
    clock: { now: () => clock.ms },
  });
  const key = copyKey(ref);
  const log = createLogger({ level: "silent" });
  const context = { key, signal: new AbortController().signal, heardAt: 0, log };
  const actions = {
    create: { type: "create", ref, source },
    patch: { type: "patch", ref, source, copy },
    delete: { type: "delete", ref, copy, onHost: source },
    reconsider: { type: "reconsider", ref },
  } as const satisfies Record<string, Action<T>>;
  return {
    executor,
    key,
    copy,
    list,
    objects,
    patches,
    told,
    woken,
    clock,
    message: () => executor.refusals.of(key)?.message,
    held: (of: Stored<T> = source, seen?: Stored<T>) => executor.held(key, of, seen),
    isTaken: () => executor.isTaken(ref, source, context),
    execute: (type: keyof typeof actions) => executor.execute(actions[type], context),
  };
}

const metadata = { name: "web", namespace: "team", uid: "source-uid", resourceVersion: "7" };
const service: Stored<ServiceObject> = {
  metadata,
  spec: { selector: { app: "web" }, ports: [{ port: 80 }], trafficDistribution: "PreferSameZone" },
};
// A whole object's copy is applied, which its own tests are about.
const kinds = (await everyKind()).filter(({ kind }) => kind.applied === undefined);

describe.each(kinds)("the copy of a $title", ({ kind, source }) => {
  const executes = (answers: Answers) => executing(kind, source, answers);
  const name = `${kind.resource.kind} web${CLAUSES[kind.resource.kind] ?? ""}`;
  // Users have the member's own object meanwhile, where they may.
  const foreignMs = kind.isUsedInPlace?.(source.metadata.name) === true ? 600_000 : 60_000;
  const later = { ...source, metadata: { ...source.metadata, resourceVersion: "8" } };
  const refusals = (count: number) => Array(count).fill(["Forbidden", "exceeded quota"] as const);

  test("has a refusal reported once, and is held until its source changes or a minute has passed", async () => {
    const { message, held, told, woken, clock, executor, key, execute } = executes({ errors: refusals(2) });
    await execute("create");
    const why = `its API server refused ${name}: exceeded quota`;
    expect(message()).toBe(why);
    expect(held()).toEqual({ reason: "Refused", until: 60_000 });
    // Users see the refusal until the other version exists or is refused as well.
    expect([message(), held(later)]).toEqual([why, undefined]);
    clock.ms = 60_000;
    expect(held()).toBeUndefined();
    await execute("create");
    expect(executor.refusals.until(key)).toBe(120_000);
    expect(told).toEqual([`NotInMember west: ${why}`]);
    expect(woken).toHaveLength(2);
  });

  test.each([
    ["its API server refused its copy", "Forbidden", "exceeded quota", "exceeded quota", 60_000],
    ["it has one of that name", "AlreadyExists", "already exists", "is there already", foreignMs],
  ] as const)(
    "is not taken when in a dry run %s, and is held as after a create",
    async (_why, code, detail, words, ms) => {
      const { isTaken, message, held, objects, woken } = executes({ errors: [[code, detail]] });
      expect(await isTaken()).toBe(false);
      expect(message()).toContain(words);
      expect(held()?.until).toBe(ms);
      expect([objects, woken.length]).toEqual([[], 1]);
    },
  );

  test.each([
    ["there was none", []],
    ["the member's webhooks take no dry run", [["BadRequest", 'admission webhook "a" does not support dry run']]],
    ["its namespace is made with it", [["NotFound", 'namespaces "team" not found']]],
    ["the member fails otherwise", [["ServerError", NO_ANSWER]]],
  ] as const)("is taken where a dry run tells of no refusal: %s", async (_why, errors) => {
    const { isTaken, held } = executes({ errors });
    expect([await isTaken(), held()]).toEqual([true, undefined]);
  });

  test("has its refusal reported again before the event expires", async () => {
    const { told, clock, execute } = executes({ errors: refusals(4) });
    for (const ms of [0, 49 * 60_000, 50 * 60_000, 51 * 60_000]) {
      clock.ms = ms;
      await execute("create");
    }
    expect(told).toHaveLength(2);
  });

  test.each([
    ["create", "its API server refused "],
    ["patch", "its API server refused the change of "],
  ] as const)("has a failing %s reported after ten seconds, and is held for half a minute", async (type, words) => {
    const failing = Array(3).fill(["ServerError", NO_ANSWER] as const);
    const { executor, key, message, held, told, woken, clock, execute } = executes({ errors: failing });
    await expect(execute(type)).rejects.toThrow(NO_ANSWER);
    expect([message(), executor.failing(key), woken.length]).toEqual([undefined, NO_ANSWER, 1]);
    clock.ms = 12_000;
    await execute(type);
    expect(message()).toBe(`${words}${name}: ${NO_ANSWER}`);
    // The version is not the cause.
    expect([held(), held(later)]).toEqual(Array(2).fill({ reason: "Refused", until: 42_000 }));
    expect([told.length, executor.failing(key), woken.length]).toEqual([1, undefined, 2]);
    clock.ms = 42_000;
    await execute(type);
    expect([held()?.until, told.length]).toEqual([72_000, 1]);
    clock.ms = 72_000;
    await execute(type);
    expect([message(), held()]).toEqual([undefined, undefined]);
  });

  test("fails again with a report at once if it was reconsidered meanwhile", async () => {
    const { message, held, clock, execute } = executes({ errors: Array(3).fill(["ServerError", NO_ANSWER] as const) });
    await execute("create").catch(() => {});
    clock.ms = 12_000;
    await execute("create");
    clock.ms = 42_000;
    await execute("reconsider");
    expect(message()).toBeUndefined();
    await execute("create");
    expect(held()?.until).toBe(72_000);
  });

  test("is no longer refused once it was created, or an earlier attempt had created it", async () => {
    const made = executes({ errors: refusals(1) });
    await made.execute("create");
    await made.execute("create");
    expect([made.message(), made.held()]).toEqual([undefined, undefined]);
    const found = executes({ errors: [...refusals(1), ["AlreadyExists", "it exists"]] });
    await found.execute("create");
    found.list.push(found.copy);
    await found.execute("create");
    expect([found.message(), found.held()]).toEqual([undefined, undefined]);
  });

  test("wakes its users when no attempt was made for a minute", async () => {
    const { executor, key, woken, execute } = executes({ errors: refusals(1) });
    await execute("create");
    await execute("reconsider");
    expect(executor.refusals.until(key)).toBeUndefined();
    expect(woken).toHaveLength(2);
  });

  test("is left alone where another owner's object is in its place", async () => {
    const { copy } = executes({});
    const theirs = { metadata: { ...source.metadata, name: copy.metadata.name, uid: "theirs" } };
    const { message, held, execute } = executes({ errors: [["AlreadyExists", "it exists"]], there: [theirs] });
    await execute("create");
    const there = name.startsWith("NetworkPolicy")
      ? "NetworkPolicy web.legation-host-id, the name of the copy of web,"
      : name;
    expect(message()).toMatch(new RegExp(`^${there},? is there already and was not made by Legation for this host$`));
    expect(held(later)).toEqual({ reason: "Refused", until: foreignMs });
  });

  test.each<[string, KubeErrorCode | undefined, boolean]>([
    ["was answered", undefined, true],
    ["got no answer", "AnswerLost", true],
    ["found nothing", "NotFound", true],
    ["was refused", "Forbidden", false],
    ["met another version", "Conflict", false],
  ])(
    "leaves or stays after its deletion %s, and wakes users that wait for one that stays",
    async (_case, code, expected) => {
      const { executor, key, copy, woken, execute } = executes({ errors: code === undefined ? [] : [[code, "no"]] });
      await execute("delete").catch(() => {});
      expect(executor.isLeaving(key, copy)).toBe(expected);
      expect(woken.length > 0).toBe(!expected);
    },
  );

  test("has a refusal of its deletion reported once, on the host's object, and is tried again after growing pauses", async () => {
    const { executor, key, told, woken, clock, execute } = executes({ errors: refusals(2) });
    await execute("delete");
    const why = `its API server refused the deletion of ${key.split("/")[1]} web: exceeded quota`;
    expect(executor.refusals.ofDeletion(key)).toEqual({ message: why, until: 5_000 });
    clock.ms = 5_000;
    await execute("delete");
    expect(executor.refusals.ofDeletion(key)?.until).toBe(15_000);
    expect(told).toEqual([`DeletionRefused west: ${why}`]);
    expect(woken.length).toBeGreaterThan(0);
    clock.ms = 15_000;
    await execute("delete");
    expect(executor.refusals.ofDeletion(key)).toBeUndefined();
  });

  test("is held for ten minutes when another manager undoes five writes for one version of its source", async () => {
    const { executor, key, held, execute } = executes({});
    for (let write = 0; write < 5; write += 1) await execute("create");
    expect(held()).toEqual({ reason: "Undone", until: 600_000 });
    expect(held(later)).toBeUndefined();
    expect(executor.forget(key)).toBe(true);
    expect(held()).toBeUndefined();
  });

  test("is not patched again when the member stored no change of the difference", async () => {
    const { held, copy, execute } = executes({});
    await execute("patch");
    const seen = (resourceVersion: string) => ({ ...copy, metadata: { ...copy.metadata, resourceVersion } });
    expect(held(undefined, seen("4"))).toMatchObject({ reason: "NoEffect" });
    // Another manager has changed it since.
    expect(held(undefined, seen("5"))).toBeUndefined();
    expect(held(later, seen("4"))).toBeUndefined();
  });
});

describe("a Service with a traffic distribution that the member does not know", () => {
  const words =
    'Service "web" is invalid: spec.trafficDistribution: Unsupported value: "PreferSameZone": supported values: "PreferClose"';
  const unknown = ["Unprocessable", words, "spec.trafficDistribution"] as const;
  const invalid = [
    "Unprocessable",
    'Service "web" is invalid: spec.ports[0].port: Invalid value: 0',
    "spec.ports[0].port",
  ] as const;
  const distributions = (services: readonly ServiceObject[]) => services.map(({ spec }) => spec?.trafficDistribution);

  test("is created without it", async () => {
    const { objects, told, message, execute } = executing(SERVICES.Service, service, { errors: [unknown] });
    await execute("create");
    expect(distributions(objects)).toEqual(["PreferSameZone", undefined]);
    expect([told, message()]).toEqual([[], undefined]);
  });

  test("is changed without it, and then held", async () => {
    const { patches, told, held, copy, execute } = executing(SERVICES.Service, service, { errors: [unknown] });
    await execute("patch");
    const last = patches.map((patch) => patch.findLast(({ path }) => path === "/spec/trafficDistribution")?.value);
    expect(last).toEqual([undefined, null]);
    expect(told).toEqual([]);
    const seen = { ...copy, metadata: { ...copy.metadata, resourceVersion: "4" } };
    expect(held(service, seen)).toMatchObject({ reason: "NoEffect" });
  });

  test("has its refusal reported if it is refused without it, too", async () => {
    const { objects, told, execute } = executing(SERVICES.Service, service, { errors: [unknown, invalid] });
    await execute("create");
    expect(objects).toHaveLength(2);
    expect(told).toEqual([`NotInMember west: its API server refused Service web: ${invalid[1]}`]);
  });
});

test("records no event about a foreign object that serves users in place", async () => {
  const errors = [["AlreadyExists", "it exists"]] as const;
  const account = { metadata: { ...metadata, name: "builder" } };
  const { executor, key, told, held, execute } = executing(DEPENDENCIES.ServiceAccount, account, {
    errors,
    there: [{ metadata: { ...account.metadata, uid: "own" } }],
  });
  await execute("create");
  expect(executor.refusals.of(key)).toMatchObject({ inPlace: true });
  expect([held()?.until, told]).toEqual([600_000, []]);
});
