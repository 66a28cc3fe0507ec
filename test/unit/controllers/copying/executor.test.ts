import { describe, expect, test } from "vitest";
import { SERVICES, type ServiceObject } from "../../../../src/copies/services.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { executing, KINDS, service, testsOf } from "./executing.ts";

describe.each(KINDS)("the copy of a $title", ({ kind, source }) => {
  const { executes, name, foreignMs, later, refusals } = testsOf(kind, source);

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
  const distributions = (services: readonly ServiceObject[]) => services.map(({ spec }) => spec?.trafficDistribution);

  test("is created without it", async () => {
    const { objects, told, message, execute } = executing(SERVICES.Service, service, { errors: [unknown] });
    await execute("create");
    expect(distributions(objects)).toEqual(["PreferSameZone", undefined]);
    expect([told, message()]).toEqual([[], undefined]);
  });

  test("is created without IP families, too, which the member lacks", async () => {
    const families = ["Unprocessable", "not configured on this cluster", "spec.ipFamilies[0]"] as const;
    const ofIpv6: typeof service = { ...service, spec: { ...service.spec, ipFamilies: ["IPv6"] } };
    const { objects, told, execute } = executing(SERVICES.Service, ofIpv6, { errors: [unknown, families] });
    await execute("create");
    const given: readonly ServiceObject[] = objects;
    expect(distributions(given)).toEqual(["PreferSameZone", undefined, undefined]);
    expect(given.map(({ spec }) => spec?.ipFamilies)).toEqual([["IPv6"], ["IPv6"], undefined]);
    expect(told).toEqual([]);
  });

  test("is told, when it is refused for the same field again", async () => {
    const { objects, told, execute } = executing(SERVICES.Service, service, { errors: [unknown, unknown] });
    await execute("create");
    expect(distributions(objects)).toEqual(["PreferSameZone", undefined]);
    expect(told).toHaveLength(1);
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
});
