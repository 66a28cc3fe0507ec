import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FORWARDED_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod, PodCondition, Stored } from "../../../src/api/kubernetes.ts";
import { statusFrom } from "../../../src/pods/feedback.ts";
import { forwardPatches } from "../../../src/pods/forward.ts";
import { gatePatch } from "../../../src/pods/readiness-gates.ts";
import { pod, proxyPod, runningStatus } from "../../support/builders/pod.ts";

const GATE = "example.com/registered";
const spec = { readinessGates: [{ conditionType: GATE }] };
const early = "2026-01-01T00:00:00Z";
const late = "2026-01-01T00:00:01Z";
const noon = "2026-01-01T12:00:00Z";

function proxy(...conditions: PodCondition[]): Stored<Pod> {
  return proxyPod({ spec, status: { phase: "Running", conditions } });
}

function delegate(...conditions: PodCondition[]): Stored<Pod> {
  return pod({ uid: "delegate-uid", spec, status: { ...runningStatus(), conditions } });
}

/** The delegate with a record of what it has from the host. */
function recorded(gates: readonly string[], made: Stored<Pod>): Stored<Pod> {
  const record = JSON.stringify({ labels: ["app"], annotations: [], gates, spec: { a: "1" } });
  return { ...made, metadata: { ...made.metadata, annotations: { [FORWARDED_ANNOTATION]: record } } };
}

function withConditions(made: Stored<Pod>, ...conditions: PodCondition[]): Stored<Pod> {
  return { ...made, status: { ...made.status, conditions } };
}

/** The delegate once all that is to be recorded of the gates is on record. */
function agreed(host: Stored<Pod>, made: Stored<Pod>): Stored<Pod> {
  const annotations = forwardPatches(host, made).at(-1)?.body.metadata.annotations ?? {};
  return {
    ...made,
    metadata: {
      ...made.metadata,
      annotations: { ...made.metadata.annotations, ...(annotations as Record<string, string>) },
    },
  };
}

function gate(status: string, lastTransitionTime?: string): PodCondition {
  return { type: GATE, status, ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }) };
}

describe("a readiness gate", () => {
  test("opened on the host is opened for the delegate's kubelet", () => {
    const opened = { ...gate("True", early), reason: "Registered", observedGeneration: 7 };
    const made = recorded([], delegate());
    expect(gatePatch(proxy(opened), made)).toEqual({
      subresource: "status",
      body: {
        metadata: {
          uid: "delegate-uid",
          annotations: {
            [FORWARDED_ANNOTATION]: `{"labels":["app"],"annotations":[],"gates":["${GATE}"],"gatePrints":{"${GATE}":"1kytwjl"},"spec":{"a":"1"}}`,
          },
        },
        status: {
          conditions: [{ type: GATE, status: "True", reason: "Registered", message: null, lastTransitionTime: early }],
        },
      },
    });
  });

  test.each<[string, PodCondition[], PodCondition[], boolean]>([
    ["neither side opened", [], [], false],
    ["the delegate shows already", [gate("True", early)], [gate("True", early)], false],
    ["the host closed later", [gate("False", late)], [gate("True", early)], true],
    ["the member closed later", [gate("True", early)], [gate("False", late)], false],
    ["both changed at the same time", [gate("False", late)], [gate("True", late)], true],
    ["has no transition times", [gate("False")], [gate("True")], true],
    ["has a transition time in the member only", [gate("False")], [gate("True", early)], false],
    ["only the member opened", [], [gate("True", early)], false],
  ])("that %s", (_, ours, theirs, written) => {
    expect(gatePatch(proxy(...ours), delegate(...theirs)) !== undefined).toBe(written);
  });

  test("opened in the member is open on the host", () => {
    expect(statusFrom(proxy(), delegate(gate("True", early)))?.conditions).toEqual([gate("True", early)]);
    const closed = proxy(gate("False", early));
    expect(statusFrom(closed, delegate(gate("True", late)))?.conditions).toEqual([gate("True", late)]);
  });

  test("opened by the host is shut when its condition is removed there", () => {
    const opened = recorded([GATE], delegate(gate("True", early)));
    expect(statusFrom(proxy(), opened)?.conditions).toEqual([]);
    expect(gatePatch(proxy(), opened)?.body).toEqual({
      metadata: {
        uid: "delegate-uid",
        annotations: { [FORWARDED_ANNOTATION]: '{"labels":["app"],"annotations":[],"spec":{"a":"1"}}' },
      },
      status: { conditions: [{ type: GATE, $patch: "delete" }] },
    });
    // A condition that the member sets afterwards is the member's.
    const again = recorded([], delegate(gate("True", late)));
    expect(statusFrom(proxy(), again)?.conditions).toEqual([gate("True", late)]);
    expect(gatePatch(proxy(), again)).toBeUndefined();
  });

  test("keeps the host's probe time", () => {
    const ours = { type: GATE, status: "True", lastTransitionTime: early, lastProbeTime: late };
    const { lastProbeTime: _, ...theirs } = ours;
    expect(statusFrom(proxy(ours), delegate(theirs))?.conditions).toContainEqual(ours);
    const written = { ...theirs, lastProbeTime: null } as unknown as PodCondition;
    expect(statusFrom(proxy(ours), delegate(written))?.conditions).toContainEqual(ours);
    // The member's own probe time counts if there is one.
    const probed = { ...theirs, lastProbeTime: noon };
    expect(statusFrom(proxy(ours), delegate(probed))?.conditions).toContainEqual(probed);
  });

  test("stays on record while labels and images change", () => {
    const opened = recorded([GATE], delegate(gate("True", early)));
    const changed = proxy(gate("True", early));
    changed.metadata.labels = { ...changed.metadata.labels, changed: "yes" };
    const records = forwardPatches(changed, opened).map(
      ({ body }) => body.metadata.annotations?.[FORWARDED_ANNOTATION],
    );
    expect(records.map((record) => JSON.parse(record ?? "{}").gates)).toEqual([[GATE]]);
  });

  test.each(["Ready", "ContainersReady", "PodScheduled", "legation.dev/Other"])(
    "named %s opens nothing, since others write that condition",
    (type) => {
      const gates = { readinessGates: [{ conditionType: type }] };
      const ours = proxyPod({ spec: gates, status: { conditions: [{ type, status: "True" }] } });
      expect(gatePatch(ours, pod({ spec: gates }))).toBeUndefined();
    },
  );

  test("does not include other conditions of the host", () => {
    const other = { type: "example.com/other", status: "True" };
    expect(gatePatch(proxy(other), delegate())).toBeUndefined();
  });

  describe("that both sides had equal", () => {
    const first = gate("True", noon);

    test("is shut by the host whatever the time is there", () => {
      const both = agreed(proxy(first), delegate(first));
      const shut = proxy(gate("False", early));
      expect(statusFrom(shut, both)?.conditions).toEqual([gate("False", early)]);
      expect(gatePatch(shut, both)?.body.status).toEqual({
        conditions: [{ type: GATE, status: "False", reason: null, message: null, lastTransitionTime: early }],
      });
    });

    test("is shut by the member whatever the time is there", () => {
      const both = agreed(proxy(first), delegate(first));
      const shut = withConditions(both, gate("False", early));
      expect(statusFrom(proxy(first), shut)?.conditions).toEqual([gate("False", early)]);
      expect(gatePatch(proxy(first), shut)).toBeUndefined();
    });

    test("is shut on the host when the member takes the condition away, and stays shut", () => {
      const both = agreed(proxy(first), delegate(first));
      const withdrawn = withConditions(both);
      expect(statusFrom(proxy(first), withdrawn)?.conditions).toEqual([]);
      expect(gatePatch(proxy(first), withdrawn)).toBeUndefined();
      // Another time it may be the host that opens it, and that the same way.
      const forgotten = agreed(proxy(), withdrawn);
      expect(gatePatch(proxy(first), forgotten)?.body.status).toMatchObject({ conditions: [{ status: "True" }] });
    });

    test("is recorded once, in one write", () => {
      const both = agreed(proxy(first), delegate(first));
      expect(forwardPatches(proxy(first), both)).toEqual([]);
    });

    test("changed by both follows the later change", () => {
      const both = agreed(proxy(first), delegate(first));
      const theirs = withConditions(both, gate("False", late));
      expect(gatePatch(proxy(gate("False", early)), theirs)).toBeUndefined();
      expect(gatePatch(proxy({ ...gate("Unknown", late), reason: "B" }), theirs)).toBeDefined();
    });
  });

  test("with a record of an earlier version can still be removed by the host", () => {
    const opened = recorded([GATE], delegate(gate("True", early)));
    const [patch] = forwardPatches(proxy(gate("True", early)), opened);
    const record = JSON.parse(patch?.body.metadata.annotations?.[FORWARDED_ANNOTATION] ?? "{}");
    expect(record).toMatchObject({ gates: [GATE], gatePrints: { [GATE]: expect.any(String) } });
    expect(gatePatch(proxy(), opened)?.body.status).toEqual({ conditions: [{ type: GATE, $patch: "delete" }] });
  });

  test("is equal on both sides after one exchange, in any order of writes", () => {
    const side = fc.option(
      fc.record(
        {
          status: fc.constantFrom("True", "False"),
          lastTransitionTime: fc.constantFrom(early, late),
          reason: fc.constantFrom("A", "B"),
        },
        { requiredKeys: ["status"] },
      ),
      { nil: undefined },
    );
    fc.assert(
      fc.property(side, side, side, fc.boolean(), (before, ours, theirs, isKnown) => {
        const conditions = (condition: typeof ours): PodCondition[] =>
          condition === undefined ? [] : [{ type: GATE, ...condition }];
        const host = proxy(...conditions(ours));
        const made = delegate(...conditions(before));
        const known = isKnown ? agreed(proxy(...conditions(before)), made) : made;
        const member = withConditions(known, ...conditions(theirs));
        const forwarded = gatePatch(host, member) === undefined ? member : withConditions(known, ...conditions(ours));
        const shown = statusFrom(host, member)?.conditions ?? [];
        expect(shown).toEqual(forwarded.status?.conditions);
        const recordedThen = agreed(proxy(...shown), forwarded);
        expect(gatePatch(proxy(...shown), recordedThen)).toBeUndefined();
        expect(forwardPatches(proxy(...shown), recordedThen)).toEqual([]);
        if (!isKnown || JSON.stringify(ours) === JSON.stringify(theirs)) return;
        // The only side that changed it counts.
        if (JSON.stringify(ours) === JSON.stringify(before)) expect(shown).toEqual(conditions(theirs));
        if (JSON.stringify(theirs) === JSON.stringify(before)) expect(shown).toEqual(conditions(ours));
      }),
    );
  });
});
