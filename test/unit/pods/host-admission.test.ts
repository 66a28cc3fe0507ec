import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Pod, PodSpec, RuntimeClass, Stored } from "../../../src/api/kubernetes.ts";
import type { Override } from "../../../src/api/overrides.ts";
import { inMembers } from "../../../src/placement/in-member.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { forwardPatches } from "../../../src/pods/forward.ts";
import { type HostAdmission, mergedInto, withoutMerged } from "../../../src/pods/host-admission.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

const CONTAINERS = [{ name: "main", image: "busybox" }];
const SANDBOX = { key: "sandbox", operator: "Exists", effect: "NoSchedule" };
const TEAM = { key: "team", operator: "Equal", value: "a", effect: "NoExecute" };
const scheduling = { nodeSelector: { sandbox: "host-pool" }, tolerations: [SANDBOX] };

interface Host {
  readonly scheduling?: NonNullable<RuntimeClass["scheduling"]>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** The host's default PriorityClass. */
  readonly usual?: string;
}

function hostWith({ scheduling: given, annotations = {}, usual }: Host): HostAdmission {
  return {
    runtimeClass: (name) => (name === "sandbox" ? { handler: "kata", ...(given && { scheduling: given }) } : undefined),
    priorityClass: (name) => ({ value: 7, ...(name === usual ? { globalDefault: true } : {}) }),
    namespace: (name) => ({ metadata: name === "team" ? { annotations: { ...annotations } } : {} }),
  };
}

function written({ spec, ...of }: Stored<Pod>, host: HostAdmission): PodSpec | undefined {
  return spec && withoutMerged(spec, mergedInto({ ...of, spec }, host));
}

describe("removes what the host's admission merged", () => {
  test.each<[string, Host, Partial<PodSpec>, Partial<PodSpec>]>([
    [
      "without the node selector and the tolerations of its RuntimeClass",
      { scheduling },
      { runtimeClassName: "sandbox", nodeSelector: { sandbox: "host-pool" }, tolerations: [SANDBOX] },
      { runtimeClassName: "sandbox", tolerations: [] },
    ],
    [
      "with its own node selector and tolerations beside those of its RuntimeClass",
      { scheduling },
      {
        runtimeClassName: "sandbox",
        nodeSelector: { disk: "ssd", sandbox: "host-pool" },
        tolerations: [TEAM, SANDBOX],
      },
      { runtimeClassName: "sandbox", nodeSelector: { disk: "ssd" }, tolerations: [TEAM] },
    ],
    [
      "with what differs from its RuntimeClass in the value",
      { scheduling },
      {
        runtimeClassName: "sandbox",
        nodeSelector: { sandbox: "mine" },
        tolerations: [{ ...SANDBOX, effect: "NoExecute" }],
      },
      {
        runtimeClassName: "sandbox",
        nodeSelector: { sandbox: "mine" },
        tolerations: [{ ...SANDBOX, effect: "NoExecute" }],
      },
    ],
    [
      "with what a RuntimeClass that it does not name would have merged",
      { scheduling },
      { nodeSelector: { sandbox: "host-pool" }, tolerations: [SANDBOX] },
      { nodeSelector: { sandbox: "host-pool" }, tolerations: [SANDBOX] },
    ],
    [
      "without the node selector of its namespace",
      { annotations: { "scheduler.alpha.kubernetes.io/node-selector": "pool=a, rack=2" } },
      { nodeSelector: { pool: "a", rack: "2", disk: "ssd" } },
      { nodeSelector: { disk: "ssd" } },
    ],
    [
      "without the tolerations of its namespace",
      { annotations: { "scheduler.alpha.kubernetes.io/defaultTolerations": JSON.stringify([TEAM]) } },
      { tolerations: [TEAM, SANDBOX] },
      { tolerations: [SANDBOX] },
    ],
    [
      "with its tolerations where its namespace's cannot be read",
      { annotations: { "scheduler.alpha.kubernetes.io/defaultTolerations": "none" } },
      { tolerations: [TEAM] },
      { tolerations: [TEAM] },
    ],
    ["without the host's default PriorityClass", { usual: "usual" }, { priorityClassName: "usual" }, {}],
    [
      "with a PriorityClass that is not the default",
      { usual: "usual" },
      { priorityClassName: "high" },
      { priorityClassName: "high" },
    ],
  ])("%s", (_, host, merged, own) => {
    expect(written(pod({ spec: merged }), hostWith(host))).toEqual({ containers: CONTAINERS, ...own });
  });

  test("returns the same object if nothing was merged", () => {
    const own = pod({ spec: { runtimeClassName: "sandbox", nodeSelector: { disk: "ssd" }, tolerations: [TEAM] } });
    expect(written(own, hostWith({ scheduling, usual: "usual" }))).toBe(own.spec);
  });
});

describe("what the host merged into a pod", () => {
  const host = hostWith({ scheduling, usual: "usual" });
  const merged = { nodeSelector: { sandbox: "host-pool" }, tolerations: [SANDBOX], priorityClassName: "usual" };
  const proxy = proxyPod({ spec: { runtimeClassName: "sandbox", ...merged } });

  test("is visible to its author's overrides", () => {
    const paths = ["/spec/priorityClassName", "/spec/nodeSelector/sandbox", "/spec/tolerations/0"];
    const overrides: Override[] = [{ patch: paths.map((path) => ({ op: "remove", path })) }];
    const there = inMembers(proxy, overrides, mergedInto(proxy, host))({ name: "west", labels: {} });
    expect(there.pod.spec).toMatchObject({ runtimeClassName: "sandbox", nodeSelector: {}, tolerations: [] });
    expect(there.pod.spec).not.toHaveProperty("priorityClassName");
  });

  test("does not reach a running delegate with a toleration that its author adds", () => {
    const added = { ...proxy, spec: { containers: CONTAINERS, ...proxy.spec, tolerations: [SANDBOX, TEAM] } };
    const { metadata, spec } = toDelegate(proxy, { id: "host-id", name: "cern" }, undefined, written(proxy, host));
    const delegate = pod({ metadata: { ...metadata, uid: "delegate" }, ...(spec && { spec }) });
    const patches = forwardPatches(added, delegate, undefined, mergedInto(added, host));
    expect(patches.map(({ body }) => body.spec)).toEqual([{ tolerations: [TEAM] }]);
  });
});

const key = fc.constantFrom("a", "b", "c");
const value = fc.constantFrom("1", "2");
const selector = fc.dictionary(key, value, { maxKeys: 3 });
const toleration = fc.record({ key, operator: fc.constant("Equal"), value, effect: fc.constant("NoSchedule") });
const tolerations = fc.array(toleration, { maxLength: 3 });

test("removes what the host's RuntimeClass merged, and nothing of the author's", () => {
  fc.assert(
    fc.property(selector, tolerations, selector, tolerations, (own, ownTolerations, added, addedTolerations) => {
      const conflicts = Object.entries(added).some(([name, text]) => own[name] !== undefined && own[name] !== text);
      fc.pre(!conflicts);
      const nodeSelector = { ...own, ...added };
      const merged: Stored<Pod> = pod({
        spec: { runtimeClassName: "sandbox", nodeSelector, tolerations: [...ownTolerations, ...addedTolerations] },
      });
      const host = hostWith({ scheduling: { nodeSelector: added, tolerations: addedTolerations } });
      const spec = written(merged, host);
      const isAdded = (one: object): boolean =>
        addedTolerations.some((other) => JSON.stringify(other) === JSON.stringify(one));
      expect(spec?.tolerations).toEqual(ownTolerations.filter((one) => !isAdded(one)));
      const expected = Object.entries(own).filter(([name]) => added[name] === undefined);
      expect(spec?.nodeSelector ?? {}).toEqual(Object.fromEntries(expected));
    }),
  );
});
