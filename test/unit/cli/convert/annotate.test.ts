import { describe, expect, test } from "vitest";
import { annotationsOf, converted } from "./converted.ts";
import { CONFIG, DEPLOYMENT, DIVIDED, propagation, WEST_AND_EAST } from "./karmada-documents.ts";

describe("a PropagationPolicy", () => {
  test("keeps a workload in one cluster as a group", () => {
    const placement = `${WEST_AND_EAST}, spreadConstraints: [{spreadByField: cluster, maxGroups: 1}], ${DIVIDED}, weightPreference: {dynamicWeight: AvailableReplicas}}`;
    const { objects, gaps, refused } = converted(DEPLOYMENT, propagation(placement));
    expect(annotationsOf(objects[0])).toMatchObject({ "group-by": "owner" });
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test("has the copies of a whole object stay, and take over what members have", () => {
    const selectors = "[{apiVersion: v1, kind: ConfigMap}]";
    const rest = ", preserveResourcesOnDeletion: true, conflictResolution: Overwrite";
    const { objects, gaps, refused } = converted(CONFIG, propagation(WEST_AND_EAST, { selectors, rest }));
    expect(annotationsOf(objects[0])).toMatchObject({ whole: "true", "on-delete": "orphan", "on-conflict": "adopt" });
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test("cannot have a workload's pods stay", () => {
    const { gaps } = converted(DEPLOYMENT, propagation(WEST_AND_EAST, { rest: ", preserveResourcesOnDeletion: true" }));
    expect(gaps).toEqual(["PropagationPolicy shop/web, Deployment shop/web: spec.preserveResourcesOnDeletion"]);
  });

  test("gives members other objects whole", () => {
    const selectors = "[{apiVersion: v1, kind: ConfigMap}]";
    const { objects, refused } = converted(CONFIG, propagation(WEST_AND_EAST, { selectors }));
    expect(annotationsOf(objects[0])).toEqual({ whole: "true", clusters: "west,east" });
    expect(refused).toEqual([]);
  });
});

describe("a PropagationPolicy of a Job", () => {
  const JOB = `
apiVersion: batch/v1
kind: Job
metadata: {name: sweep, namespace: shop}
spec: {parallelism: 2, completions: 4, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}`;
  const selectors = "[{apiVersion: batch/v1, kind: Job}]";

  test.each<[string, string, object, readonly string[]]>([
    [
      "divides by static weights",
      `, ${DIVIDED}, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [west]}, weight: 1}, {targetCluster: {clusterNames: [east]}, weight: 1}]}}`,
      { "scheduling-preferences": { clusters: { west: { weight: 1 }, east: { weight: 1 } } } },
      [],
    ],
    [
      "does not divide by room",
      `, ${DIVIDED}, weightPreference: {dynamicWeight: AvailableReplicas}}`,
      {},
      ["PropagationPolicy shop/web: spec.placement.replicaScheduling.weightPreference.dynamicWeight"],
    ],
    [
      "keeps it in one cluster",
      ", replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}",
      {},
      [],
    ],
  ])("%s", (_case, scheduling, annotations, gaps) => {
    const found = converted(JOB, propagation(WEST_AND_EAST + scheduling, { selectors }));
    expect(found.objects).toMatchObject([{ spec: { parallelism: 2, completions: 4 } }]);
    expect(annotationsOf(found.objects[0])).toEqual({ whole: "true", clusters: "west,east", ...annotations });
    expect({ gaps: found.gaps, refused: found.refused }).toEqual({ gaps, refused: [] });
  });

  test("copies nothing that its pods name", () => {
    const { gaps } = converted(
      JOB,
      propagation("clusterAffinity: {clusterNames: [west]}", { selectors, rest: ", propagateDeps: true" }),
    );
    expect(gaps).toEqual(["PropagationPolicy shop/web: spec.propagateDeps"]);
  });
});
