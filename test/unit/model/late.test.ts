import { describe, expect, test } from "vitest";
import { decide } from "../../../src/controllers/delegation/decide.ts";
import type { Decide } from "../../support/model/controller.ts";
import { explore } from "../../support/model/explore.ts";

/** Bound on the states that each scenario explores; half as many as in decide.test.ts, since there are more states. */
const STATES = Number(process.env.LEGATION_MODEL_STATES ?? 3000);
const TIMEOUT_MS = 20_000 + STATES * 5;

/** Explores the scenario within the bound, and expects no violation. */
function expectRules(scenario: Parameters<typeof explore>[0]): void {
  const { violation, states, complete } = explore(scenario, { states: STATES });
  expect(violation).toBeUndefined();
  expect(complete || states >= STATES).toBe(true);
}

describe("requests that happen long after their senders gave up or were killed", () => {
  test.each([
    { what: "of a bare pod", pods: 1, faults: 1 },
    { what: "of a bare pod, twice", pods: 1, faults: 2 },
    { what: "of a pod with a controller", pods: 1, faults: 1, controlled: true },
    { what: "of a pod that runs, twice", pods: 1, faults: 2, running: true },
    { what: "of two pods of one name", pods: 2, faults: 1 },
  ])("keep the rules $what", { timeout: TIMEOUT_MS }, ({ what: _, ...scenario }) => {
    expectRules({ decide, late: true, ...scenario });
  });

  // For the next leader east is the better member again.
  const toWest = ["create", "host: seen", "create east p1 false: refused (fault)"];
  const after = [...toWest, "create in west: its sender killed (fault)"];

  test("keep the rules of a pod that the next leader would rather give to another member", {
    timeout: TIMEOUT_MS,
  }, () => {
    expectRules({ decide, late: true, pods: 1, faults: 2, after });
  });

  const hasty: Decide = (observed, now) =>
    decide({ ...observed, members: observed.members.map((member) => ({ ...member, reachableSince: 0 })) }, now);
  const trusting: Decide = (observed, now) => {
    const confirmedAbsent = observed.members.map(({ name }) => name);
    return decide({ ...observed, memory: { ...observed.memory, confirmedAbsent } }, now);
  };
  test.each([
    { what: "places pods of an earlier leader as soon as a member answers", decides: hasty },
    { what: "believes what the watches of members show of them", decides: trusting },
  ])("break a rule with a decide that $what", { timeout: TIMEOUT_MS }, ({ decides }) => {
    const { violation } = explore({ decide: decides, late: true, pods: 1, faults: 2, after }, { states: STATES });
    expect(violation?.rule).toMatch(/two live delegates/);
  });
});

describe("a member that is forgotten by force, and joined again", () => {
  test.each([
    { what: "for a bare pod", pods: 1, faults: 1 },
    { what: "for a pod with a controller", pods: 1, faults: 1, controlled: true },
    { what: "for one that runs, and one of its name after it, with two faults", pods: 2, faults: 2, running: true },
    { what: "with requests under way", pods: 1, faults: 2, late: true },
  ])("keeps all other rules $what", { timeout: TIMEOUT_MS }, ({ what: _, ...scenario }) =>
    expectRules({ decide, forgets: true, ...scenario }),
  );
});

describe("a host that is restored from a backup of any moment", () => {
  test.each([
    { what: "with a bare pod", pods: 1, faults: 1 },
    { what: "with a pod with a controller", pods: 1, faults: 1, controlled: true },
    { what: "with one that runs, and one of its name after it", pods: 2, faults: 1, running: true },
    { what: "with one that runs, and one fault more", pods: 1, faults: 2, running: true },
  ])("keeps the rules from then on $what", { timeout: TIMEOUT_MS }, ({ what: _, ...scenario }) =>
    expectRules({ decide, restores: true, ...scenario }),
  );
});
