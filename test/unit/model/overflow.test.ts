import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { decide } from "../../../src/controllers/delegation/decide.ts";
import { decide as decideOverflow } from "../../../src/controllers/overflow/decide.ts";
import type { Action } from "../../../src/controllers/overflow/model.ts";
import type { Decide } from "../../support/model/controller.ts";
import { explore } from "../../support/model/explore.ts";
import type { DecideOverflow } from "../../support/model/overflow.ts";

/** The number of states, as in decide.test.ts. */
const STATES = Number(process.env.LEGATION_MODEL_STATES ?? 6000);
const TIMEOUT_MS = 20_000 + STATES * 5;

describe("a pod in overflow mode", () => {
  test.each([
    { what: "undisturbed", pods: 1, faults: 0 },
    { what: "with one fault", pods: 1, faults: 1 },
    { what: "that a member would take, with two faults", pods: 1, faults: 2, offered: true },
    { what: "that a member would take, and one of its name after it", pods: 2, faults: 1, offered: true },
    { what: "that runs in a member, and one of its name after it, with two faults", pods: 2, faults: 2, running: true },
  ])(
    "never runs in both clusters, and comes to rest in one: $what",
    { timeout: TIMEOUT_MS },
    ({ what: _, ...scenario }) => {
      const { violation, states, complete } = explore(
        { decide, overflow: decideOverflow, ...scenario },
        { states: STATES },
      );
      expect(violation).toBeUndefined();
      expect(complete || states >= STATES).toBe(true);
    },
  );
});

/** Returns a careless variant of `decideOverflow`. */
function careless(parts: {
  readonly sees?: (pod: Stored<Pod>) => Stored<Pod>;
  readonly does?: (action: Extract<Action, { readonly type: "overflow" }>) => Action;
}): DecideOverflow {
  const { sees = (pod) => pod, does = (action) => action } = parts;
  return (observed, now) => {
    const decision = decideOverflow({ ...observed, pod: sees(observed.pod) }, now);
    return {
      ...decision,
      actions: decision.actions.map((action) => (action.type === "overflow" ? does(action) : action)),
    };
  };
}

/** Gives the pod to another member than its Binding names. */
const elsewhere: Decide = (observed, now) => {
  const decision = decide(observed, now);
  const actions = decision.actions.map((action) =>
    action.type === "create" ? { ...action, member: action.member === "west" ? "east" : "west" } : action,
  );
  return { ...decision, actions };
};

describe("the model check", () => {
  test.each([
    {
      what: "that the scheduler may have found a node since",
      overflow: careless({ does: (action) => ({ ...action, resourceVersion: "" }) }),
      rule: /may have had a node/,
    },
    {
      what: "whose Binding it is",
      overflow: careless({ does: (action) => ({ ...action, uid: "", resourceVersion: "" }) }),
      rule: /may have had a node/,
    },
    {
      what: "that room is being made on a node",
      overflow: careless({
        sees: (pod) => {
          const { nominatedNodeName: _, ...status } = pod.status ?? {};
          return { ...pod, status };
        },
      }),
      rule: /may have had a node/,
    },
    { what: "in which member the pod is bound", decide: elsewhere, rule: /has a delegate in .*, and is legation-/ },
  ])("finds a decide that forgets $what", { timeout: TIMEOUT_MS }, ({ rule, ...parts }) => {
    const scenario = { decide, overflow: decideOverflow, pods: 2, faults: 1, ...parts };
    const { violation } = explore(scenario, { states: STATES });
    expect(violation?.rule).toMatch(rule);
    expect(violation?.trace.length).toBeGreaterThan(1);
  });
});
