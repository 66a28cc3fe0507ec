import { describe, expect, test } from "vitest";
import { annotationsOf, converted } from "./converted.ts";
import { federated, preference } from "./federated.ts";

describe("a federated workload", () => {
  test("becomes one workload with the replicas of all clusters, in their proportion", () => {
    const overrides = "[{clusterName: east, clusterOverrides: [{path: /spec/replicas, value: 5}]}]";
    const { objects, gaps, refused } = converted(federated({ overrides }));
    expect(objects).toMatchObject([
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "web", namespace: "shop", labels: { app: "web" } },
        spec: { replicas: 8 },
      },
    ]);
    expect(objects[0]?.metadata).not.toHaveProperty("uid");
    expect(annotationsOf(objects[0])).toEqual({
      delegate: "true",
      clusters: "west,east",
      "scheduling-preferences": { clusters: { west: { weight: 3 }, east: { weight: 5 } } },
    });
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test("keeps its own number in one cluster", () => {
    const { objects } = converted(federated({ placement: "clusters: [{name: west}]" }));
    expect(objects[0]).toMatchObject({ spec: { replicas: 3 } });
    expect(annotationsOf(objects[0])).toEqual({ delegate: "true", clusters: "west" });
  });

  test("has a number for each of unknown clusters, which is a gap", () => {
    const { objects, gaps } = converted(federated({ placement: "clusterSelector: {}" }));
    expect(objects[0]).toMatchObject({ spec: { replicas: 3 } });
    expect(annotationsOf(objects[0])).toMatchObject({ "scheduling-preferences": { clusters: { "*": { weight: 1 } } } });
    expect(gaps).toEqual(["FederatedDeployment shop/web: spec.replicas"]);
  });
});

describe("a ReplicaSchedulingPreference", () => {
  test("divides equally without clusters, among those of the selector if it intersects", () => {
    const rsp = preference("targetKind: FederatedDeployment, totalReplicas: 9, intersectWithClusterSelector: true");
    const { objects } = converted(federated({ placement: "clusterSelector: {matchLabels: {region: eu}}" }), rsp);
    expect(annotationsOf(objects[0])).toEqual({
      delegate: "true",
      "cluster-selector": "region=eu",
      "scheduling-preferences": { clusters: { "*": { weight: 1 } } },
    });
  });
});

describe("a federated Job", () => {
  const spec = `parallelism: 2, completions: 4, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}`;

  test("with several clusters, or a JobSchedulingPreference, is divided", () => {
    const several = converted(federated({ kind: "Job", spec }));
    expect(several.objects).toMatchObject([{ spec: { parallelism: 4, completions: 8 } }]);
    const divided = converted(
      federated({ kind: "Job", spec }),
      preference(
        "totalParallelism: 10, totalCompletions: 100, clusters: {west: {weight: 2}, east: {weight: 3}}",
        "Job",
      ),
    );
    expect(divided.objects).toMatchObject([{ spec: { parallelism: 10, completions: 100 } }]);
    expect(annotationsOf(divided.objects[0])).toMatchObject({
      "scheduling-preferences": { clusters: { west: { weight: 2 }, east: { weight: 3 } } },
    });
    expect([...several.refused, ...divided.refused]).toEqual([]);
  });

  test.each([
    ["is Indexed", `completionMode: Indexed, ${spec}`, "spec.completionMode"],
    ["has no completions", spec.replace("completions: 4, ", ""), "spec.completions"],
  ])("that %s stays undivided, which is a gap", (_case, fields, field) => {
    const { objects, gaps, refused } = converted(federated({ kind: "Job", spec: fields }));
    expect(objects).toMatchObject([{ spec: { parallelism: 2 } }]);
    expect(annotationsOf(objects[0])).toEqual({ whole: "true", clusters: "west,east" });
    expect(gaps).toEqual([`FederatedJob shop/web: ${field}`]);
    expect(refused).toEqual([]);
  });

  test("of which no share moves loses rebalance, which is a gap", () => {
    const rsp = preference("totalParallelism: 4, totalCompletions: 8, rebalance: true", "Job");
    const { objects, gaps, refused } = converted(federated({ kind: "Job", spec }), rsp);
    expect(annotationsOf(objects[0])["scheduling-preferences"]).toEqual({ clusters: { "*": { weight: 1 } } });
    expect(gaps).toEqual(["FederatedJob shop/web: spec.rebalance"]);
    expect(refused).toEqual([]);
  });
});
