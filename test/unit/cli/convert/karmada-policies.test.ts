import { describe, expect, test } from "vitest";
import { annotationsOf, converted } from "./converted.ts";
import { DEPLOYMENT, DIVIDED, propagation } from "./karmada-documents.ts";

describe("a PropagationPolicy", () => {
  test.each<[string, string, Record<string, unknown>]>([
    ["labels", "clusterAffinity: {labelSelector: {matchLabels: {tier: gold}}}", { "cluster-selector": "tier=gold" }],
    [
      "names without excluded ones",
      "clusterAffinity: {clusterNames: [west, east], exclude: [east]}",
      { clusters: "west" },
    ],
    [
      "all but excluded ones",
      "clusterAffinity: {exclude: [east], labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}}",
      {
        "cluster-affinity": {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [{ key: "tier", operator: "Exists" }],
                matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["east"] }],
              },
            ],
          },
        },
      },
    ],
    [
      "fields, as labels",
      "clusterAffinity: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}}",
      { "cluster-selector": "region=eu" },
    ],
    [
      "groups in an order",
      "clusterAffinities: [{affinityName: main, clusterNames: [west]}, {affinityName: rest, labelSelector: {matchLabels: {tier: gold}}}]",
      {
        "cluster-affinity": {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              { matchFields: [{ key: "metadata.name", operator: "In", values: ["west"] }] },
              { matchExpressions: [{ key: "tier", operator: "In", values: ["gold"] }] },
            ],
          },
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 100, preference: { matchFields: [{ key: "metadata.name", operator: "In", values: ["west"] }] } },
            { weight: 50, preference: { matchExpressions: [{ key: "tier", operator: "In", values: ["gold"] }] } },
          ],
        },
      },
    ],
    ["nothing: any cluster", "", {}],
  ])("chooses clusters by %s", (_case, placement, annotations) => {
    const dynamic = `${DIVIDED}, weightPreference: {dynamicWeight: AvailableReplicas}}`;
    const { objects, gaps, refused } = converted(
      DEPLOYMENT,
      propagation([placement, dynamic].filter(Boolean).join(", ")),
    );
    expect(annotationsOf(objects[0])).toEqual({ delegate: "true", ...annotations });
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test.each<[string, string, readonly string[]]>([
    [
      "nearer to the object",
      propagation("clusterAffinity: {clusterNames: [east]}", {
        kind: "ClusterPropagationPolicy",
        rest: ", priority: 9",
      }),
      ["west"],
    ],
    [
      "of higher priority",
      propagation("clusterAffinity: {clusterNames: [east]}", { name: "z", rest: ", priority: 1" }),
      ["east"],
    ],
    [
      "that names the object",
      propagation("clusterAffinity: {clusterNames: [east]}", {
        name: "z",
        selectors: "[{apiVersion: apps/v1, kind: Deployment, name: web}]",
      }),
      ["east"],
    ],
    [
      "with labels before one without",
      propagation("clusterAffinity: {clusterNames: [east]}", {
        name: "z",
        selectors: "[{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: web}}}]",
      }),
      ["east"],
    ],
    ["first in the alphabet", propagation("clusterAffinity: {clusterNames: [east]}", { name: "a" }), ["east"]],
  ])("counts when it is the one %s", (_case, other, clusters) => {
    const { objects } = converted(DEPLOYMENT, propagation("clusterAffinity: {clusterNames: [west]}"), other);
    expect(annotationsOf(objects[0]).clusters).toBe(clusters.join(","));
  });
});
