import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DELEGATE_FINALIZER, PROXY_LABEL, SCHEDULER_NAME, SCHEDULER_NAME_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { isProxy, toProxy } from "../../../src/pods/proxy.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

describe("toProxy", () => {
  test("adds three marks and nothing else", () => {
    const before = pod({
      metadata: { labels: { app: "web" }, finalizers: ["x.io/y"] },
      spec: { restartPolicy: "Never" },
    });
    const { labels, finalizers } = before.metadata;
    expect(toProxy(before)).toEqual({
      ...before,
      metadata: {
        ...before.metadata,
        labels: { ...labels, [PROXY_LABEL]: "true" },
        finalizers: [...(finalizers ?? []), DELEGATE_FINALIZER],
      },
      spec: { ...before.spec, schedulerName: SCHEDULER_NAME },
    });
  });

  test.each([
    ["volcano", { [SCHEDULER_NAME_ANNOTATION]: "volcano" }],
    ["default-scheduler", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("keeps the scheduler %j as %j", (schedulerName, annotations) => {
    const spec = schedulerName === undefined ? {} : { schedulerName };
    expect(toProxy(pod({ spec })).metadata?.annotations).toEqual(annotations);
  });

  test("keeps a scheduler that another webhook set in between", () => {
    const touched: Pod = toProxy(pod({ spec: { schedulerName: "volcano" } }));
    const again = toProxy({ ...touched, spec: { containers: [], ...touched.spec, schedulerName: "yunikorn" } });
    expect(isProxy(again)).toBe(true);
    expect(again.metadata?.annotations).toEqual({ [SCHEDULER_NAME_ANNOTATION]: "yunikorn" });
    const reset = toProxy({
      ...touched,
      spec: { containers: [], ...touched.spec, schedulerName: "default-scheduler" },
    });
    expect(reset.metadata?.annotations).toEqual({});
  });

  test("returns a proxy unchanged", () => {
    const proxy = proxyPod();
    expect(toProxy(proxy)).toBe(proxy);
  });

  test.each<[string, Parameters<typeof proxyPod>[0]]>([
    ["label", { metadata: { labels: { [PROXY_LABEL]: "false" } } }],
    ["finalizer", { metadata: { finalizers: [] } }],
    ["scheduler", { spec: { schedulerName: "default-scheduler" } }],
  ])("restores a lost %s, and nothing twice", (_, lost) => {
    const again = toProxy(proxyPod(lost));
    expect(again.metadata?.finalizers).toEqual([DELEGATE_FINALIZER]);
    expect(again.metadata?.labels?.[PROXY_LABEL]).toBe("true");
    expect(again.spec?.schedulerName).toBe(SCHEDULER_NAME);
    // The name Legation would leave the delegate to a scheduler that no member has.
    expect(again.metadata?.annotations).toBeUndefined();
  });
});

describe("a pod is a proxy only with all three marks", () => {
  test.each<[string, Pod]>([
    ["no label", proxyPod({ metadata: { labels: { [PROXY_LABEL]: "false" } } })],
    ["no finalizer", proxyPod({ metadata: { finalizers: ["other"] } })],
    ["another scheduler", proxyPod({ spec: { schedulerName: "default-scheduler" } })],
  ])("%s", (_, one) => {
    expect(isProxy(one)).toBe(false);
  });
});

const strings = fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 });
const anyPod: fc.Arbitrary<Pod> = fc.record(
  {
    metadata: fc.record(
      { labels: strings, annotations: strings, finalizers: fc.array(fc.string()), name: fc.string() },
      { requiredKeys: [] },
    ),
    spec: fc
      .record(
        { schedulerName: fc.constantFrom("legation", "", "volcano", "default-scheduler"), nodeName: fc.string() },
        { requiredKeys: [] },
      )
      .map((spec) => ({ containers: [], ...spec })),
  },
  { requiredKeys: [] },
);

describe("for all pods", () => {
  test("makes a proxy, and is idempotent", () => {
    fc.assert(
      fc.property(anyPod, (one) => {
        const proxy = toProxy(one);
        expect(isProxy(proxy)).toBe(true);
        expect(toProxy(proxy)).toEqual(proxy);
      }),
    );
  });
});
