import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../../src/api/delegated-type.ts";
import { emptyPlan } from "../../../../src/cli/plan/outcome.ts";
import { planText, shortfallOf } from "../../../../src/cli/plan/text.ts";
import { checkExpressions } from "../../../../src/cli/plan/whole.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { recordedSession } from "../session.ts";
import { host, namespace } from "../simulation/host.ts";
import { type PlanParts, planWith } from "./plan-with.ts";

const { terminal } = recordedSession();
const WIDGETS: DelegatedType = {
  metadata: { name: "widgets.shop.example.com" },
  spec: { group: "shop.example.com", version: "v1", kind: "Widget", plural: "widgets" },
};

function widget(annotations: object = {}, metadata: object = {}): WrittenObject {
  return {
    apiVersion: "shop.example.com/v1",
    kind: "Widget",
    metadata: { name: "one", annotations: { "legation.dev/whole": "true", ...annotations }, ...metadata },
  };
}

const ADMITTED: PlanParts = {
  types: [WIDGETS],
  answerToObject: async (_, { metadata, ...object }) => ({
    is: "admitted",
    object: { ...object, metadata: { name: "", ...metadata, uid: "u", resourceVersion: "1" } },
  }),
};

async function shown(object: WrittenObject, parts = ADMITTED, state = host({ west: {}, east: {} })): Promise<string[]> {
  return planText(await planWith(state, [object], parts), terminal).split("\n");
}

describe("the plan of an object with legation.dev/whole", () => {
  test("has the members that get it, and why each other does not", async () => {
    expect(await shown(widget())).toEqual(["Widget team/one: whole, in west, east"]);
    expect(await shown(widget({ "legation.dev/clusters": "west" }))).toEqual([
      "Widget team/one: whole, in west",
      "  CLUSTER  WHY NOT",
      "  east     not named by legation.dev/clusters",
    ]);
  });

  test("says that a member which does not answer gets it later", async () => {
    const lost = { type: "Ready", status: "False" as const, reason: "R", message: "it hangs", lastTransitionTime: "" };
    const state = host({ west: { status: { conditions: [lost] } } });
    expect(await shown(widget(), ADMITTED, state)).toEqual([
      "Widget team/one: whole, in west",
      "  west: as soon as it answers: it is not ready: it hangs",
    ]);
  });

  test("has no namespace where its type has none", async () => {
    const types: DelegatedType[] = [{ ...WIDGETS, spec: { ...WIDGETS.spec, scope: "Cluster" } }];
    const { workloads } = await planWith(host({ west: {} }), [widget()], { types });
    expect(workloads[0]).not.toHaveProperty("namespace");
  });

  test("counts an object that waits in a member which it misfits", () => {
    const misfit = { cluster: "west", message: "legation.dev/overrides: no field /size" };
    const plan = emptyPlan({ kind: "Widget", namespace: "team", name: "one" });
    const object = { clusters: [{ cluster: "west" }], others: [], misfits: [misfit] };
    const workloads = [{ ...plan, outcome: "waits", object } as const];
    expect(shortfallOf({ fits: false, workloads, guesses: [], notChecked: [] })).toBe("1 whole object would wait");
  });

  test("reads overrides as those of an object", async () => {
    const overrides = JSON.stringify([{ clusters: ["west"], patch: [{ op: "add", path: "/size", value: 2 }] }]);
    expect(await shown(widget({ "legation.dev/overrides": overrides }))).toEqual([
      "Widget team/one: whole, in west, east",
    ]);
  });

  test("says where an override does not fit, in the words of the event", async () => {
    const patch = [{ op: "replace", path: "/size", value: 2 }];
    const overrides = JSON.stringify([{ clusterSelector: "region in (eu)", patch }]);
    const state = host({ west: { labels: { region: "eu" } }, east: {} });
    const object = widget({ "legation.dev/overrides": overrides });
    const lines = [
      "Widget team/one: whole, in east",
      expect.stringMatching(
        /^ {2}NotPlaced: west: legation.dev\/overrides: \[0\]\.patch\[0\].* the object has nothing there/,
      ),
    ];
    expect(await shown(object, ADMITTED, state)).toEqual(lines);
    expect((await planWith(state, [object], ADMITTED)).fits).toBe(false);
    // Without a dry-run the object is as its author wrote it.
    const sized = { ...object, size: 1 };
    expect((await shown(sized, { types: [WIDGETS] }, state))[0]).toBe("Widget team/one: whole, in west, east");
  });

  test("has a reason, too, where the only member that is to have it is one that it does not fit", async () => {
    const patch = [{ op: "replace", path: "/size", value: 2 }];
    const object = widget({ "legation.dev/overrides": JSON.stringify([{ clusterSelector: "region in (eu)", patch }]) });
    const plan = await planWith(host({ west: { labels: { region: "eu" } } }), [object], ADMITTED);
    expect(shortfallOf(plan)).toBe("1 whole object would wait");
    expect(planText(plan, terminal).split("\n")).toEqual([
      "Widget team/one: whole, would wait",
      expect.stringMatching(/^ {2}NotPlaced: west: legation.dev\/overrides: .* the object has nothing there/),
    ]);
  });

  test("gives an object of an exclusive type to one member", async () => {
    const types = [{ ...WIDGETS, spec: { ...WIDGETS.spec, exclusive: true } }];
    expect(await shown(widget(), { ...ADMITTED, types })).toEqual([
      expect.stringMatching(/^Widget team\/one: whole, in (east|west)$/),
      "  CLUSTER  WHY NOT",
      expect.stringMatching(/ gets it: one member does$/),
    ]);
  });

  test("waits where no member gets it", async () => {
    const object = widget({ "legation.dev/clusters": "north" });
    const plan = await planWith(host({ west: {} }), [object], ADMITTED);
    expect(plan).toMatchObject({ fits: false, workloads: [{ outcome: "waits" }] });
    expect(await shown(widget(), ADMITTED, host({}))).toEqual([
      "Widget team/one: whole, would wait",
      "  NotPlaced: no member cluster has joined: see `legation join`",
    ]);
  });

  test("is refused as admission refuses it", async () => {
    expect(await shown(widget(), { ...ADMITTED, types: [] })).toEqual([
      expect.stringContaining(
        "would be refused: annotation legation.dev/whole: no member gets a Widget of shop.example.com, since no DelegatedType names it",
      ),
    ]);
    expect(await shown(widget({ "legation.dev/group": "a" }))).toEqual([
      expect.stringContaining("would be refused: annotation legation.dev/group: is not read on an object"),
    ]);
    const answerToObject: PlanParts["answerToObject"] = async () => ({ is: "refused", message: "no", ofQuota: false });
    expect(await shown(widget(), { ...ADMITTED, answerToObject })).toEqual(["Widget team/one: would be refused: no"]);
  });

  test("stays on the host in a namespace that is not opted in", async () => {
    const state = host({ west: {} }, { namespaces: [namespace("team", { labels: {} })] });
    expect(await shown(widget(), ADMITTED, state)).toEqual([
      "Widget team/one: not delegated: namespace team has no label legation.dev/delegation: the object stays on the host",
    ]);
  });

  test("says what was not checked", async () => {
    expect((await shown(widget(), { types: [WIDGETS] })).slice(-2)).toEqual([
      "not checked:",
      "  policies and webhooks for Widget team/one: you may not patch widgets",
    ]);
  });

  test("has no namespace for a type of the whole cluster", async () => {
    const types = [{ ...WIDGETS, spec: { ...WIDGETS.spec, scope: "Cluster" as const } }];
    expect(await shown(widget(), { ...ADMITTED, types })).toEqual(["Widget one: whole, in west, east"]);
  });
});

describe("a DelegatedType of the manifest", () => {
  const type = (spec: object): WrittenObject => ({
    apiVersion: "legation.dev/v1alpha1",
    kind: "DelegatedType",
    metadata: { name: "widgets.shop.example.com" },
    ...{ spec: { ...WIDGETS.spec, ...spec } },
  });

  test("is refused with the position of what does not compile", () => {
    expect(() => checkExpressions(type({ health: "object.status.ready &&\n  objekt.ready" }))).toThrow(
      "DelegatedType widgets.shop.example.com: spec.health: line 2, column 3: Unknown variable: objekt",
    );
  });

  test("is taken when its expressions compile", () => {
    expect(() => checkExpressions(type({ health: "object.status.ready" }))).not.toThrow();
    expect(() => checkExpressions(type({}))).not.toThrow();
  });
});
