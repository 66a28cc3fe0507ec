import { expect, test } from "vitest";
import { withoutMergedKeys } from "../../../src/pods/label-keys.ts";

const merged = { key: "pod-template-hash", operator: "In", values: ["abc"] };

test("label keys that the host has written into the selector are left out, wherever they are", () => {
  const selector = { matchLabels: { app: "web" }, matchExpressions: [merged] };
  const term = { topologyKey: "zone", labelSelector: selector, matchLabelKeys: ["pod-template-hash"] };
  const plain = { topologyKey: "zone", labelSelector: selector };
  expect(withoutMergedKeys([{ ...term, maxSkew: 1 }])).toEqual([{ ...plain, maxSkew: 1 }]);
  const affinity = {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [term],
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }],
    },
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
  };
  expect(withoutMergedKeys(affinity)).toEqual({
    ...affinity,
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [plain],
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: plain }],
    },
  });
});

test("keys that only the member can read, or that exclude, are kept as long as nothing stands for them", () => {
  const selector = { matchExpressions: [{ ...merged, operator: "NotIn" }] };
  const term = {
    labelSelector: selector,
    matchLabelKeys: ["pod-template-hash", "other"],
    mismatchLabelKeys: ["pod-template-hash", "tenant"],
  };
  expect(withoutMergedKeys(term)).toEqual({
    labelSelector: selector,
    matchLabelKeys: ["pod-template-hash", "other"],
    mismatchLabelKeys: ["tenant"],
  });
});
