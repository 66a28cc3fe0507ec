import { describe, expect, test } from "vitest";
import { DELEGATE_UID_ANNOTATION } from "../../../src/api/keys.ts";
import { decide } from "../../../src/controllers/delegation/decide.ts";
import type { Action } from "../../../src/controllers/delegation/decision/decision.ts";
import type { View } from "../../../src/controllers/delegation/decision/view.ts";
import type { Decide } from "../../support/model/controller.ts";
import { explore } from "../../support/model/explore.ts";

/** Bound on the states that each scenario explores; docs/development.md tells how to raise it. */
const STATES = Number(process.env.LEGATION_MODEL_STATES ?? 6000);
const TIMEOUT_MS = 20_000 + STATES * 5;

/** Returns a careless variant of `decide`. */
function broken(parts: {
  readonly sees?: (observed: View) => View;
  readonly does?: (action: Action) => Action[];
}): Decide {
  const { sees = (observed) => observed, does = (action) => [action] } = parts;
  return (observed, now) => {
    const decision = decide(sees(observed), now);
    return { ...decision, actions: decision.actions.flatMap(does) };
  };
}

/** Returns the proxy as if its deletion had been forced. */
function byForce({ proxy }: View): Pick<View, "proxy"> {
  if (proxy?.metadata.deletionGracePeriodSeconds === undefined) return { proxy };
  return { proxy: { ...proxy, metadata: { ...proxy.metadata, deletionGracePeriodSeconds: 0 } } };
}

/** The Binding is done and not seen, and the delegate has gone. */
const BOUND_UNSEEN = [
  ...["create", "host: seen", "create east p1 false: done", "east: scheduled", "east: deleted there (fault)"],
  ...["east: gone", "east: seen", "bind east p1 east-1 node: done"],
];

describe("every state of the model, and every rest reached from it", () => {
  test.each([
    { what: "a bare pod, undisturbed", pods: 1, faults: 0 },
    { what: "two pods of one name, undisturbed", pods: 2, faults: 0 },
    { what: "a bare pod and one fault", pods: 1, faults: 1 },
    { what: "a pod with a controller and one fault", pods: 1, faults: 1, controlled: true },
    { what: "a bare pod that runs, and two faults", pods: 1, faults: 2, running: true },
    { what: "a pod that runs, one of its name after it, and two faults", pods: 2, faults: 2, running: true },
    { what: "two pods of one name and two faults", pods: 2, faults: 2 },
    { what: "a pod whose delegate loses its marks", pods: 2, faults: 1, running: true, unmarks: true },
    { what: "the same with a controller", pods: 2, faults: 1, running: true, unmarks: true, controlled: true },
    { what: "a pod whose Binding is not seen, and whose delegate has gone", pods: 2, faults: 2, after: BOUND_UNSEEN },
  ])("keeps the rules: $what", { timeout: TIMEOUT_MS }, ({ what: _, ...scenario }) => {
    const { violation, states, complete } = explore({ decide, ...scenario }, { states: STATES });
    expect(violation).toBeUndefined();
    expect(complete || states >= STATES).toBe(true);
  });
});

/** The create in east was not answered, and east is given up. */
const UNCERTAIN = [
  ...["create", "host: seen", "east: cut off (fault)"],
  ...["create east p1 false: vanished", "east: given up"],
];

describe("a lost member whose node is not Ready", () => {
  test.each([
    { what: "for a bare pod and one fault", pods: 1, faults: 1 },
    { what: "for one that runs, and one of its name after it, with two faults", pods: 2, faults: 2, running: true },
    { what: "for an uncertain pod, and two faults more", pods: 1, faults: 3, after: UNCERTAIN },
    { what: "for an uncertain pod, and one of its name after it", pods: 2, faults: 2, after: UNCERTAIN },
    { what: "for requests about it that are done late", pods: 1, faults: 2, after: UNCERTAIN, late: true },
    {
      what: "for a Binding to that node that is done late, under the next leader",
      pods: 1,
      faults: 3,
      after: [...UNCERTAIN, "bind in east: its sender killed (fault)"],
      late: true,
    },
  ])("keeps the rules $what", { timeout: TIMEOUT_MS }, ({ what: _, ...scenario }) => {
    const { violation, states, complete } = explore({ decide, losesNodes: true, ...scenario }, { states: STATES });
    expect(violation).toBeUndefined();
    expect(complete || states >= STATES).toBe(true);
  });

  test("breaks a rule with a decide that forgets that another member may have the pod", { timeout: TIMEOUT_MS }, () => {
    const careless = broken({
      sees: ({ proxy, members, ...observed }) => ({
        ...observed,
        proxy,
        members: members.filter(({ name }) => proxy?.spec?.nodeName !== "legation-east" || name === "east"),
      }),
    });
    const after = [...UNCERTAIN, "bind in east: its sender killed (fault)"];
    const scenario = { decide: careless, losesNodes: true, pods: 1, faults: 3, after, late: true };
    const { violation } = explore(scenario, { states: 5 * STATES });
    expect(violation?.rule).toMatch(/^at rest: p1 has a delegate that it does not record$/);
  });
});

describe("the model check", () => {
  test.each([
    {
      forgets: "that its Binding may have been done",
      decide: broken({ sees: ({ memory: { binding: _, ...memory }, ...observed }) => ({ ...observed, memory }) }),
      rule: /two live delegates|its delegate lives/,
      after: BOUND_UNSEEN,
    },
    {
      forgets: "that a create may have been made",
      decide: broken({
        sees: ({ memory: { uncertain: _, ...memory }, ...observed }) => ({ ...observed, memory }),
      }),
      rule: /two live delegates|its delegate lives/,
    },
    {
      forgets: "that an earlier leader may have made a delegate",
      decide: broken({ sees: (observed) => ({ ...observed, memory: { ...observed.memory, fresh: true } }) }),
      rule: /two live delegates|its delegate lives/,
    },
    {
      forgets: "to sweep",
      decide: broken({ does: (action) => (action.type === "sweep" ? [] : [action]) }),
      rule: /left behind|no delegate/,
      running: true,
    },
    {
      forgets: "that a member does not answer",
      decide: broken({
        sees: (observed) => ({
          ...observed,
          members: observed.members.filter(({ reachable }) => reachable),
        }),
      }),
      rule: /two live delegates|its delegate lives/,
    },
    {
      forgets: "to delete the delegate before it releases the proxy",
      decide: broken({
        does: (action) => (action.type === "delete" ? [{ type: "removeFinalizer", proxyUid: action.uid }] : [action]),
      }),
      rule: /./,
    },
    {
      forgets: "that a delegate may only have lost its marks",
      decide: broken({
        sees: (observed) => {
          const gone = observed.proxy?.metadata.annotations?.[DELEGATE_UID_ANNOTATION] ?? "";
          return { ...observed, memory: { ...observed.memory, gone } };
        },
      }),
      rule: /nobody had deleted its delegate|left behind|its delegate lives/,
      running: true,
      unmarks: true,
    },
    {
      forgets: "what a delegate was last seen to do",
      decide: broken({
        sees: (observed) => ({ ...observed, members: observed.members.map(({ departed: _, ...member }) => member) }),
      }),
      rule: /has run, and is made again/,
    },
    {
      forgets: "which grace period was asked for",
      decide: broken({ sees: (observed) => ({ ...observed, ...byForce(observed) }) }),
      rule: /never goes/,
    },
    {
      forgets: "the delegate of a pod that is deleted by force",
      decide: broken({ does: (action) => (action.type === "delete" && action.forced === true ? [] : [action]) }),
      rule: /have live delegates of one name/,
      faults: 0,
    },
    {
      forgets: "to release the proxy",
      decide: broken({ does: (action) => (action.type === "removeFinalizer" ? [] : [action]) }),
      rule: /never goes/,
    },
  ])(
    "finds a decide that forgets $forgets",
    { timeout: TIMEOUT_MS },
    ({ decide: careless, rule, faults = 1, running = false, unmarks = false, after = [] }) => {
      const { violation } = explore({ decide: careless, pods: 2, faults, running, unmarks, after }, { states: STATES });
      expect(violation?.rule).toMatch(rule);
      expect(violation?.trace.length).toBeGreaterThan(1);
    },
  );
});
