import { describe, expect, test } from "vitest";
import type { WrittenObject } from "../../../../src/cli/plan/documents.ts";
import type { HostRules } from "../../../../src/cli/plan/host-admission.ts";
import { planOf } from "../../../../src/cli/plan/plan.ts";
import type { LimitRule, QuotaRule } from "../../../../src/cli/plan/rules.ts";
import { type DependencyKind, dependencyKey } from "../../../../src/pods/dependencies.ts";
import { pod } from "../../../support/builders/pod.ts";
import { deployment, host, namespace, plan } from "./host.ts";

const members = { east: {}, west: {} };

function rules(parts: Partial<HostRules>): ReturnType<typeof host> {
  return host(members, { rules: { missing: new Set(), quotas: [], limitRanges: [], unread: [], ...parts } });
}

function quota(spec: NonNullable<QuotaRule["spec"]>, used: Record<string, string> = {}): QuotaRule {
  return { metadata: { name: "team", namespace: "team" }, spec, status: { used } };
}

function limits(...items: readonly LimitRule[]): Partial<HostRules> {
  return { limitRanges: [{ metadata: { name: "limits", namespace: "team" }, spec: { limits: items } }] };
}

const absent = (kind: DependencyKind, name: string): Partial<HostRules> => ({
  missing: new Set([dependencyKey({ kind, namespace: "team", name })]),
});

/** A Deployment whose one container has these resources. */
const resourced = (resources: object, spec: object = {}): WrittenObject =>
  deployment(3, {}, { containers: [{ name: "main", image: "web:1", resources }], ...spec });

const uses = (optional: boolean): object => ({
  volumes: [{ name: "conf", configMap: { name: "web", ...(optional ? { optional } : {}) } }],
});

describe("what pods name and the host lacks", () => {
  test("is waited for in kubelet's words, as the pod's condition would say", () => {
    const planned = plan(rules(absent("ConfigMap", "web")), deployment(2, {}, uses(false)));
    expect(planned.fits).toBe(false);
    expect(planned.workloads[0]).toMatchObject({ outcome: "waits" });
    expect(planned.workloads[0]?.pods[0]).toMatchObject({
      reason: "FailedMount",
      message: 'MountVolume.SetUp failed for volume "conf" : configmap "web" not found',
    });
  });

  test("is not waited for where it is optional, or where the manifest itself has it, also after the pods", () => {
    const written = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "web" } };
    expect(plan(rules(absent("ConfigMap", "web")), deployment(2, {}, uses(true))).fits).toBe(true);
    expect(plan(rules(absent("ConfigMap", "web")), deployment(2, {}, uses(false)), written).fits).toBe(true);
    const elsewhere = { ...written, metadata: { name: "web", namespace: "other" } };
    expect(plan(rules(absent("ConfigMap", "web")), deployment(2, {}, uses(false)), elsewhere).fits).toBe(false);
  });

  test.each<[string, Partial<HostRules>, object, string]>([
    [
      "service account",
      absent("ServiceAccount", "robot"),
      { serviceAccountName: "robot" },
      'error looking up service account team/robot: serviceaccount "robot" not found',
    ],
    [
      "PriorityClass",
      { priorityClasses: [{ metadata: { name: "low" } }] },
      { priorityClassName: "high" },
      "no PriorityClass with name high was found",
    ],
    [
      "RuntimeClass",
      { runtimeClasses: [] },
      { runtimeClassName: "gvisor" },
      'pod rejected: RuntimeClass "gvisor" not found',
    ],
  ])("as a %s: no pod is let in", (_what, parts, podSpec, message) => {
    const planned = plan(rules(parts), deployment(2, {}, podSpec));
    expect(planned.workloads[0]?.pods).toEqual([
      expect.objectContaining({ reason: "FailedCreate", message }),
      expect.objectContaining({ reason: "FailedCreate", message }),
    ]);
    const bare = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web", annotations: { "legation.dev/delegate": "true" } },
    };
    const spec = { containers: [{ name: "main", image: "web:1" }], ...podSpec };
    expect(plan(rules(parts), { ...bare, spec }).workloads[0]).toMatchObject({ outcome: "refused", message });
  });

  test("is nothing where the manifest has the class, and a class adds what it adds", () => {
    const runtime = {
      apiVersion: "node.k8s.io/v1",
      kind: "RuntimeClass",
      metadata: { name: "gvisor" },
      overhead: { podFixed: { cpu: 8 } },
    };
    const planned = plan(rules({ runtimeClasses: [] }), deployment(1, {}, { runtimeClassName: "gvisor" }), runtime);
    expect(planned.workloads[0]?.pods[0]).toMatchObject({ reason: "NotPlaced" });
    expect(planned.workloads[0]?.pods[0]?.message).toContain("cpu: 9 requested, the largest node has 8");
  });

  test("and what could not be read is a guess, not a refusal", () => {
    const planned = plan(rules({ unread: ["secrets in namespace team cannot be read"] }), deployment(1));
    expect(planned).toMatchObject({ fits: true, guesses: [{ message: "secrets in namespace team cannot be read" }] });
  });
});

describe("a quota of the host", () => {
  test("lets in what it has room for, and refuses the rest in the API server's words", () => {
    const planned = plan(
      rules({ quotas: [quota({ hard: { pods: "4", cpu: "10" } }, { pods: "2", cpu: "2" })] }),
      deployment(3),
    );
    expect(planned.workloads[0]?.pods.map(({ cluster, reason }) => cluster ?? reason)).toEqual([
      "east",
      "west",
      "FailedCreate",
    ]);
    expect(planned.workloads[0]?.pods[2]?.message).toBe(
      "exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4",
    );
  });

  test.each<[string, NonNullable<QuotaRule["spec"]>, object, object, string | undefined]>([
    [
      "cores",
      { hard: { "requests.cpu": "2500m" } },
      { requests: { cpu: "1" } },
      {},
      "requested: requests.cpu=1, used: requests.cpu=2, limited: requests.cpu=2500m",
    ],
    [
      "tenths of cores, whose sum is not exact",
      { hard: { "requests.cpu": "300m" } },
      { requests: { cpu: "100m" } },
      {},
      undefined,
    ],
    [
      "limits",
      { hard: { "limits.memory": "1Gi" } },
      { limits: { memory: "512Mi" } },
      {},
      "requested: limits.memory=512Mi, used: limits.memory=1Gi, limited: limits.memory=1Gi",
    ],
    [
      "GPUs",
      { hard: { "requests.nvidia.com/gpu": "2" } },
      { limits: { "nvidia.com/gpu": "1" } },
      {},
      "requested: requests.nvidia.com/gpu=1",
    ],
    [
      "what pods do not say",
      { hard: { "limits.cpu": "8", memory: "1Gi" } },
      { requests: { cpu: "1" } },
      {},
      "failed quota: team: must specify limits.cpu for: main; memory for: main",
    ],
    ["best effort", { hard: { pods: "2" }, scopes: ["BestEffort"] }, {}, {}, "exceeded quota: team"],
    [
      "best effort, and they are not",
      { hard: { pods: "2" }, scopes: ["BestEffort"] },
      { requests: { cpu: "1" } },
      {},
      undefined,
    ],
    ["pods that end", { hard: { pods: "2" }, scopes: ["Terminating"] }, {}, {}, undefined],
    ["pods that do not end", { hard: { pods: "2" }, scopes: ["NotTerminating"] }, {}, {}, "exceeded quota: team"],
    [
      "a priority that they have",
      {
        hard: { pods: "2" },
        scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["high"] }] },
      },
      {},
      { priorityClassName: "high" },
      "exceeded quota: team",
    ],
    [
      "a priority that they have not",
      {
        hard: { pods: "2" },
        scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["high"] }] },
      },
      {},
      {},
      undefined,
    ],
    ["what is not asked for", { hard: { "requests.nvidia.com/gpu": "0", services: "0" } }, {}, {}, undefined],
  ])("of %s", (_what, spec, resources, podSpec, words) => {
    const { workloads } = plan(rules({ quotas: [quota(spec)] }), resourced(resources, podSpec));
    const refused = workloads[0]?.pods.filter(({ reason }) => reason === "FailedCreate") ?? [];
    if (words === undefined) expect(refused).toEqual([]);
    else expect(refused.at(-1)?.message).toContain(words);
  });

  test("is that of the manifest where it has one, with what the host has counted", () => {
    const written = {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "team" },
      spec: { hard: { pods: "3" } },
    };
    const stored = quota({ hard: { pods: "100" } }, { pods: "2" });
    const planned = plan(rules({ quotas: [stored] }), deployment(3), written);
    expect(planned.workloads[0]?.pods.filter(({ reason }) => reason === "FailedCreate")).toHaveLength(2);
    const wrong = { ...written, spec: { hard: 3 } };
    const unit = { ...written, spec: { hard: { memory: "1GB" } } };
    expect(() => plan(rules({}), deployment(3), unit)).toThrow(
      'ResourceQuota team: spec.hard.memory: "1GB" is no quantity; write a number',
    );
    expect(() => plan(rules({}), deployment(3), wrong)).toThrow("ResourceQuota team: spec.hard");
  });

  test.each<[string, object, object, string | undefined]>([
    ["what containers do not say", { limits: { cpu: "1", memory: "1Gi" } }, {}, undefined],
    ["limits alone", { limits: { cpu: "3", memory: "1Gi" } }, {}, "requested: cpu=3, used: cpu=3, limited: cpu=4"],
    [
      "limits beside what containers request",
      { limits: { cpu: "3", memory: "1Gi" } },
      { requests: { cpu: "2" } },
      "requested: cpu=2, used: cpu=4, limited: cpu=4",
    ],
  ])("takes pods by what is written for them as a whole: %s", (_what, resources, ofContainer, words) => {
    const spec = { hard: { cpu: "4", memory: "4Gi" } };
    const { workloads } = plan(rules({ quotas: [quota(spec)] }), resourced(ofContainer, { resources }));
    const refused = workloads[0]?.pods.find(({ reason }) => reason === "FailedCreate")?.message;
    if (words === undefined) expect(refused).toBeUndefined();
    else expect(refused).toContain(words);
  });

  test("of best effort is not for pods that say something as a whole", () => {
    const best = quota({ hard: { pods: "0" }, scopes: ["BestEffort"] });
    const planned = plan(rules({ quotas: [best] }), resourced({}, { resources: { requests: { cpu: "1" } } }));
    expect(planned.fits).toBe(true);
  });

  test("has less room for what comes after pods that run on the host", () => {
    const silent = { ...deployment(2), metadata: { name: "silent" } };
    const planned = plan(rules({ quotas: [quota({ hard: { pods: "3" } })] }), silent, deployment(2));
    expect(planned.workloads.map(({ outcome }) => outcome)).toEqual(["notDelegated", "waits"]);
    expect(planned.workloads[1]?.pods.filter(({ reason }) => reason === "FailedCreate")).toHaveLength(1);
  });

  test("of another namespace counts for none of them", () => {
    const other = { ...quota({ hard: { pods: "0" } }), metadata: { name: "none", namespace: "other" } };
    expect(plan(rules({ quotas: [other] }), deployment(3)).fits).toBe(true);
  });
});

describe("a LimitRange of the host", () => {
  test("gives requests to pods that have none, and members are chosen by these", () => {
    const item = { type: "Container", default: { cpu: "8" }, defaultRequest: { cpu: "8" } };
    const planned = plan(rules(limits(item)), deployment(5, {}, { containers: [{ name: "main", image: "web:1" }] }));
    expect(planned.workloads[0]?.pods.filter(({ cluster }) => cluster !== undefined)).toHaveLength(4);
  });

  test.each<[LimitRule, object, string]>([
    [
      { type: "Container", max: { cpu: "1" } },
      { limits: { cpu: "2" } },
      "maximum cpu usage per Container is 1, but limit is 2",
    ],
    [{ type: "Container", max: { cpu: "1" } }, {}, "maximum cpu usage per Container is 1.  No limit is specified"],
    [
      { type: "Container", min: { memory: "1Gi" } },
      { requests: { memory: "512Mi" } },
      "minimum memory usage per Container is 1Gi, but request is 512Mi",
    ],
    [{ type: "Container", min: { cpu: "1" } }, {}, "minimum cpu usage per Container is 1.  No request is specified"],
    [
      { type: "Pod", max: { cpu: "1" } },
      { limits: { cpu: "1500m" } },
      "maximum cpu usage per Pod is 1, but limit is 1500m",
    ],
    [
      { type: "Container", maxLimitRequestRatio: { cpu: "2" } },
      { requests: { cpu: "1" }, limits: { cpu: "4" } },
      "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
    ],
  ])("refuses by %j", (item, resources, words) => {
    const { workloads } = plan(rules(limits(item)), resourced(resources));
    expect(workloads[0]?.pods[0]).toMatchObject({ reason: "FailedCreate", message: words });
  });

  const limited = (name: string, cpu: string, parts: object = {}): object => ({
    name,
    resources: { requests: { cpu }, limits: { cpu } },
    ...parts,
  });
  test.each<[string, object]>([
    ["init container", { initContainers: [limited("init", "3")] }],
    ["sidecar", { initContainers: [limited("side", "1500m", { restartPolicy: "Always" })] }],
    ["pod as a whole", { resources: { limits: { cpu: "3" } } }],
  ])("of pods counts what is requested for a %s", (_what, parts) => {
    const item = { type: "Pod", max: { cpu: "2" } };
    const spec = { containers: [limited("main", "1")], overhead: { cpu: "5" } };
    expect(plan(rules(limits(item)), deployment(1, {}, spec)).fits).toBe(true);
    const [first] = plan(rules(limits(item)), deployment(1, {}, { ...spec, ...parts })).workloads[0]?.pods ?? [];
    expect(first?.message).toMatch(/^maximum cpu usage per Pod is 2, but limit is (3|2500m)$/);
  });

  test("gives containers what leaves the requests of the pod as a whole as they are", () => {
    const item = { type: "Container", defaultRequest: { cpu: "8" } };
    const { workloads } = plan(rules(limits(item)), resourced({}, { resources: { limits: { cpu: "1" } } }));
    expect(workloads[0]?.outcome).toBe("fits");
  });

  test.each<[LimitRule, string | undefined]>([
    [{ type: "Container", max: { memory: "1Gi" } }, undefined],
    [{ type: "Container", min: { memory: "1Gi" } }, undefined],
    [{ type: "Container", max: { cpu: "500m" } }, "maximum cpu usage per Container is 500m, but request is 1"],
    [{ type: "Pod", max: { memory: "1Gi" } }, "maximum memory usage per Pod is 1Gi.  No limit is specified"],
  ])("of the manifest has the API server's defaults: %j", (item, words) => {
    const written = {
      apiVersion: "v1",
      kind: "LimitRange",
      metadata: { name: "limits" },
      spec: { limits: [item] },
    };
    const [first] = plan(rules({}), written, resourced({ requests: { cpu: "1" } })).workloads[0]?.pods ?? [];
    expect(first?.message).toBe(words);
  });
});

test("replaced pods free their part of a quota", () => {
  const old = pod({
    name: "web-6d4cf56db6-aaaaa",
    uid: "old",
    metadata: {
      labels: { "legation.dev/proxy": "true", "pod-template-hash": "6d4cf56db6" },
      ownerReferences: [
        { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-6d4cf56db6", uid: "rs", controller: true },
      ],
    },
  });
  const full = {
    missing: new Set<never>(),
    quotas: [quota({ hard: { pods: "1" } }, { pods: "1" })],
    limitRanges: [],
    unread: [],
  };
  const state = host(members, { rules: full, proxies: [old] });
  const fits = (existing: readonly WrittenObject[]): boolean =>
    planOf([deployment(1)], state, { namespace: "team", now: 0, existing }).fits;
  const before = deployment(1, {}, { containers: [{ name: "main", image: "web:0" }] });
  expect(fits([{ ...before, metadata: { ...before.metadata, namespace: "team" } }])).toBe(true);
  expect(fits([])).toBe(false);
});

test("a namespace that is on its way out takes nothing new", () => {
  const ending = namespace("team", { deletionTimestamp: "2026-01-01T00:00:00Z" });
  const { workloads } = plan(host(members, { namespaces: [ending] }), deployment(1));
  expect(workloads[0]).toMatchObject({ outcome: "refused", message: expect.stringContaining("is being deleted") });
});
