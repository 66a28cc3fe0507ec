import { describe, expect, test } from "vitest";
import { parsePreferences, preferencesFor } from "../../../src/api/preferences.ts";

describe("scheduling preferences", () => {
  test.each([
    ["JSON", '{"rebalance": true, "clusters": {"west": {"weight": 2, "minReplicas": 1, "maxReplicas": 4}}}'],
    ["YAML", "rebalance: true\nclusters:\n  west: {weight: 2, minReplicas: 1, maxReplicas: 4}\n"],
  ])("are parsed from %s", (_, text) => {
    expect(parsePreferences(text)).toEqual({
      rebalance: true,
      clusters: { west: { weight: 2, minReplicas: 1, maxReplicas: 4 } },
    });
  });

  test.each(["{}", '{"clusters": {}}', "rebalance: false"])(
    "without clusters weigh all clusters equally: %s",
    (text) => {
      expect(parsePreferences(text)).toEqual({ rebalance: false, clusters: { "*": { weight: 1, minReplicas: 0 } } });
    },
  );

  test("return the same object for the same text", () => {
    expect(parsePreferences('{"clusters": {"a": {}}}')).toBe(parsePreferences('{"clusters": {"a": {}}}'));
  });

  test("use the entry * for a cluster without one", () => {
    const parsed = parsePreferences('{"clusters": {"west": {"weight": 2}, "*": {"weight": 1}}}');
    if ("problem" in parsed) throw new Error(parsed.problem);
    expect(preferencesFor(parsed, "west")?.weight).toBe(2);
    expect(preferencesFor(parsed, "constructor")?.weight).toBe(1);
    expect(preferencesFor({ rebalance: false, clusters: {} }, "west")).toBeUndefined();
  });

  test.each<[string, string[]]>([
    ["", ["must be a map with the fields rebalance and clusters"]],
    ["[1]", ["must be a map"]],
    ["{", ["is neither JSON nor YAML"]],
    ["a: &x [1]\nb: *x", ["is neither JSON nor YAML"]],
    ['{"clusters": {"west": {"weight": 1.5}}}', ["clusters.west.weight: must be a whole number"]],
    ['{"clusters": {"west": {"weight": "2"}}}', ["clusters.west.weight: must be a whole number"]],
    ['{"clusters": {"west": {"maxReplicas": -1}}}', ["clusters.west.maxReplicas: must not be negative"]],
    ['{"clusters": {"west": 3}}', ["clusters.west: must be a map"]],
    [
      '{"clusters": {"west": {"minReplicas": 3, "maxReplicas": 2}}}',
      ["clusters.west: minReplicas is greater than maxReplicas"],
    ],
    ['{"clusters": {"west": {"wieght": 3}}}', ["clusters.west.wieght: is no field here; did you mean weight?"]],
    ['{"rebalance": "yes"}', ["rebalance: must be a boolean"]],
    [
      '{"totalReplicas": 3, "targetKind": "x"}',
      ["totalReplicas: the workload's own replicas", "targetKind: the annot"],
    ],
    [
      '{"clusters": {"West": {"weight": -1}}, "x": 1}',
      ['clusters: "West" ', "clusters.West.weight: must not be negative", "x: is no"],
    ],
  ])("report every problem of %s, with an example", (text, problems) => {
    const parsed = parsePreferences(text);
    const problem = "problem" in parsed ? parsed.problem : "none";
    for (const part of [...problems, "write e.g. {"]) expect(problem).toContain(part);
  });
});
