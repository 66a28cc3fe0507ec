import { beforeAll, describe, expect, test } from "vitest";
import { expectOutcome } from "../../support/scenarios/outcome.ts";
import type { Scenario, Stage, Step } from "../../support/scenarios/scenario.ts";
import { Simulation } from "../../support/scenarios/simulation.ts";
import { SCENARIOS } from "../../support/scenarios/table.ts";

const DELEGATION = { "legation.dev/delegation": "annotated" };
const all = SCENARIOS.flatMap(([, scenarios]) => scenarios);

function stepsIn(stage: Stage, { steps }: Scenario): Step[] {
  return steps.filter((step) => (step.stage ?? "well") === stage);
}

/** All that goes wrong with a scenario's steps; empty when nothing does. */
const problems = new Map<Scenario, unknown[]>();

function take(simulation: Simulation, stage: Stage): void {
  for (const [index, scenario] of all.entries()) {
    const namespace = scenario.namespace === undefined ? "shared" : `own-${index}`;
    for (const { make = [], expect: expected } of stepsIn(stage, scenario)) {
      try {
        for (const object of make) {
          const name = object.metadata?.name ?? "";
          const refused = simulation.make(object, namespace);
          const { refused: reason } = expected[name] ?? {};
          if (reason === undefined) expect(refused).toBeUndefined();
          else expect(refused).toMatch(reason);
        }
        simulation.settle();
        for (const [name, outcome] of Object.entries(expected))
          expectOutcome(simulation.pods(namespace), name, outcome);
      } catch (error) {
        problems.set(scenario, [...(problems.get(scenario) ?? []), error]);
      }
    }
  }
}

beforeAll(() => {
  const simulation = new Simulation();
  simulation.namespace("shared", DELEGATION, {});
  for (const [index, { namespace }] of all.entries()) {
    if (namespace === undefined) continue;
    simulation.namespace(`own-${index}`, { ...DELEGATION, ...namespace.labels }, namespace.annotations ?? {});
  }
  take(simulation, "well");
  simulation.trouble();
  take(simulation, "trouble");
});

test("has at least forty scenarios, no two with an object of one name or with one title", () => {
  const names = all.flatMap(({ steps }) =>
    steps.flatMap(({ make = [] }) => make.map(({ metadata }) => metadata?.name)),
  );
  expect(all.length).toBeGreaterThanOrEqual(40);
  expect(new Set(names).size).toBe(names.length);
  expect(new Set(all.map(({ shows }) => shows)).size).toBe(all.length);
});

describe.each(SCENARIOS)("%s", (_, scenarios) => {
  test.each(scenarios)("$shows", (scenario) => {
    for (const problem of problems.get(scenario) ?? []) throw problem;
  });
});
