import { expect, test } from "vitest";
import type { NodeSelectorTerm, PodSpec } from "../../../src/api/kubernetes.ts";
import { namedByLabel } from "../../../src/pods/virtual-node-names.ts";

const HOSTNAME = "kubernetes.io/hostname";
const LABEL = "legation.dev/cluster";
const containers = [{ name: "main" }];

function hostname(operator: string, ...values: readonly string[]) {
  return { key: HOSTNAME, operator, values: [...values] };
}

function label(operator: string, ...values: readonly string[]) {
  return { key: LABEL, operator, values: [...values] };
}

const nodeName = (operator: string, ...values: readonly string[]) => ({
  ...hostname(operator, ...values),
  key: "metadata.name",
});
const zone = { key: "zone", operator: "In", values: ["a"] };

test.each<[string, PodSpec["nodeSelector"], PodSpec["nodeSelector"]]>([
  [
    "a virtual node's name becomes its member's label",
    { [HOSTNAME]: "legation-west", disk: "ssd" },
    { [LABEL]: "west", disk: "ssd" },
  ],
  [
    "the same member's label beside it stays once",
    { [HOSTNAME]: "legation-west", [LABEL]: "west" },
    { [LABEL]: "west" },
  ],
])("in a nodeSelector, %s", (_, nodeSelector = {}, expected) => {
  expect(namedByLabel({ containers, nodeSelector }).nodeSelector).toEqual(expected);
});

test.each<[string, Partial<PodSpec>]>([
  ["selects by nothing", {}],
  ["selects a node of the host", { nodeSelector: { [HOSTNAME]: "node-1" } }],
  [
    "contradicts itself, so that the member's scheduler reports it",
    { nodeSelector: { [HOSTNAME]: "legation-west", [LABEL]: "east" } },
  ],
  ["only asks for a hostname", affinity([{ matchExpressions: [{ key: HOSTNAME, operator: "Exists" }] }])],
  [
    "has a value like a virtual node's name under another key",
    affinity([{ matchExpressions: [{ ...zone, values: ["legation-west"] }] }]),
  ],
])("a pod stays the same object if it %s", (_, parts) => {
  const spec: PodSpec = { containers, ...parts };
  expect(namedByLabel(spec)).toBe(spec);
});

function affinity(nodeSelectorTerms: NodeSelectorTerm[]): Partial<PodSpec> {
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
}

test.each<[string, NodeSelectorTerm, NodeSelectorTerm[]]>([
  [
    "becomes the label if it names virtual nodes alone",
    { matchExpressions: [hostname("In", "legation-west", "legation-east"), zone] },
    [{ matchExpressions: [zone, label("In", "west", "east")] }],
  ],
  [
    "becomes the label if it names one by field",
    { matchFields: [nodeName("In", "legation-west")] },
    [{ matchExpressions: [label("In", "west")] }],
  ],
  [
    "becomes two alternatives if it names nodes of both clusters, each with the other conditions",
    { matchExpressions: [hostname("In", "legation-west", "node-1"), zone] },
    [{ matchExpressions: [zone, label("In", "west")] }, { matchExpressions: [hostname("In", "node-1"), zone] }],
  ],
  [
    "excludes nodes of both clusters at once",
    { matchExpressions: [hostname("NotIn", "legation-west", "node-1")] },
    [{ matchExpressions: [hostname("NotIn", "node-1"), label("NotIn", "west")] }],
  ],
  [
    "keeps an exclusion in both alternatives",
    { matchExpressions: [hostname("In", "legation-west", "node-1"), hostname("NotIn", "legation-east")] },
    [
      { matchExpressions: [label("In", "west"), label("NotIn", "east")] },
      { matchExpressions: [hostname("In", "node-1"), label("NotIn", "east")] },
    ],
  ],
  [
    "keeps other fields",
    { matchFields: [{ key: "other", operator: "In", values: ["x"] }, nodeName("In", "legation-west")] },
    [{ matchExpressions: [label("In", "west")], matchFields: [{ key: "other", operator: "In", values: ["x"] }] }],
  ],
])("a required node affinity %s", (_, term, expected) => {
  const terms = namedByLabel({ containers, ...affinity([term, { matchExpressions: [zone] }]) }).affinity?.nodeAffinity;
  expect(terms?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms).toEqual([
    ...expected,
    { matchExpressions: [zone] },
  ]);
});

test("both alternatives of a preferred node affinity have its weight", () => {
  const preference = { matchExpressions: [hostname("In", "legation-west", "node-1")] };
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 7, preference }] };
  const named = namedByLabel({ containers, affinity: { nodeAffinity } }).affinity?.nodeAffinity;
  expect(named).toEqual({
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 7, preference: { matchExpressions: [label("In", "west")] } },
      { weight: 7, preference: { matchExpressions: [hostname("In", "node-1")] } },
    ],
  });
});
