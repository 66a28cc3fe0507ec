import { describe, expect, test } from "vitest";
import type { NodeSelectorTerm, PodSpec } from "../../../src/api/kubernetes.ts";
import { wishExcludes, wishedMembers } from "../../../src/api/virtual-node-wish.ts";
import {
  type MemberLabels,
  specForNodesOf,
  specInMember,
  virtualNodeSpread,
  virtualNodeWish,
} from "../../../src/pods/virtual-node-terms.ts";
import { pod } from "../../support/builders/pod.ts";

type Expression = NonNullable<NodeSelectorTerm["matchExpressions"]>[number];

const onDisk: Expression = { key: "disk", operator: "In", values: ["fast"] };

function cluster(operator: string, ...values: string[]): Expression {
  return { key: "legation.dev/cluster", operator, ...(values.length === 0 ? {} : { values }) };
}

function member(name: string): MemberLabels {
  return { name, labels: {}, nodesHave: (key) => key === "disk" };
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
    ["an unknown operator", specOf([cluster("Like", "w*")]), ["east", "north", "west"], undefined],
  ])("%s", (_, spec, allowed, named) => {
    const wish = virtualNodeWish(pod({ spec })) ?? {};
    const members = ["east", "north", "west"];
    expect(members.filter((member) => wishExcludes(wish, member) === undefined)).toEqual(allowed);
    expect(wishedMembers(wish)).toEqual(named);
  });

  test("names no members if they are too many", () => {
    const named = (count: number): unknown => {
      const names = Array.from({ length: count }, (_, index) => `m${index}`);
      return wishedMembers(virtualNodeWish(pod({ spec: specOf([cluster("In", ...names)]) })) ?? {});
    };
    expect(named(100)).toHaveLength(100);
    expect(named(101)).toBeUndefined();
  });

  test("reports what excludes a member", () => {
    const wish = virtualNodeWish(pod({ spec: specOf([cluster("In", "west")]) })) ?? {};
    expect(wishExcludes(wish, "east")).toBe(`no term of the pod's nodeAffinity allows legation.dev/cluster: "east"`);
  });

  test("combines with a node selector", () => {
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
  ])("is absent for a pod with %s", (_, spec) => {
    expect(virtualNodeWish(pod({ spec }))).toBeUndefined();
    expect(specForNodesOf(member("west"), spec)).toBe(spec);
  });
});

describe("preferred node affinity over the label of virtual nodes", () => {
  test("counts weights of terms about virtual nodes alone", () => {
    const spec = preferring([cluster("In", "west")], [cluster("NotIn", "east")], [cluster("In", "west"), onDisk]);
    expect(["west", "north", "east"].map((name) => specInMember(member(name), spec).weight)).toEqual([30, 20, 0]);
  });

  test("leaves terms about nodes to the member's scheduler", () => {
    const spec = preferring([cluster("In", "west")], [cluster("In", "west"), onDisk], [onDisk]);
    const weightsIn = (name: string): unknown =>
      specForNodesOf(member(name), spec).affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution;
    expect(weightsIn("west")).toEqual([
      { weight: 20, preference: { matchExpressions: [onDisk] } },
      { weight: 30, preference: { matchExpressions: [onDisk] } },
    ]);
    expect(weightsIn("east")).toEqual([{ weight: 30, preference: { matchExpressions: [onDisk] } }]);
    expect(specForNodesOf(member("west"), preferring([cluster("In", "west")]))).toEqual({ containers: [] });
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

  test("equals the pod's own constraint", () => {
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

  test("that counts no pods is ignored", () => {
    const spec = { containers: [], topologySpreadConstraints: [constraint("legation.dev/cluster")] };
    expect(virtualNodeSpread(pod({ spec }))).toEqual([]);
    expect(specForNodesOf(member("west"), spec)).toEqual({ containers: [] });
  });

  test("is removed for a member's nodes", () => {
    const constraints = (all: object[]): PodSpec => ({ containers: [], topologySpreadConstraints: all as [] });
    expect(specForNodesOf(member("west"), constraints([overMembers, overZones]))).toEqual(constraints([overZones]));
    expect(specForNodesOf(member("west"), constraints([overMembers]))).toEqual({ containers: [] });
    const zones = constraints([overZones]);
    expect(specForNodesOf(member("west"), zones)).toBe(zones);
  });
});

describe("a pod's terms for a member's own nodes", () => {
  const required = (spec: PodSpec): unknown =>
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;

  test.each([
    [{ "legation.dev/cluster": "west" }, undefined],
    [{ "legation.dev/cluster": "west", disk: "fast" }, { disk: "fast" }],
    [{ disk: "fast" }, { disk: "fast" }],
  ])("turn the node selector %j into %j", (nodeSelector, selector) => {
    expect(specForNodesOf(member("west"), { containers: [], nodeSelector }).nodeSelector).toEqual(selector);
  });

  test("drop terms for other members, and this member's name", () => {
    const spec = specOf([cluster("In", "west"), onDisk], [cluster("In", "east")], [onDisk]);
    const kept = { matchExpressions: [onDisk] };
    expect(required(specForNodesOf(member("west"), spec))).toEqual([kept, kept]);
    expect(required(specForNodesOf(member("north"), spec))).toEqual([kept]);
    // The pod is there although its terms exclude the member: they changed later.
    const elsewhere = specOf([cluster("In", "west"), onDisk], [cluster("In", "east"), onDisk]);
    expect(required(specForNodesOf(member("north"), elsewhere))).toEqual([kept, kept]);
    expect(specForNodesOf(member("north"), specOf([cluster("In", "west")]))).toEqual({ containers: [] });
  });

  test("let a term without other requirements match every node", () => {
    expect(specForNodesOf(member("east"), specOf([cluster("In", "west"), onDisk], [cluster("In", "east")]))).toEqual({
      containers: [],
    });
  });

  test("let an empty term match no node", () => {
    const spec = specOf([], [cluster("In", "west"), onDisk]);
    expect(required(specForNodesOf(member("west"), spec))).toEqual([{ matchExpressions: [onDisk] }]);
    expect(required(specForNodesOf(member("east"), spec))).toEqual([{ matchExpressions: [onDisk] }]);
    const empty = { ...specOf([]), nodeSelector: { "legation.dev/cluster": "west" } };
    expect(required(specForNodesOf(member("west"), empty))).toEqual([{ matchExpressions: [] }]);
  });

  test("keep terms about pods, fields and other labels", () => {
    const { affinity } = specOf([cluster("In", "west")]);
    const podAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [] };
    const spec = { containers: [], hostname: "a", affinity: { ...affinity, podAffinity } };
    expect(specForNodesOf(member("west"), spec)).toEqual({ containers: [], hostname: "a", affinity: { podAffinity } });
    const field = { matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] };
    const named = { ...field, matchExpressions: [cluster("In", "west")] };
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [named] } };
    expect(required(specForNodesOf(member("west"), { containers: [], affinity: { nodeAffinity } }))).toEqual([field]);
  });
});

describe("a virtual node's name", () => {
  const hostname = (operator: string, ...values: string[]): Expression => ({
    key: "kubernetes.io/hostname",
    operator,
    values,
  });
  const field = (operator: string, value: string): PodSpec => {
    const term = { matchFields: [{ key: "metadata.name", operator, values: [value] }] };
    return {
      containers: [],
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } },
    };
  };
  test.each<[string, PodSpec, readonly string[], readonly string[] | undefined]>([
    [
      "as a node selector",
      { containers: [], nodeSelector: { "kubernetes.io/hostname": "legation-west" } },
      ["west"],
      ["west"],
    ],
    [
      "in required affinity",
      specOf([hostname("In", "legation-west", "legation-east")]),
      ["east", "west"],
      ["west", "east"],
    ],
    ["that is left out", specOf([hostname("NotIn", "legation-west")]), ["east", "north"], undefined],
    ["as a field", field("In", "legation-west"), ["west"], ["west"]],
    ["as a field that is left out", field("NotIn", "legation-west"), ["east", "north"], undefined],
    [
      "beside the name of a member's node",
      specOf([hostname("In", "legation-west", "n1")]),
      ["east", "north", "west"],
      undefined,
    ],
  ])("chooses members %s", (_, spec, allowed, named) => {
    const wish = virtualNodeWish(pod({ spec })) ?? {};
    expect(["east", "north", "west"].filter((name) => wishExcludes(wish, name) === undefined)).toEqual(allowed);
    expect(wishedMembers(wish)).toEqual(named);
  });

  test("is removed from the member's spec", () => {
    const selected = { containers: [], nodeSelector: { "kubernetes.io/hostname": "legation-west", disk: "fast" } };
    expect(specForNodesOf(member("west"), selected)).toEqual({ containers: [], nodeSelector: { disk: "fast" } });
    expect(specForNodesOf(member("west"), field("In", "legation-west"))).toEqual({ containers: [] });
    const either = specOf([hostname("In", "legation-west", "n1"), onDisk]);
    const terms = (name: string): unknown =>
      specForNodesOf(member(name), either).affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    const onNode = { matchExpressions: [hostname("In", "n1"), onDisk] };
    expect(terms("west")).toEqual({ nodeSelectorTerms: [{ matchExpressions: [onDisk] }, onNode] });
    expect(terms("east")).toEqual({ nodeSelectorTerms: [onNode] });
    const both = specOf([hostname("NotIn", "legation-west", "n1")]);
    expect(specForNodesOf(member("east"), both)).toEqual(specOf([hostname("NotIn", "n1")]));
  });

  test("adds its member's weight if only preferred", () => {
    const spec = preferring([hostname("In", "legation-west")]);
    expect(["west", "east"].map((name) => specInMember(member(name), spec))).toEqual([
      { spec: { containers: [] }, weight: 10 },
      { spec: { containers: [] }, weight: 0 },
    ]);
  });

  test("of a real node is left to the member's nodes", () => {
    const spec = { ...specOf([hostname("In", "n1")]), nodeSelector: { "kubernetes.io/hostname": "n1" } };
    expect(virtualNodeWish(pod({ spec }))).toBeUndefined();
    expect(specForNodesOf(member("west"), spec)).toBe(spec);
  });
});

describe("a label of a virtual node", () => {
  const west: MemberLabels = {
    name: "west",
    labels: { region: "eu", "kubernetes.io/os": "linux" },
    nodesHave: () => false,
  };
  const selecting = (nodeSelector: Record<string, string>): PodSpec => ({ containers: [], nodeSelector });
  const region = (operator: string, ...values: string[]): Expression => ({ key: "region", operator, values });

  test.each<[string, PodSpec]>([
    ["what every virtual node is", selecting({ type: "virtual-kubelet" })],
    ["its role", selecting({ "node-role.kubernetes.io/member": "" })],
    [
      "roles of other virtual kubelets beside that",
      selecting({ type: "virtual-kubelet", "kubernetes.io/role": "agent", "node-role.kubernetes.io/agent": "" }),
    ],
    ["a label of its Cluster", selecting({ region: "eu" })],
    ["a label of its Cluster, in a term", specOf([region("In", "eu", "us")])],
    ["another value to be left out, in a term", specOf([region("NotIn", "us")])],
  ])("is met by the virtual node, and removed from the member's spec: %s", (_, spec) => {
    expect(specInMember(west, spec)).toEqual({ spec: { containers: [] }, weight: 0 });
  });

  test.each<[string, PodSpec, string]>([
    ["selector", selecting({ region: "us" }), `the pod's nodeSelector says region: "us"`],
    ["term", specOf([region("In", "us")]), `no term of the pod's nodeAffinity allows region: "eu"`],
    [
      "term that leaves it out",
      specOf([region("NotIn", "eu")]),
      `no term of the pod's nodeAffinity allows region: "eu"`,
    ],
  ])("with another value refuses the member, in a %s", (_, spec, refusal) => {
    expect(specInMember(west, spec).refusal).toBe(refusal);
  });

  test.each<[string, PodSpec, MemberLabels]>([
    [
      "a key that some of the member's nodes have",
      selecting({ region: "eu" }),
      { ...west, nodesHave: (key) => key === "region" },
    ],
    ["a key that nodes are not known to have", selecting({ region: "eu" }), { name: "west", labels: west.labels }],
    ["what a Cluster's label cannot say of its nodes", selecting({ "kubernetes.io/os": "linux" }), west],
    ["a key that neither has", selecting({ disk: "fast" }), west],
    [
      "another type",
      specOf([{ key: "type", operator: "NotIn", values: ["virtual-kubelet"] }]),
      { ...west, nodesHave: (key) => key === "type" },
    ],
    ["a role of real nodes alone", selecting({ "kubernetes.io/role": "agent" }), west],
  ])("is left to the member's nodes: %s", (_, spec, there) => {
    expect(specInMember(there, spec)).toEqual({ spec, weight: 0 });
  });

  test("adds the member's weight if only preferred", () => {
    const spec = preferring([region("In", "eu")], [region("In", "us")], [region("In", "eu"), onDisk]);
    expect(specInMember(west, spec)).toEqual({
      spec: {
        containers: [],
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 30, preference: { matchExpressions: [onDisk] } },
            ],
          },
        },
      },
      weight: 10,
    });
  });
});
