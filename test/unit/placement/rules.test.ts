import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parsePlacement, type RequestedPlacement } from "../../../src/api/annotations.ts";
import { limitAmounts } from "../../../src/api/cluster-policy.ts";
import type { ClusterSpread } from "../../../src/api/cluster-spread.ts";
import type { KubeNode, PodSpec, Taint } from "../../../src/api/kubernetes.ts";
import { fitsLargest, totalsOf } from "../../../src/clusters/node-totals.ts";
import type { Candidate, Rule } from "../../../src/placement/candidate.ts";
import { inMembers } from "../../../src/placement/in-member.ts";
import { fitOf, type NodeRequirements } from "../../../src/placement/node-fit.ts";
import { explain, rank } from "../../../src/placement/rank.ts";
import { podRequests } from "../../../src/placement/requests.ts";
import {
  type Gang,
  type GroupFacts,
  gangShortage,
  groupRule,
  placementRules,
  policyRules,
} from "../../../src/placement/rules.ts";
import { proxyPod } from "../../support/builders/pod.ts";

const big = { cpu: 8, memory: 2 ** 34, pods: 100 };

function candidate(name: string, parts: Partial<Candidate> = {}): Candidate {
  return { name, labels: {}, allocatable: big, largestNode: big, used: {}, ...parts };
}

interface World {
  readonly spec?: Partial<PodSpec>;
  readonly placement?: RequestedPlacement;
  readonly namespaceLabels?: Record<string, string>;
}

function ranked(
  candidates: readonly Candidate[],
  { spec, placement = {}, namespaceLabels = {} }: World = {},
  more: readonly Rule[] = [],
) {
  const pod = proxyPod(spec === undefined ? {} : { spec });
  const requests = podRequests(pod);
  const spreadCounts = (): Map<string, number> => new Map();
  const inMember = inMembers(pod, placement.overrides);
  const facts = { pod, inMember, placement, namespaceLabels, candidates, spreadCounts };
  return rank({ requests, rules: [...policyRules(facts), ...more, ...placementRules(facts)], candidates });
}

function words(candidates: readonly Candidate[], world?: World): string {
  const { refusals } = ranked(candidates, world);
  return refusals.length === 0 ? "" : explain(refusals);
}

function requesting(requests: Record<string, string>): Partial<PodSpec> {
  return { containers: [{ name: "main", image: "x", resources: { requests } }] };
}

describe("an operator's policy", () => {
  const admits = [{ key: "team", operator: "In", values: ["gold"] }] as const;
  test.each([
    [{ team: "gold" }, ""],
    [{ team: "iron" }, "west: its namespaceSelector does not admit namespace team"],
    [{}, "west: its namespaceSelector does not admit namespace team"],
  ])("admits namespaces by their labels: %j", (namespaceLabels, message) => {
    expect(words([candidate("west", { admits })], { namespaceLabels })).toBe(message);
  });

  test("refuses every pod of a namespace that is not admitted, whatever its author writes", () => {
    const expression = fc.record({
      key: fc.constantFrom("region", "metadata.name"),
      operator: fc.constantFrom("In", "NotIn", "Exists", "DoesNotExist"),
      values: fc.array(fc.constantFrom("west", "eu"), { minLength: 1, maxLength: 2 }),
    });
    const annotations = fc.record(
      {
        "legation.dev/clusters": fc.constantFrom("west", "west,east", "east"),
        "legation.dev/cluster-selector": fc.constantFrom("", "region=eu", "!region"),
        "legation.dev/cluster-affinity": expression.map(({ operator, values, key }) => {
          const preference = { matchExpressions: [{ key, operator, ...(operator.endsWith("In") ? { values } : {}) }] };
          return JSON.stringify({ preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] });
        }),
        "legation.dev/cluster-spread": fc.constant('[{"topologyKey":"region"}]'),
        "legation.dev/group": fc.constant("west"),
        "legation.dev/scheduling-preferences": fc.constant('{"clusters":{"west":{"weight":1,"minReplicas":9}}}'),
      },
      { requiredKeys: [] },
    );
    const tolerations = [{ operator: "Exists" }];
    fc.assert(
      fc.property(annotations, fc.boolean(), (written, together) => {
        const parsed = parsePlacement(written);
        const placement = parsed.ok ? parsed.placement : {};
        const candidates = [candidate("west", { admits, labels: { region: "eu" } }), candidate("east")];
        const home = together ? "west" : undefined;
        const more = [groupRule({ text: "group west", unread: [], ...(home === undefined ? {} : { home }) })];
        const { fitting, full } = ranked(candidates, { placement, spec: { tolerations } }, more);
        expect([...fitting, ...full]).not.toContain("west");
      }),
    );
  });

  test("is the first reason reported of a member", () => {
    const closed = { reason: "Cordoned", message: "its virtual node is cordoned" } as const;
    const west = candidate("west", { admits, closed, taints: [{ key: "a", effect: "NoSchedule" }] });
    expect(words([west])).toContain("does not admit");
  });

  test.each([
    ["pods", { total: { pods: "1" } }, "west: its limit of pods: 1 requested, 0 of 1 left"],
    ["cpu", { total: { cpu: "3" } }, "west: its limit of cpu: 2 requested, 1 of 3 left"],
    ["cpu that is left", { total: { cpu: "4" } }, ""],
    ["what the pod does not request, however much of it is used", { total: { memory: "1Mi" } }, ""],
    [
      "of a namespace",
      { perNamespace: { cpu: "2" } },
      "west: its limit for namespace team of cpu: 2 requested, 1 of 2 left",
    ],
  ])("limits %s", (_, limits, message) => {
    const west = candidate("west", {
      limits: limitAmounts(limits),
      used: { pods: 1 },
      usedIn: (namespace) => ({ pods: 1, memory: 2 ** 30, cpu: namespace === undefined ? 2 : 1 }),
    });
    expect(words([west], { spec: requesting({ cpu: "2" }) })).toBe(message);
  });

  test("does not count a pod's own reservation against it", () => {
    const limits = limitAmounts({ total: { pods: "1" }, perNamespace: { pods: "1" } });
    const kept = { pods: 1 };
    const west = candidate("west", {
      limits,
      used: kept,
      usedIn: () => kept,
      reservedFor: (uid) => (uid === "uid-1" ? kept : undefined),
    });
    expect(words([west])).toBe("");
  });
});

describe("taints of a Cluster", () => {
  const gold: Taint = { key: "team", value: "gold", effect: "NoSchedule" };
  const refused = "west: the pod does not tolerate its taint team=gold:NoSchedule";
  test.each([
    ["no toleration", [], refused],
    ["the same", [{ key: "team", operator: "Equal", value: "gold", effect: "NoSchedule" }], ""],
    ["Equal by default, any effect", [{ key: "team", value: "gold" }], ""],
    ["another value", [{ key: "team", value: "iron" }], refused],
    ["another effect", [{ key: "team", value: "gold", effect: "NoExecute" }], refused],
    ["any value", [{ key: "team", operator: "Exists" }], ""],
    ["everything", [{ operator: "Exists" }], ""],
    ["a key that is missing, with Equal", [{ operator: "Equal", value: "gold" }], refused],
    ["a value that is no number, by one", [{ key: "team", operator: "Lt", value: "5" }], refused],
  ])("are tolerated like taints of nodes: %s", (_, tolerations, message) => {
    expect(words([candidate("west", { taints: [gold] })], { spec: { tolerations } })).toBe(message);
  });

  test.each<[string, string, string, boolean]>([
    ["Gt", "750", "800", true],
    ["Gt", "750", "750", false],
    ["Lt", "750", "-3", true],
    ["Lt", "750", "800", false],
    ["Lt", "750", "", false],
    ["Lt", "many", "3", false],
  ])("are tolerated by number: %s %j the value %j", (operator, value, is, tolerated) => {
    const west = candidate("west", { taints: [{ key: "cost", value: is, effect: "NoSchedule" }] });
    const { fitting } = ranked([west], { spec: { tolerations: [{ key: "cost", operator, value }] } });
    expect(fitting).toEqual(tolerated ? ["west"] : []);
  });

  test("of effect PreferNoSchedule rank a member behind others unless tolerated", () => {
    const taints: Taint[] = [{ key: "old", effect: "PreferNoSchedule" }];
    const candidates = [candidate("a", { taints }), candidate("b", { used: { pods: 50 } })];
    expect(ranked(candidates).fitting).toEqual(["b", "a"]);
    const tolerations = [{ key: "old", operator: "Exists" }];
    expect(ranked(candidates, { spec: { tolerations } }).fitting).toEqual(["a", "b"]);
  });
});

describe("preferred affinity", () => {
  test("ranks by the sum of weights", () => {
    const term = (key: string, weight: number) => ({
      weight,
      preference: { matchExpressions: [{ key, operator: "Exists" as const }] },
    });
    const affinity = { preferredDuringSchedulingIgnoredDuringExecution: [term("a", 5), term("b", 6), term("c", 10)] };
    const candidates = [
      candidate("none"),
      candidate("c", { labels: { c: "" } }),
      candidate("ab", { labels: { a: "", b: "" } }),
    ];
    expect(ranked(candidates, { placement: { affinity } }).fitting).toEqual(["ab", "c", "none"]);
  });
});

describe("a member's nodes", () => {
  const node = (name: string, labels: Record<string, string>, parts: KubeNode["spec"] = {}, cpu = "4"): KubeNode => ({
    metadata: { name, labels },
    spec: parts,
    status: { allocatable: { cpu, memory: "16Gi", pods: "10" }, conditions: [{ type: "Ready", status: "True" }] },
  });
  const nodes = [
    node("plain", { disk: "hdd" }),
    node("fast", { disk: "ssd", generation: "7" }, {}, "2"),
    node("gpu", { disk: "ssd", gpu: "" }, { taints: [{ key: "gpu", effect: "NoSchedule" }] }, "8"),
    node("closed", { disk: "tape" }, { unschedulable: true }),
  ];
  const west = candidate("west", { nodesFor: (needs) => fitOf(needs, nodes) });
  const required = (...matchExpressions: { key: string; operator: string; values?: string[] }[]): Partial<PodSpec> => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] },
      },
    },
  });
  const noneSelected = "west: none of its 4 nodes is one that the pod selects";
  test.each<[string, Partial<PodSpec>, string]>([
    ["any node", {}, ""],
    ["a label", { nodeSelector: { disk: "ssd" } }, ""],
    ["a label that none has", { nodeSelector: { disk: "floppy" } }, noneSelected],
    [
      "a label of a cordoned node",
      { nodeSelector: { disk: "tape" } },
      "west: none of its 4 nodes takes the pod: 3 not selected by the pod, 1 cordoned",
    ],
    [
      "a label of a tainted node",
      { nodeSelector: { gpu: "" } },
      "west: none of its 4 nodes takes the pod: 3 not selected by the pod, 1 with taint gpu:NoSchedule",
    ],
    ["a tainted node, tolerated", { nodeSelector: { gpu: "" }, tolerations: [{ key: "gpu", operator: "Exists" }] }, ""],
    ["affinity", required({ key: "generation", operator: "Gt", values: ["6"] }), ""],
    ["affinity that none meets", required({ key: "generation", operator: "Gt", values: ["7"] }), noneSelected],
    ["an operator of later times", required({ key: "generation", operator: "Resembles", values: ["7"] }), ""],
    [
      "more than the nodes that it selects have",
      { nodeSelector: { disk: "ssd" }, ...requesting({ cpu: "3" }) },
      "west: cpu: 3 requested, the largest node that the pod may go to has 2",
    ],
    ["more than any node has", requesting({ cpu: "9" }), "west: cpu: 9 requested, the largest node has 8"],
  ])("are judged for a pod that wants %s", (_, spec, message) => {
    expect(words([west], { spec })).toBe(message);
  });

  test.each<[string, KubeNode[], string]>([
    ["selected", [node("a", {}), node("b", {})], "none of its 2 nodes is one that the pod selects"],
    ["cordoned", [node("a", { disk: "ssd" }, { unschedulable: true })], "none of its 1 node takes the pod: 1 cordoned"],
    [
      "cordoned, not ready and tainted",
      [
        node("a", { disk: "ssd" }, { unschedulable: true }),
        { ...node("b", { disk: "ssd" }), status: { conditions: [{ type: "Ready", status: "Unknown" }] } },
        { ...node("c", { disk: "ssd" }), status: { conditions: [{ type: "Ready", status: "False" }] } },
        node("d", { disk: "ssd" }, { taints: [{ key: "gpu", value: "a", effect: "NoExecute" }] }),
      ],
      "none of its 4 nodes takes the pod: 2 not ready, 1 cordoned, 1 with taint gpu=a:NoExecute",
    ],
    ["described to the host", [{}, {}], "none of its 2 nodes takes the pod: 2 cordoned or not ready"],
    [
      "tainted in many ways",
      Array.from({ length: 12 }, (_, index) =>
        node(`n${index}`, { disk: "ssd" }, { taints: [{ key: `k${index}`, effect: "NoSchedule" }] }),
      ),
      "4 otherwise, 1 with taint k0:NoSchedule, 1 with taint k1:NoSchedule, 1 with taint k2:NoSchedule",
    ],
  ])("report why none of them is %s", (_, these, message) => {
    const member = candidate("west", { nodesFor: (needs) => fitOf(needs, these) });
    expect(words([member], { spec: { nodeSelector: { disk: "ssd" } } })).toContain(message);
  });

  test("take a pod that requests exactly one node's amount, also as a sum of fractions", () => {
    const containers = ["1000m", "930m"].map((cpu) => ({ name: cpu, image: "x", resources: { requests: { cpu } } }));
    const exact = [node("exact", { disk: "ssd" }, {}, "1930m")];
    const member = candidate("west", { ...totalsOf(exact), nodesFor: (needs) => fitOf(needs, exact) });
    expect(words([member], { spec: { containers } })).toBe("");
    const wider = candidate("west", { nodesFor: (needs) => fitOf(needs, exact) });
    const tall = [...containers, { name: "tall", image: "x", resources: { requests: { memory: "32Gi" } } }];
    expect(words([wider], { spec: { containers: tall } })).toBe(
      "west: memory: 32Gi requested, the largest node has 16Gi",
    );
    expect(fitsLargest({ cpu: 1 + 0.93 }, totalsOf(exact).largestNode)).toBe(true);
  });

  test("must have all requested resources on one of them", () => {
    const lopsided = [node("wide", {}, {}, "8"), { ...node("tall", {}, {}, "1") }];
    const [wide, tall] = lopsided;
    if (wide?.status !== undefined) wide.status.allocatable = { cpu: "8", memory: "1Gi", pods: "10" };
    if (tall?.status !== undefined) tall.status.allocatable = { cpu: "1", memory: "64Gi", pods: "10" };
    const member = candidate("west", {
      largestNode: { cpu: 8, memory: 2 ** 36, pods: 10 },
      allocatable: { cpu: 9, memory: 2 ** 37, pods: 20 },
      nodesFor: (needs) => fitOf(needs, lopsided),
    });
    expect(words([member], { spec: requesting({ cpu: "4", memory: "16Gi" }) })).toBe(
      "west: no one node has all that is requested",
    );
  });
});

describe("requests of other tenants", () => {
  test("count in ranking, and refuse no member", () => {
    const candidates = [
      candidate("a", { foreign: { pods: 99, cpu: 8 } }),
      candidate("b", { used: { pods: 20 }, foreign: {} }),
    ];
    expect(ranked(candidates).fitting).toEqual(["b", "a"]);
  });
});

test("leaves out a region that does not admit the namespace from a spread's domains", () => {
  const admits = [{ key: "team", operator: "In", values: ["gold"] }] as const;
  const candidates = [
    candidate("west", { labels: { region: "eu" } }),
    candidate("east", { labels: { region: "us" }, admits }),
  ];
  const pod = proxyPod();
  const spreadCounts = (): Map<string, number> => new Map([["west", 1]]);
  const placement: RequestedPlacement = { spread: [{ topologyKey: "region" }] };
  const fitting = (namespaceLabels: Record<string, string>): readonly string[] => {
    const facts = { pod, inMember: inMembers(pod, undefined), placement, namespaceLabels, candidates, spreadCounts };
    const rules = [...policyRules(facts), ...placementRules(facts)];
    return rank({ requests: podRequests(pod), rules, candidates }).fitting;
  };
  expect(fitting({})).toEqual(["west"]);
  expect(fitting({ team: "gold" })).toEqual(["east"]);
});

test.each<["Honor" | "Ignore", Partial<Candidate>, string[]]>([
  ["Ignore", { closed: { reason: "ClusterNotReady", message: "down" } }, []],
  ["Honor", { closed: { reason: "ClusterNotReady", message: "down" } }, ["west"]],
  ["Ignore", { taints: [{ key: "spot", effect: "NoSchedule" }] }, []],
  ["Honor", { taints: [{ key: "spot", effect: "NoSchedule" }] }, ["west"]],
  ["Honor", { taints: [{ key: "spot", effect: "PreferNoSchedule" }] }, ["east"]],
])("spreads with nodeTaintsPolicy %s beside a region of %j", (nodeTaintsPolicy, parts, to) => {
  const candidates = [
    candidate("west", { labels: { region: "eu" } }),
    candidate("east", { labels: { region: "us" }, ...parts }),
  ];
  const pod = proxyPod();
  const placement: RequestedPlacement = { spread: [{ topologyKey: "region", nodeTaintsPolicy }] };
  const spreadCounts = (): Map<string, number> => new Map([["west", 1]]);
  const facts = { pod, inMember: inMembers(pod), placement, namespaceLabels: {}, candidates, spreadCounts };
  const rules = [...policyRules(facts), ...placementRules(facts)];
  expect(rank({ requests: podRequests(pod), rules, candidates }).fitting).toEqual(to);
});

test.each<[string, Pick<ClusterSpread, "nodeAffinityPolicy">, string[], string[]]>([
  ["the author's own word alone", {}, [], ["west"]],
  ["members that the pod can go to", { nodeAffinityPolicy: "Honor" }, ["west"], ["west"]],
  ["all members", { nodeAffinityPolicy: "Ignore" }, [], []],
])("computes domains of a spread by %s", (_, policy, besideOtherNodes, besideLeftOut) => {
  const spec = { nodeSelector: { disk: "fast" } };
  const node = (disk: string): KubeNode => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n", labels: { disk } },
    status: { conditions: [{ type: "Ready", status: "True" }], allocatable: { cpu: "8", pods: "100" } },
  });
  const nodesOn = (disk: string): Pick<Candidate, "nodesFor"> => ({ nodesFor: (needs) => fitOf(needs, [node(disk)]) });
  const pod = proxyPod({ spec });
  const fitting = (
    other: Candidate,
    clusters: readonly string[],
    taints: Pick<ClusterSpread, "nodeTaintsPolicy"> = {},
  ): readonly string[] => {
    const candidates = [candidate("west", nodesOn("fast")), other];
    const placement: RequestedPlacement = {
      clusters,
      spread: [{ topologyKey: "legation.dev/cluster", ...policy, ...taints }],
    };
    const spreadCounts = (): Map<string, number> => new Map([["west", 1]]);
    const facts = { pod, inMember: inMembers(pod), placement, namespaceLabels: {}, candidates, spreadCounts };
    const rules = [...policyRules(facts), ...placementRules(facts)];
    const open = candidates.filter(({ name }) => clusters.includes(name));
    return rank({ requests: podRequests(pod), rules, candidates: open }).fitting;
  };
  expect(fitting(candidate("east", nodesOn("slow")), ["west", "east"])).toEqual(besideOtherNodes);
  expect(fitting(candidate("east", nodesOn("fast")), ["west"])).toEqual(besideLeftOut);
  // Cordoned nodes are nodes: what is closed is for the other policy to say.
  const cordoned = { ...node("fast"), spec: { unschedulable: true } };
  const closed = { nodesFor: (needs: NodeRequirements) => fitOf(needs, [cordoned]) };
  const { nodeAffinityPolicy } = policy;
  expect(fitting(candidate("east", closed), ["west", "east"])).toEqual([]);
  const honoring = fitting(candidate("east", closed), ["west", "east"], { nodeTaintsPolicy: "Honor" });
  expect(honoring).toEqual(nodeAffinityPolicy === "Honor" ? ["west"] : []);
});

describe("pods of a gang", () => {
  const gang: Gang = { requests: { cpu: 6, pods: 3 }, in: new Map([["west", { cpu: 4, pods: 2 }]]) };
  const facts = { text: "the pods of PodGroup gang", gang, unread: [] };
  const used = { cpu: 6, pods: 2 };

  test("find room where there is enough for all of them, those in the member included", () => {
    expect(gangShortage(facts, candidate("west", { used }))).toBeUndefined();
    const message = "cpu: 6 requested by the pods of PodGroup gang together, 2 left";
    expect(gangShortage(facts, candidate("east", { used }))).toMatchObject({ reason: "NoRoomForGang", message });
  });

  test("wait with their leader, and say of each other member why they are not there", () => {
    const rules = [groupRule({ ...facts, home: "west" })];
    const candidates = [candidate("west", { used }), candidate("east", { used }), candidate("north")];
    const { fitting, refusals } = rank({ requests: { cpu: 2, pods: 1 }, rules, candidates });
    expect(fitting).toEqual(["west"]);
    expect(explain(refusals)).toBe(
      "east: cpu: 6 requested by the pods of PodGroup gang together, 2 left; " +
        "north: the pods of PodGroup gang wait together in west",
    );
  });

  test.each<[string, Partial<Candidate>, "fitting" | "full", string[], string]>([
    ["has room", {}, "fitting", [], ""],
    [
      "has room for one of them",
      { used: { cpu: 6 } },
      "full",
      [],
      "west: cpu: 6 requested by the gang together, 2 left",
    ],
    [
      "has no node that is large enough for one",
      { largestNode: { cpu: 1, pods: 9 } },
      "full",
      [],
      "west: cpu: 2 requested, the largest node has 1",
    ],
    [
      "would have room by preemption",
      { used: { cpu: 6 }, preemptible: () => ({ cpu: 4 }) },
      "full",
      ["west"],
      "west: cpu: 6 requested by the gang together, 2 left",
    ],
    [
      "would have room for one of them by preemption",
      { used: { cpu: 7 }, preemptible: () => ({ cpu: 1 }) },
      "full",
      [],
      "west: cpu: 6 requested by the gang together, 1 left",
    ],
  ])("are ranked together for a member that %s", (_, parts, list, preemptable, message) => {
    const apart = { text: "the gang", gang: { ...gang, in: new Map() } };
    const ranking = rank({
      requests: { cpu: 2, pods: 1 },
      gangShortage: (member) => gangShortage(apart, member),
      priority: 1,
      candidates: [candidate("west", parts)],
    });
    expect(ranking[list]).toEqual(["west"]);
    expect(ranking.preemptable).toEqual(preemptable);
    expect(ranking.refusals.length === 0 ? "" : explain(ranking.refusals)).toBe(message);
  });
});

test.each<[string, Omit<GroupFacts, "text">, string[], string]>([
  ["has a home", { home: "west", unread: [] }, ["west"], "east: group flow runs in west"],
  [
    "is looked a place for by another pod",
    { first: "team/a", unread: [] },
    [],
    "east: group flow goes where pod team/a finds a place first; west: group flow goes where pod team/a finds a place first",
  ],
  [
    "may be in a member that was not read yet",
    { unread: ["north"] },
    [],
    "east: group flow may be in north, which has not answered yet; west: group flow may be in north, which has not answered yet",
  ],
  ["is nowhere", { unread: [] }, ["east", "west"], ""],
])("places a pod whose group %s", (_, facts, to, message) => {
  const rules = [groupRule({ text: "group flow", ...facts })];
  const { fitting, refusals } = rank({ requests: {}, rules, candidates: [candidate("west"), candidate("east")] });
  expect([fitting, refusals.length === 0 ? "" : explain(refusals)]).toEqual([to, message]);
});
