import { expect, test } from "vitest";
import { asWritten } from "../../../src/pods/label-keys.ts";

const labels = { app: "web", "pod-template-hash": "abc", tenant: "a" };
const own = { key: "tier", operator: "DoesNotExist" };
const merged = { key: "pod-template-hash", operator: "In", values: ["abc"] };

test("what the host has written into selectors for label keys is taken out, wherever it is", () => {
  const keys = { topologyKey: "zone", matchLabelKeys: ["pod-template-hash"], mismatchLabelKeys: ["tenant"] };
  const excluded = { key: "tenant", operator: "NotIn", values: ["a"] };
  const term = { ...keys, labelSelector: { matchLabels: { app: "web" }, matchExpressions: [own, merged, excluded] } };
  const written = { ...keys, labelSelector: { matchLabels: { app: "web" }, matchExpressions: [own] } };
  expect(asWritten([{ ...term, maxSkew: 1 }], labels)).toEqual([{ ...written, maxSkew: 1 }]);
  const affinity = (one: object): object => ({
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [one],
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: one }],
    },
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
  });
  expect(asWritten(affinity(term), labels)).toEqual(affinity(written));
});

test("a selector that holds nothing else is as empty as it was written", () => {
  const term = { labelSelector: { matchExpressions: [merged] }, matchLabelKeys: ["pod-template-hash"] };
  expect(asWritten(term, labels)).toEqual({ labelSelector: {}, matchLabelKeys: ["pod-template-hash"] });
});

test.each([
  ["no key is named", { labelSelector: { matchExpressions: [merged] } }],
  ["it is another key's", { labelSelector: { matchExpressions: [merged] }, matchLabelKeys: ["app"] }],
  [
    "it is more than the pod's own value",
    {
      labelSelector: { matchExpressions: [{ ...merged, values: ["abc", "old"] }] },
      matchLabelKeys: ["pod-template-hash"],
    },
  ],
])("an author's expression stays when %s", (_case, term) => {
  expect(asWritten(term, labels)).toEqual(term);
});
