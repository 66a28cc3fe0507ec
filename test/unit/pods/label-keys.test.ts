import { expect, test } from "vitest";
import { withoutMergedKeys } from "../../../src/pods/label-keys.ts";

const own = { key: "tier", operator: "DoesNotExist" };
const merged = { key: "pod-template-hash", operator: "In", values: ["abc"] };
const excluded = { key: "tenant", operator: "NotIn", values: ["a"] };
const selector = { matchLabels: { app: "web" }, matchExpressions: [own, merged, excluded] };

test("removes label keys that the host merged into selectors, wherever they are", () => {
  const keys = { matchLabelKeys: ["pod-template-hash"], mismatchLabelKeys: ["tenant"] };
  const term = { topologyKey: "zone", labelSelector: selector };
  expect(withoutMergedKeys([{ ...term, ...keys, maxSkew: 1 }])).toEqual([{ ...term, maxSkew: 1 }]);
  const affinity = (one: object): object => ({
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [one],
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: one }],
    },
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
  });
  expect(withoutMergedKeys(affinity({ ...term, ...keys }))).toEqual(affinity(term));
});

test.each([
  ["the pod has no such label", { labelSelector: { matchExpressions: [own] }, matchLabelKeys: ["team"] }],
  ["the host is too old to write them", { labelSelector: { matchLabels: { app: "web" } }, matchLabelKeys: ["team"] }],
  ["there is no selector", { matchLabelKeys: ["team"] }],
  ["nothing names them", { labelSelector: selector }],
])("changes nothing if %s", (_case, term) => {
  expect(withoutMergedKeys(term)).toEqual(term);
});

test("keeps those of several keys that are not in the selector", () => {
  const term = { labelSelector: selector, matchLabelKeys: ["team", "pod-template-hash"], mismatchLabelKeys: ["team"] };
  expect(withoutMergedKeys(term)).toEqual({ ...term, matchLabelKeys: ["team"] });
});
