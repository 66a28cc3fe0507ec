import { describe, expect, test } from "vitest";
import { annotationsOf, converted } from "./converted.ts";
import { CONFIG, DEPLOYMENT, DIVIDED, propagation, WEST_AND_EAST } from "./karmada-documents.ts";

describe("a PropagationPolicy", () => {
  test("gives each cluster the workload's number, which one workload has now in all", () => {
    const { objects, gaps, refused } = converted(DEPLOYMENT, propagation(WEST_AND_EAST));
    expect(objects).toMatchObject([{ kind: "Deployment", spec: { replicas: 6 } }]);
    expect(objects[0]?.metadata.annotations).not.toHaveProperty("propagationpolicy.karmada.io/name");
    expect(annotationsOf(objects[0])).toEqual({
      delegate: "true",
      clusters: "west,east",
      "scheduling-preferences": { clusters: { west: { weight: 3 }, east: { weight: 3 } } },
    });
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test.each<[string, string, unknown]>([
    [
      "static weights",
      `${DIVIDED}, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [west]}, weight: 2}, {targetCluster: {clusterNames: [east]}, weight: 1}]}}`,
      { clusters: { west: { weight: 2 }, east: { weight: 1 } } },
    ],
    ["equal weights", `${DIVIDED}}`, { clusters: { "*": { weight: 1 } } }],
    ["room", `${DIVIDED}, weightPreference: {dynamicWeight: AvailableReplicas}}`, undefined],
  ])("divides by %s", (_case, scheduling, preferences) => {
    const { objects, gaps, refused } = converted(DEPLOYMENT, propagation(`${WEST_AND_EAST}, ${scheduling}`));
    expect(objects).toMatchObject([{ spec: { replicas: 3 } }]);
    expect(annotationsOf(objects[0])["scheduling-preferences"]).toEqual(preferences);
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test("leaves objects that it does not select as they are", () => {
    const { objects, gaps, steps } = converted(CONFIG, propagation(WEST_AND_EAST));
    expect(objects).toMatchObject([{ kind: "ConfigMap" }]);
    expect(annotationsOf(objects[0])).toEqual({});
    expect(steps).toEqual(["ConfigMap shop/settings: no policy selects it, so it stays on the host as it is"]);
    expect(gaps).toEqual(["PropagationPolicy shop/web: spec.resourceSelectors"]);
  });

  test.each<[string, string, string]>([
    ["schedulerName", "", ", schedulerName: mine"],
    ["failover", "", ", failover: {application: {decisionConditions: {tolerationSeconds: 60}}}"],
    ["suspension", "", ", suspension: {dispatching: true}"],
    ["schedulePriority", "", ", schedulePriority: {priorityClassName: high}"],
    ["activationPreference", "", ", activationPreference: Lazy"],
    ["placement.clusterTolerations", ", clusterTolerations: [{key: a}]", ""],
    ["placement.workloadAffinity", ", workloadAffinity: {affinity: {groupByLabelKey: app}}", ""],
    ["placement.spreadConstraints[0]", ", spreadConstraints: [{spreadByField: region, minGroups: 2}]", ""],
    [
      "placement.replicaScheduling.replicaDivisionPreference",
      ", replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}",
      "",
    ],
    [
      "placement.replicaScheduling.weightPreference.staticWeightList[0]",
      `, ${DIVIDED}, weightPreference: {staticWeightList: [{targetCluster: {labelSelector: {matchLabels: {a: b}}}, weight: 1}]}}`,
      "",
    ],
  ])("has no equal for %s", (field, placement, rest) => {
    const { gaps, refused } = converted(DEPLOYMENT, propagation(WEST_AND_EAST + placement, { rest }));
    expect(gaps).toEqual([`PropagationPolicy shop/web: spec.${field}`]);
    expect(refused).toEqual([]);
  });
});

test("a Cluster of Karmada is to be joined", () => {
  const { objects, steps } = converted(`
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: west, labels: {tier: gold}}
spec: {}`);
  expect(objects).toEqual([]);
  expect(steps).toEqual(["Cluster west: legation join west --member-kubeconfig FILE --labels tier=gold"]);
});
