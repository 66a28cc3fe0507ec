import { expect, test } from "vitest";
import { DEEDS, FAULTS, type Happening, LONG_DEEDS, LONG_FAULTS, planOf, type Repertoire } from "../../chaos/plan.ts";

test("gives the same plan for the same seed, and another one for another", () => {
  expect(planOf(7, 60_000)).toEqual(planOf(7, 60_000));
  expect(planOf(8, 60_000)).not.toEqual(planOf(7, 60_000));
});

const whatOf = (happening: Happening): string => (happening.type === "fault" ? happening.fault : happening.deed);

test.each<[string, Repertoire, readonly string[]]>([
  ["for a test", {}, [...FAULTS, ...DEEDS]],
  ["for a run with pods", { faults: LONG_FAULTS, deeds: LONG_DEEDS.pods }, [...LONG_FAULTS, ...LONG_DEEDS.pods]],
  [
    "for a run with objects",
    { faults: LONG_FAULTS, deeds: LONG_DEEDS.objects },
    [...LONG_FAULTS, ...LONG_DEEDS.objects],
  ],
  [
    "for a run with Services",
    { faults: LONG_FAULTS, deeds: LONG_DEEDS.services },
    [...LONG_FAULTS, ...LONG_DEEDS.services],
  ],
])("is in order %s, and contains everything if it is long", (_, repertoire, everything) => {
  const plan = planOf(1, 3_600_000, repertoire);
  expect(plan.map(({ at }) => at)).toEqual(plan.map(({ at }) => at).sort((a, b) => a - b));
  expect([...new Set(plan.map(whatOf))].sort()).toEqual([...everything].sort());
});
