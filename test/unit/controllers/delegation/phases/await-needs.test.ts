import { describe, expect, test } from "vitest";
import { expectPrepared } from "../../../../../src/controllers/delegation/actions/expectations.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import type { Needs, Preparation } from "../../../../../src/placement/needs.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { boundProxy, gone, member, memory, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const missing = { reason: "FailedMount", message: 'configmap "a" not found' };

function needs(preparation: Record<string, Preparation> = {}): () => Needs {
  return () => ({ state: "there", in: (name) => preparation[name] ?? "prepared" });
}

const awaited = (): Needs => ({ state: "awaited" });
const lacking = (): Needs => ({ state: "missing", ...missing });

function decided(given: () => Needs | undefined, parts: Parameters<typeof world>[2] = {}): string[] {
  const members = [member("west"), member("east", { used: 5 })];
  const { actions, outcome } = decide(world(proxyPod(), members, { needs: given, ...parts }), now);
  return [outcome, ...actions.map((action) => ("member" in action ? `${action.type} ${action.member}` : action.type))];
}

describe("a proxy with dependencies", () => {
  test.each<[string, () => Needs | undefined, string[]]>([
    ["is placed if it has none", () => undefined, ["Placing", "create west"]],
    ["is placed where all of them are", needs(), ["Placing", "create west"]],
    ["has missing ones prepared first", needs({ west: "unprepared" }), ["Preparing", "prepare west"]],
    ["goes elsewhere if a member refuses them", needs({ west: { refused: "taken" } }), ["Placing", "create east"]],
    ["waits while the host is being read", awaited, ["Waiting"]],
    ["waits for missing ones, and reports that", lacking, ["Waiting", "report"]],
  ])("%s", (_, given, expected) => {
    expect(decided(given)).toEqual(expected);
  });

  test.each<[string, () => Needs, string[]]>([
    ["there", needs(), ["Placing", "create"]],
    ["not there", needs({ west: "unprepared" }), ["Preparing"]],
    ["refused", needs({ west: { refused: "taken" } }), ["Preparing", "report"]],
  ])("gets another delegate after its first was deleted before it started, if they are: %s", (_, given, expected) => {
    const { actions, outcome } = decide(world(boundProxy(), [member("west")], { needs: given, ...gone }), now);
    expect([outcome, ...actions.map(({ type }) => type)]).toEqual(expected);
  });

  test("reports once what is missing, in the kubelet's words", () => {
    const observed = world(proxyPod(), [member("west")], { needs: lacking });
    expect(decide(observed, now).actions).toEqual([{ type: "report", proxyUid: "uid-1", ...missing }]);
    const memoryOfIt = memory({ reported: missing });
    expect(decide({ ...observed, memory: memoryOfIt }, now).actions).toEqual([]);
  });

  test("reports why no member takes it", () => {
    const refused = { refused: "ConfigMap a is there already" };
    const observed = world(proxyPod(), [member("west")], { needs: needs({ west: refused }) });
    expect(decide(observed, now).actions).toMatchObject([{ message: "west: ConfigMap a is there already" }]);
  });

  test("is created again where it may be, whatever is missing now", () => {
    expect(decided(lacking, { memory: memory({ uncertain: "west" }) })).toEqual(["Placing", "create west"]);
  });

  test("waits for members that may have it, even if they refuse its dependencies", () => {
    const members = [member("west", { read: false }), member("east")];
    const given = needs({ west: { refused: "not read" } });
    const observed = world(proxyPod(), members, { needs: given, memory: memory({ fresh: false }) });
    expect(decide(observed, now)).toMatchObject({ outcome: "Waiting", actions: [{ reason: "ClusterNotReady" }] });
    const lacks = ({ name }: { name: string }): string | undefined =>
      name === "west" ? "no way to the host" : undefined;
    const without = world(proxyPod(), members, { lacks, memory: memory({ fresh: false }) });
    expect(decide(without, now)).toMatchObject({ outcome: "Waiting", actions: [{ reason: "ClusterNotReady" }] });
    expect(decide({ ...without, memory: memory() }, now)).toMatchObject({
      actions: [{ type: "create", member: "east" }],
    });
  });

  test.each<[Preparation | "missing" | "nothing", boolean]>([
    ["unprepared", false],
    ["prepared", true],
    [{ refused: "no" }, true],
    ["missing", true],
    ["nothing", true],
  ])("is looked at again when its member is %j: %s", (state, expected) => {
    const given = (): Needs | undefined => {
      if (state === "nothing") return undefined;
      return state === "missing" ? lacking() : needs({ west: state })();
    };
    expect(expectPrepared("west")(world(proxyPod(), [member("west")], { needs: given }))).toBe(expected);
  });
});
