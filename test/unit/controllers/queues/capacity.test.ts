import { expect, test } from "vitest";
import type { KubeNode } from "../../../../src/api/kubernetes.ts";
import { capacities, type MemberRoom } from "../../../../src/controllers/queues/capacity.ts";
import { type Flavor, selectsMembers } from "../../../../src/placement/flavors.ts";

function flavor(name: string, nodeLabels: Flavor["nodeLabels"], tolerations: Flavor["tolerations"] = []): Flavor {
  return { name, nodeLabels, tolerations };
}

function node(name: string, labels: Readonly<Record<string, string>> = {}, spec: KubeNode["spec"] = {}): KubeNode {
  return {
    metadata: { name, labels },
    spec,
    status: { allocatable: { cpu: "10" }, conditions: [{ type: "Ready", status: "True" }] },
  };
}

function member(name: string, nodes: readonly KubeNode[], parts: Partial<MemberRoom> = {}): MemberRoom {
  return {
    name,
    labels: {},
    nodesHave: (key) => nodes.some(({ metadata }) => metadata?.labels?.[key] !== undefined),
    nodes,
    usedOn: () => ({}),
    usedSomewhere: {},
    limit: {},
    queued: [],
    ...parts,
  };
}

const WEST = { "legation.dev/cluster": "west" };

test("a flavor has the nodes of the members that it selects", () => {
  const members = [member("west", [node("a"), node("b")]), member("east", [node("c")])];
  const found = capacities([flavor("west", WEST)], members);
  expect(found.get("west")?.free).toEqual({ cpu: 20 });
});

test("labels of Clusters select members, and other labels their nodes", () => {
  const members = [
    member("west", [node("a", { disk: "fast" }), node("b", { disk: "slow" })], { labels: { region: "eu" } }),
    member("east", [node("c", { disk: "fast" })], { labels: { region: "us" } }),
  ];
  const found = capacities([flavor("fast", { region: "eu", disk: "fast" })], members);
  expect(found.get("fast")?.free).toEqual({ cpu: 10 });
});

test("a node counts once, for the flavor that names the most labels", () => {
  const members = [member("west", [node("a", { gpu: "a100" }), node("b", { gpu: "none" })])];
  const found = capacities([flavor("any", WEST), flavor("gpu", { ...WEST, gpu: "a100" })], members);
  expect(found.get("gpu")?.free).toEqual({ cpu: 10 });
  expect(found.get("any")?.free).toEqual({ cpu: 10 });
});

test("a tainted node counts for flavors that tolerate it", () => {
  const taints = [{ key: "dedicated", effect: "NoSchedule" }];
  const members = [member("west", [node("a", {}, { taints })])];
  const tolerations = [{ key: "dedicated", operator: "Exists" }];
  expect(capacities([flavor("west", WEST)], members).get("west")?.free).toEqual({});
  expect(capacities([flavor("west", WEST, tolerations)], members).get("west")?.free).toEqual({ cpu: 10 });
});

test("use of a node is taken from that node alone, and never below nothing", () => {
  const nodes = [node("a", { gpu: "a100" }), node("b", { gpu: "none" })];
  const usedOn = (name: string): { cpu: number } => ({ cpu: name === "a" ? 12 : 1 });
  const flavors = [flavor("cpu", { ...WEST, gpu: "none" }), flavor("gpu", { ...WEST, gpu: "a100" })];
  const found = capacities(flavors, [member("west", nodes, { usedOn })]);
  expect(found.get("cpu")?.free).toEqual({ cpu: 9 });
  expect(found.get("gpu")?.free).toEqual({ cpu: 0 });
});

test("use of unknown nodes is borne by flavors in proportion", () => {
  const nodes = [node("a", { gpu: "a100" }), node("b", { gpu: "none" }), node("c", { gpu: "none" })];
  const flavors = [flavor("cpu", { ...WEST, gpu: "none" }), flavor("gpu", { ...WEST, gpu: "a100" })];
  const found = capacities(flavors, [member("west", nodes, { usedSomewhere: { cpu: 6 } })]);
  expect(found.get("cpu")?.free).toEqual({ cpu: 16 });
  expect(found.get("gpu")?.free).toEqual({ cpu: 8 });
});

test("a member's limit holds for all its flavors together", () => {
  const nodes = [node("a", { gpu: "a100" }), node("b", { gpu: "none" }), node("c", { gpu: "none" })];
  const flavors = [flavor("cpu", { ...WEST, gpu: "none" }), flavor("gpu", { ...WEST, gpu: "a100" })];
  const found = capacities(flavors, [member("west", nodes, { limit: { cpu: 15 } })]);
  expect(found.get("cpu")?.free).toEqual({ cpu: 10 });
  expect(found.get("gpu")?.free).toEqual({ cpu: 5 });
});

test("on cordoned nodes, what queues have there stays, and nothing is free", () => {
  const nodes = [node("a"), node("b", {}, { unschedulable: true })];
  const queued = ["a", "b"].map((name) => ({ queue: "team", nodeSelector: WEST, requests: { cpu: 3 }, node: name }));
  const found = capacities([flavor("west", WEST)], [member("west", nodes, { queued })]);
  expect(found.get("west")).toMatchObject({ free: { cpu: 10 }, staying: new Map([["team", { cpu: 3 }]]) });
});

test("in a closed member everything that queues have stays, also on nodes that are not known any more", () => {
  const known = { queue: "team", nodeSelector: WEST, requests: { cpu: 3 }, node: "a" };
  const { node: _, ...unknown } = known;
  const others = { ...known, queue: "others", nodeSelector: {} };
  const west = member("west", [node("a")], { closed: "it is not ready", queued: [known, unknown, others] });
  expect(capacities([flavor("west", WEST)], [west]).get("west")).toEqual({
    free: {},
    staying: new Map([["team", { cpu: 6 }]]),
    closed: new Map([["west", "it is not ready"]]),
  });
});

test.each([
  { labels: WEST, selects: true },
  { labels: { type: "virtual-kubelet" }, selects: true },
  { labels: { region: "eu" }, selects: true },
  { labels: { region: "us" }, selects: false },
  { labels: { disk: "own" }, selects: false },
  { labels: {}, selects: false },
])("a flavor with $labels selects members: $selects", ({ labels, selects }) => {
  expect(selectsMembers(flavor("any", labels), [{ labels: { region: "eu" } }])).toBe(selects);
});
