import { describe, expect, test } from "vitest";
import type { NodeSelectorTerm, PodSpec } from "../../../src/api/kubernetes.ts";
import { wishExcludes, wishedMembers, wishWeight } from "../../../src/api/virtual-node-wish.ts";
import { specForNodesOf, virtualNodeSpread, virtualNodeWish } from "../../../src/pods/virtual-node-terms.ts";
import { pod } from "../../support/builders/pod.ts";

type Expression = NonNullable<NodeSelectorTerm["matchExpressions"]>[number];

const onDisk: Expression = { key: "disk", operator: "In", values: ["fast"] };

function cluster(operator: string, ...values: string[]): Expression {
  return { key: "legation.dev/cluster", operator, ...(values.length === 0 ? {} : { values }) };
}

function specOf(...expressions: readonly (readonly Expression[])[]): PodSpec {
  const nodeSelectorTerms = expressions.map((matchExpressions) => ({ matchExpressions: [...matchExpressions] }));
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return { containers: [], affinity: { nodeAffinity } };
}

function preferring(...expressions: readonly (readonly Expression[])[]): PodSpec {
  const terms = expressions.map((matchExpressions, index) => ({
    weight: 10 * (index + 1),
    preference: { matchExpressions: [...matchExpressions] },
  }));
  return { containers: [], affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms } } };
}

describe("required node affinity over the label of virtual nodes", () => {
  test.each<[string, PodSpec, readonly string[], readonly string[] | undefined]>([
    ["one named", specOf([cluster("In", "west")]), ["west"], ["west"]],
    [
      "some named, in two terms",
      specOf([cluster("In", "west")], [cluster("In", "east", "west")]),
      ["east", "west"],
      ["west", "east"],
    ],
    ["all but one", specOf([cluster("NotIn", "west")]), ["east", "north"], undefined],
    ["any", specOf([cluster("Exists")]), ["east", "north", "west"], undefined],
    [
      "one named, or a node that has something",
      specOf([cluster("In", "west")], [onDisk]),
      ["east", "north", "west"],
      undefined,
    ],
    [
      "both expressions of a term",
      specOf([cluster("NotIn", "west"), cluster("In", "west", "east"), onDisk]),
      ["east"],
      ["west", "east"],
    ],
    ["a term that is empty, and holds for no node", specOf([], [cluster("In", "east")]), ["east"], ["east"]],
    ["nodes of the host, or one named", specOf([cluster("DoesNotExist")], [cluster("In", "west")]), ["west"], ["west"]],
    [
      "one that keeps away from others, too",
      specOf([cluster("NotIn", "west"), cluster("DoesNotExist"), onDisk]),
      ["east", "north"],
      undefined,
    ],
    ["an operator that nobody knows yet", specOf([cluster("Like", "w*")]), ["east", "north", "west"], undefined],
  ])("%s", (_, spec, allowed, named) => {
    const wish = virtualNodeWish(pod({ spec })) ?? {};
    const members = ["east", "north", "west"];
    expect(members.filter((member) => wishExcludes(wish, member) === undefined)).toEqual(allowed);
    expect(wishedMembers(wish)).toEqual(named);
  });

  test("names no members when they are too many to be told", () => {
    const named = (count: number): unknown => {
      const names = Array.from({ length: count }, (_, index) => `m${index}`);
      return wishedMembers(virtualNodeWish(pod({ spec: specOf([cluster("In", ...names)]) })) ?? {});
    };
    expect(named(100)).toHaveLength(100);
    expect(named(101)).toBeUndefined();
  });

  test("says what leaves a member out", () => {
    const wish = virtualNodeWish(pod({ spec: specOf([cluster("In", "west")]) })) ?? {};
    expect(wishExcludes(wish, "east")).toBe(`no term of the pod's nodeAffinity allows legation.dev/cluster: "east"`);
  });

  test("is one of both with a node selector", () => {
    const spec = { ...specOf([cluster("In", "west", "east")]), nodeSelector: { "legation.dev/cluster": "east" } };
    const wish = virtualNodeWish(pod({ spec })) ?? {};
    expect(["east", "west", "north"].map((member) => wishExcludes(wish, member) === undefined)).toEqual([
      true,
      false,
      false,
    ]);
    expect(wishedMembers(wish)).toEqual(["east"]);
  });

  test.each([
    ["nothing", { containers: [] }],
    ["other labels", specOf([onDisk])],
    ["the host's scheduler to keep away", specOf([cluster("DoesNotExist")])],
    ["both of these", specOf([cluster("DoesNotExist"), onDisk])],
  ])("of a pod that says %s there is none", (_, spec) => {
    expect(virtualNodeWish(pod({ spec }))).toBeUndefined();
    expect(specForNodesOf("west", spec)).toBe(spec);
  });
});

describe("preferred node affinity over the label of virtual nodes", () => {
  test("counts the weights of terms that say nothing else", () => {
    const spec = preferring([cluster("In", "west")], [cluster("NotIn", "east")], [cluster("In", "west"), onDisk]);
    const wish = virtualNodeWish(pod({ spec })) ?? {};
    expect(["west", "north", "east"].map((member) => wishWeight(wish, member))).toEqual([30, 20, 0]);
  });

  test("leaves a member's scheduler what it says of nodes", () => {
    const spec = preferring([cluster("In", "west")], [cluster("In", "west"), onDisk], [onDisk]);
    const weightsIn = (member: string): unknown =>
      specForNodesOf(member, spec).affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution;
    expect(weightsIn("west")).toEqual([
      { weight: 20, preference: { matchExpressions: [onDisk] } },
      { weight: 30, preference: { matchExpressions: [onDisk] } },
    ]);
    expect(weightsIn("east")).toEqual([{ weight: 30, preference: { matchExpressions: [onDisk] } }]);
    expect(specForNodesOf("west", preferring([cluster("In", "west")]))).toEqual({ containers: [] });
  });
});

describe("a spread over virtual nodes", () => {
  const labelSelector = { matchLabels: { app: "web" } };
  const constraint = (topologyKey: string, others: object = {}) => ({
    topologyKey,
    maxSkew: 2,
    whenUnsatisfiable: "DoNotSchedule",
    ...others,
  });
  const overMembers = constraint("legation.dev/cluster", { labelSelector, nodeTaintsPolicy: "Honor", minDomains: 3 });
  const overZones = constraint("topology.kubernetes.io/zone", { labelSelector });

  test("is the pod's own constraint, as it is written", () => {
    const spec = { containers: [], topologySpreadConstraints: [overZones, overMembers] };
    expect(virtualNodeSpread(pod({ spec }))).toEqual([{ ...overMembers, nodeAffinityPolicy: "Honor" }]);
    expect(virtualNodeWish(pod({ spec }))).toBeUndefined();
  });

  test.each([
    ["has the pod's values of its keys", {}, [{ key: "hash", operator: "In", values: ["a1"] }]],
    [
      "has them once, where the API server has written them",
      { matchExpressions: [{ key: "hash", operator: "In", values: ["a1"] }] },
      [{ key: "hash", operator: "In", values: ["a1"] }],
    ],
    [
      "has them beside other expressions",
      { matchExpressions: [{ key: "tier", operator: "Exists" }] },
      [
        { key: "tier", operator: "Exists" },
        { key: "hash", operator: "In", values: ["a1"] },
      ],
    ],
  ])("%s", (_, written, matchExpressions) => {
    const keyed = constraint("legation.dev/cluster", {
      labelSelector: { ...labelSelector, ...written },
      matchLabelKeys: ["hash", "absent"],
      nodeAffinityPolicy: "Ignore",
    });
    const spec = { containers: [], topologySpreadConstraints: [keyed] };
    const [spread] = virtualNodeSpread(pod({ metadata: { labels: { hash: "a1" } }, spec }));
    expect(spread).toMatchObject({
      labelSelector: { ...labelSelector, matchExpressions },
      nodeAffinityPolicy: "Ignore",
    });
    expect(spread).not.toHaveProperty("matchLabelKeys");
  });

  test("that counts no pods says nothing", () => {
    const spec = { containers: [], topologySpreadConstraints: [constraint("legation.dev/cluster")] };
    expect(virtualNodeSpread(pod({ spec }))).toEqual([]);
    expect(specForNodesOf("west", spec)).toEqual({ containers: [] });
  });

  test("is none over a member's nodes", () => {
    const constraints = (all: object[]): PodSpec => ({ containers: [], topologySpreadConstraints: all as [] });
    expect(specForNodesOf("west", constraints([overMembers, overZones]))).toEqual(constraints([overZones]));
    expect(specForNodesOf("west", constraints([overMembers]))).toEqual({ containers: [] });
    const zones = constraints([overZones]);
    expect(specForNodesOf("west", zones)).toBe(zones);
  });
});

describe("for a member's own nodes", () => {
  const required = (spec: PodSpec): unknown =>
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;

  test.each([
    [{ "legation.dev/cluster": "west" }, undefined],
    [{ "legation.dev/cluster": "west", disk: "fast" }, { disk: "fast" }],
    [{ disk: "fast" }, { disk: "fast" }],
  ])("the node selector %j is %j", (nodeSelector, selector) => {
    expect(specForNodesOf("west", { containers: [], nodeSelector }).nodeSelector).toEqual(selector);
  });

  test("terms for other members go, and of the others what is for this one", () => {
    const spec = specOf([cluster("In", "west"), onDisk], [cluster("In", "east")], [onDisk]);
    const kept = { matchExpressions: [onDisk] };
    expect(required(specForNodesOf("west", spec))).toEqual([kept, kept]);
    expect(required(specForNodesOf("north", spec))).toEqual([kept]);
    // It is there all the same: the terms have changed, or were not heeded when it came.
    const elsewhere = specOf([cluster("In", "west"), onDisk], [cluster("In", "east"), onDisk]);
    expect(required(specForNodesOf("north", elsewhere))).toEqual([kept, kept]);
    expect(specForNodesOf("north", specOf([cluster("In", "west")]))).toEqual({ containers: [] });
  });

  test("a term that says nothing else holds for every node", () => {
    expect(specForNodesOf("east", specOf([cluster("In", "west"), onDisk], [cluster("In", "east")]))).toEqual({
      containers: [],
    });
  });

  test("a term that was empty holds for none", () => {
    const spec = specOf([], [cluster("In", "west"), onDisk]);
    expect(required(specForNodesOf("west", spec))).toEqual([{ matchExpressions: [onDisk] }]);
    expect(required(specForNodesOf("east", spec))).toEqual([{ matchExpressions: [onDisk] }]);
    const empty = { ...specOf([]), nodeSelector: { "legation.dev/cluster": "west" } };
    expect(required(specForNodesOf("west", empty))).toEqual([{}]);
  });

  test("terms about pods, fields and other labels stay", () => {
    const { affinity } = specOf([cluster("In", "west")]);
    const podAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [] };
    const spec = { containers: [], hostname: "a", affinity: { ...affinity, podAffinity } };
    expect(specForNodesOf("west", spec)).toEqual({ containers: [], hostname: "a", affinity: { podAffinity } });
    const field = { matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] };
    const named = { ...field, matchExpressions: [cluster("In", "west")] };
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [named] } };
    expect(required(specForNodesOf("west", { containers: [], affinity: { nodeAffinity } }))).toEqual([field]);
  });
});
