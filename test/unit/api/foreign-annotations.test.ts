import { describe, expect, test } from "vitest";
import {
  asksForDelegation,
  authorAnnotations,
  parsePlacement,
  placementExcludes,
} from "../../../src/api/annotations.ts";

const ADMIRALTY = "multicluster.admiralty.io";
const FEDERATION = "federation.kubernetes.io";
const west = { name: "west", labels: { region: "eu" } };
const east = { name: "east", labels: { region: "us" } };

function allowed(annotations: Record<string, string>): string[] {
  const parsed = parsePlacement(annotations);
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  return [west, east].filter((one) => placementExcludes(parsed.placement, one) === undefined).map(({ name }) => name);
}

describe("annotations of other projects", () => {
  test.each<[Record<string, string>, boolean]>([
    [{ [`${ADMIRALTY}/elect`]: "" }, true],
    [{ [`${ADMIRALTY}/elect`]: "", "legation.dev/delegate": "false" }, false],
    [{ "legation.dev/delegate": "false", [`${ADMIRALTY}/elect`]: "" }, false],
    [{ [`${ADMIRALTY}/no-reservation`]: "" }, false],
    [{ [`${FEDERATION}/replica-set-preferences`]: '{"clusters": {"*": {"weight": 1}}}' }, true],
    [{ [`${FEDERATION}/other`]: "" }, false],
  ])("ask for delegation with %j: %j", (annotations, asks) => {
    const parsed = parsePlacement(annotations);
    expect(parsed.ok && asksForDelegation(parsed.placement)).toBe(asks);
  });

  test.each<[Record<string, string>, string[]]>([
    [{ [`${ADMIRALTY}/clustername`]: "east" }, ["east"]],
    [{ [`${ADMIRALTY}/proxy-pod-scheduling-constraints`]: "nodeSelector: {region: eu}" }, ["west"]],
    [
      {
        [`${ADMIRALTY}/proxy-pod-scheduling-constraints`]:
          '{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "region", "operator": "NotIn", "values": ["eu"]}]}]}}}}',
      },
      ["east"],
    ],
    // Legation's own say more.
    [{ "legation.dev/clusters": "west", [`${ADMIRALTY}/clustername`]: "east" }, ["west"]],
  ])("with %j choose %j", (annotations, clusters) => {
    expect(allowed(annotations)).toEqual(clusters);
  });

  test("of Federation v1 become scheduling preferences", () => {
    const text = '{"rebalance": true, "clusters": {"west": {"minReplicas": 1, "maxReplicas": 3, "weight": 2}}}';
    const read = (key: string) => {
      const parsed = parsePlacement({ [key]: text });
      return parsed.ok ? parsed.placement.preferences : parsed.problems;
    };
    expect(read(`${FEDERATION}/replica-set-preferences`)).toEqual(read("legation.dev/scheduling-preferences"));
    expect(read(`${FEDERATION}/deployment-preferences`)).toEqual(read("legation.dev/scheduling-preferences"));
  });

  test.each<[string, string, string]>([
    ["use-constraints-from-spec-for-proxy-pod-scheduling", "", "write those for clusters as legation.dev/cluster-sel"],
    ["proxy-pod-scheduling-constraints", "tolerations: []", "nodeSelector and affinity.nodeAffinity are understood"],
    ["clustername", "We$t", "is not a DNS label"],
    ["sourcepod-manifest", "{}", "is not known to Legation; remove it"],
  ])("are refused if Legation does not understand them: %s", (key, value, message) => {
    const parsed = parsePlacement({ [`${ADMIRALTY}/${key}`]: value });
    const [problem] = parsed.ok ? [] : parsed.problems;
    expect(problem?.message).toContain(`annotation ${ADMIRALTY}/${key}: `);
    expect(problem?.message).toContain(message);
  });

  test("are copied into pod templates unchanged", () => {
    const written = { [`${ADMIRALTY}/elect`]: "", [`${FEDERATION}/other`]: "x", "example.com/a": "b" };
    expect(authorAnnotations(written)).toEqual({ [`${ADMIRALTY}/elect`]: "" });
  });
});
