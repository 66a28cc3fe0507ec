import { describe, expect, test } from "vitest";
import { DEPENDENCIES } from "../../../../src/copies/dependencies.ts";
import { SERVICES } from "../../../../src/copies/services.ts";
import { executing, KINDS, metadata, service, testsOf } from "./executing.ts";

const NO_ANSWER = 'Internal error occurred: failed calling webhook "checks.example.com": connect: connection refused';

describe.each(KINDS)("the copy of a $title", ({ kind, source }) => {
  const { executes, name, foreignMs, later, refusals } = testsOf(kind, source);

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
