import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { AnyObject, StatusRule } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import type { MemberCopy } from "../../../src/copies/object-status.ts";
import { type CopyHealth, compileExpressions } from "../../../src/copies/type-expressions.ts";

function copy(status?: object): Stored<AnyObject> {
  const metadata = { name: "one", uid: "u1", resourceVersion: "1", generation: 2, managedFields: [{ manager: "m" }] };
  return { metadata, ...(status === undefined ? {} : { status }) };
}

function holders(statuses: readonly (object | undefined)[]): MemberCopy[] {
  return statuses.map((status, index) => ({
    member: `m${index}`,
    inStep: true,
    isLost: false,
    ...(status === undefined ? {} : { copy: copy(status) }),
  }));
}

function ruled(status: object, rules: readonly StatusRule[], statuses: readonly (object | undefined)[]): unknown {
  return compileExpressions({ status: rules }).statusOf({ ...status }, holders(statuses));
}

describe("the pods of an object of a queue", () => {
  const rules = (pods?: string) => ({ suspend: "/spec/suspend", templates: ["/spec/template"], ...(pods && { pods }) });
  const counts = (pods: string | undefined, spec: object, status?: object): readonly number[] =>
    compileExpressions({ queue: rules(pods) }).podCounts({ ...copy(status), spec });

  test.each<[string, string | undefined, object, readonly number[]]>([
    ["are not known without an expression", undefined, {}, []],
    ["are the expression's numbers", "object.spec.parts.map(p, p.size)", { parts: [{ size: 2 }, { size: 3 }] }, [2, 3]],
    ["are none for what is no number", "[object.spec.size, 'two', -1]", { size: 2 }, [2, 0, 0]],
    ["are not known where a field is missing", "[object.spec.size]", {}, []],
    ["are not known if the expression does not compile", "[object.spec.", {}, []],
  ])("%s", (_, pods, spec, expected) => {
    expect(counts(pods, spec)).toEqual(expected);
  });

  test("of a JobSet are those of each template, and none once it has ended", () => {
    const shipped = readFileSync("manifests/delegated-types/jobsets.jobset.x-k8s.io.yaml", "utf8");
    const { pods } = parse(shipped).spec.queue;
    const job = (parallelism?: number) => ({ template: { spec: parallelism === undefined ? {} : { parallelism } } });
    const spec = { replicatedJobs: [job(), { replicas: 2, ...job(3) }] };
    expect(counts(pods, spec)).toEqual([1, 6]);
    expect(counts(pods, spec, { restarts: 1 })).toEqual([1, 6]);
    expect(counts(pods, spec, { terminalState: "Completed" })).toEqual([]);
  });

  test("are named where the expression does not compile", () => {
    expect(compileExpressions({ queue: rules("[object.spec.") }).problems).toEqual([
      expect.stringMatching(/^spec\.queue\.pods: line 1/),
    ]);
  });
});

describe("the health of a copy", () => {
  const ready = { type: "Ready", status: "False" };
  const available = { type: "Available", status: "True" };

  test.each<[string, string | undefined, object | undefined, CopyHealth]>([
    ["is its condition Ready by default", undefined, { conditions: [available, ready] }, { status: "False" }],
    ["or else Available", undefined, { conditions: [available] }, { status: "True" }],
    ["is none without conditions", undefined, { phase: "Up" }, {}],
    ["is what a bool says", "object.status.phase == 'Up'", { phase: "Up" }, { status: "True" }],
    [
      "is what a word says",
      "object.status.phase == 'Up' ? 'True' : 'Unknown'",
      {},
      unknown("line 1, column 15: No such key: phase"),
    ],
    [
      "is Unknown for another value",
      "object.status.phase",
      { phase: "Up" },
      unknown(`it is "Up"; write an expression that is true, false, "True", "False" or "Unknown"`),
    ],
    ["is none before the copy has a status", "object.status.phase == 'Up'", undefined, {}],
    [
      "sees the copy's own generation",
      "object.status.observedGeneration == object.metadata.generation",
      { observedGeneration: 2 },
      { status: "True" },
    ],
    [
      "is Unknown when the expression does not compile",
      "object.status.",
      {},
      unknown("line 1, column 15: Expected IDENTIFIER, got EOF"),
    ],
    ["does not see managedFields", "has(object.metadata.managedFields)", {}, { status: "False" }],
  ])("%s", (_, health, status, expected) => {
    expect(compileExpressions(health === undefined ? {} : { health }).healthOf(copy(status))).toEqual(expected);
  });

  function unknown(why: string): CopyHealth {
    return { status: "Unknown", message: `spec.health: ${why}` };
  }
});

describe("a status by rules", () => {
  const phase = (value: string): StatusRule[] => [{ path: "/status/phase", value }];

  test.each<[string, readonly StatusRule[], readonly (object | undefined)[], object]>([
    [
      "has a field computed from the members",
      phase("members.all(m, m.object.status.phase == 'Up') ? 'Up' : 'Down'"),
      [{ phase: "Up" }, { phase: "Down" }],
      { phase: "Down" },
    ],
    [
      "has a field computed from its values, of members that have it",
      phase("values.exists(v, v == 'Down') ? 'Down' : values[0]"),
      [{ phase: "Up" }, {}, undefined],
      { phase: "Up" },
    ],
    ["lacks a field whose rule yields null", phase("null"), [{ phase: "Up" }], {}],
    [
      "names members",
      phase("members.filter(m, has(m.object.status)).map(m, m.name).join(', ')"),
      [{}, undefined, {}],
      { phase: "m0, m2" },
    ],
    [
      "has fields in fields",
      [{ path: "/status/load/size", value: "values.map(v, int(v))[0]" }],
      [{ load: { size: 3 } }],
      { phase: "Up", load: { size: 3 } },
    ],
    [
      "has the least of its values",
      [{ path: "/status/end", value: "values.filter(v, values.all(w, timestamp(v) <= timestamp(w)))[?0]" }],
      [{ end: "2026-01-02T03:04:05Z" }, {}, { end: "2026-01-01T03:04:05Z" }],
      { phase: "Up", end: "2026-01-01T03:04:05Z" },
    ],
  ])("%s", (_, rules, statuses, status) => {
    expect(ruled({ phase: "Up" }, rules, statuses)).toEqual({ status, problems: [] });
  });

  test("lacks a field whose rule fails, and says why", () => {
    const rules = [...phase("members[0].object.status.url + 1"), { path: "/status/ready", value: "size(members)" }];
    expect(ruled({ phase: "Up", ready: 1 }, rules, [{ url: "a" }, {}])).toEqual({
      status: { ready: 2 },
      problems: ["spec.status[0] (/status/phase): line 1, column 1: no such overload: dyn<string> + int"],
    });
  });

  test("says nothing of missing fields while a member has not reported", () => {
    const rules = phase("members.all(m, m.object.status.phase == 'Up') ? 'Up' : 'Down'");
    expect(ruled({ phase: "Up" }, rules, [{ phase: "Up" }, undefined])).toEqual({ status: {}, problems: [] });
    expect(ruled({ phase: "Up" }, rules, [{ phase: "Up" }, {}])).toEqual({
      status: {},
      problems: ["spec.status[0] (/status/phase): line 1, column 32: No such key: phase"],
    });
  });

  test("lacks a field whose rule does not compile, which is a problem of the type", () => {
    const compiled = compileExpressions({ health: "true", status: phase("values.al(1)") });
    expect(compiled.problems).toEqual([
      "spec.status[0] (/status/phase): line 1, column 1: found no matching overload for 'list.al(int)'",
    ]);
    expect(compiled.statusOf({ phase: "Up" }, holders([{ phase: "Up" }]))).toEqual({ status: {}, problems: [] });
  });

  test("runs its rules again only when a copy has changed, or a member has left", () => {
    let reads = 0;
    const counting = (phase: string): Stored<AnyObject> => ({
      ...copy(),
      get status() {
        reads += 1;
        return { phase };
      },
    });
    const { statusOf } = compileExpressions({ status: phase("members.map(m, m.object.status.phase).join(' ')") });
    const there = ["Up", "Down"].map((phase, index) => ({
      ...{ member: `m${index}`, inStep: true, isLost: false },
      copy: counting(phase),
    }));
    expect(statusOf({ size: 1 }, there).status).toEqual({ size: 1, phase: "Up Down" });
    const before = reads;
    expect(statusOf({ size: 2 }, [...there]).status).toEqual({ size: 2, phase: "Up Down" });
    expect(reads).toBe(before);
    const changed = there.map((holder, index) => (index === 0 ? holder : { ...holder, copy: counting("Up") }));
    expect(statusOf({}, changed).status).toEqual({ phase: "Up Up" });
    expect(statusOf({}, there.slice(0, 1)).status).toEqual({ phase: "Up" });
  });

  test("are evaluated again when a member is lost, and when it is back", () => {
    const { statusOf } = compileExpressions({ status: phase("members.filter(m, m.ready).map(m, m.name).join(' ')") });
    const [first, second] = holders([{ phase: "Up" }, { phase: "Up" }]);
    if (first === undefined || second === undefined) throw new Error("two holders are made");
    const isLost = true;
    const names = (some: MemberCopy, other: MemberCopy): unknown => statusOf({}, [some, other]).status.phase;
    expect([names(first, second), names({ ...first, isLost }, second), names(first, second)]).toEqual([
      "m0 m1",
      "m1",
      "m0 m1",
    ]);
  });

  test("does not depend on the order of members", () => {
    const compiled = compileExpressions({ status: phase("members.map(m, m.object.status.phase).join(' ')") });
    const statuses = fc.array(fc.record({ phase: fc.constantFrom("Up", "Down") }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(statuses, (all) => {
        const given = holders(all);
        expect(compiled.statusOf({}, given.toReversed())).toEqual(compiled.statusOf({}, given));
      }),
    );
  });

  test("changes no other field", () => {
    const compiled = compileExpressions({ status: phase("values.all(v, v == 'Up') ? 'Up' : 'Down'") });
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.array(fc.jsonValue(), { maxLength: 4 }),
        (fields, phases) => {
          const { phase: _, ...rest } = fields;
          const result = compiled.statusOf(fields, holders(phases.map((value) => ({ phase: value }))));
          const { phase: computed, ...others } = result.status;
          expect(others).toEqual(rest);
          expect(computed).toBe(phases.every((value) => value === "Up" || value === null) ? "Up" : "Down");
        },
      ),
    );
  });
});
