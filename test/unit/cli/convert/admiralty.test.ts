import { describe, expect, test } from "vitest";
import { converted } from "./converted.ts";

const A = "multicluster.admiralty.io";

function job(annotations: string): string {
  return `
apiVersion: batch/v1
kind: Job
metadata: {name: pi, namespace: shop}
spec:
  template:
    metadata: {annotations: {${annotations}}}
    spec: {restartPolicy: Never, containers: [{name: main, image: perl}]}`;
}

function templateAnnotations(text: string): unknown {
  const [object] = converted(text).objects;
  return (object as unknown as { spec: { template: { metadata: { annotations: unknown } } } }).spec.template.metadata
    .annotations;
}

describe("Admiralty's annotations", () => {
  test.each<[string, string, Record<string, string>]>([
    ["elect", `${A}/elect: ""`, { "legation.dev/delegate": "true" }],
    ["clustername", `${A}/clustername: west`, { "legation.dev/clusters": "west" }],
    ["what has no effect here", `${A}/elect: "", ${A}/no-reservation: ""`, { "legation.dev/delegate": "true" }],
    [
      "a node selector for clusters",
      `${A}/proxy-pod-scheduling-constraints: '{"nodeSelector": {"region": "eu", "tier": "gold"}}'`,
      { "legation.dev/cluster-selector": "region=eu,tier=gold" },
    ],
    ["annotations of others", `${A}/elect: "", other: "1"`, { "legation.dev/delegate": "true", other: "1" }],
    [
      "Federation v1's preferences",
      `federation.kubernetes.io/replica-set-preferences: '{"clusters": {"*": {"weight": 1}}}'`,
      { "legation.dev/scheduling-preferences": '{"clusters": {"*": {"weight": 1}}}' },
    ],
  ])("are translated where they stand: %s", (_case, annotations, expected) => {
    expect(templateAnnotations(job(annotations))).toEqual(expected);
    const { gaps, refused } = converted(job(annotations));
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test("keep an affinity for clusters", () => {
    const terms = { nodeSelectorTerms: [{ matchExpressions: [{ key: "region", operator: "In", values: ["eu"] }] }] };
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: terms };
    const text = JSON.stringify({ affinity: { nodeAffinity } });
    const { refused } = converted(job(`${A}/proxy-pod-scheduling-constraints: '${text}'`));
    expect(templateAnnotations(job(`${A}/proxy-pod-scheduling-constraints: '${text}'`))).toEqual({
      "legation.dev/cluster-affinity": JSON.stringify(nodeAffinity),
    });
    expect(refused).toEqual([]);
  });

  test.each([
    ["constraints of the pod", `${A}/use-constraints-from-spec-for-proxy-pod-scheduling: ""`, ""],
    ["tolerations of clusters", `${A}/proxy-pod-scheduling-constraints: '{"tolerations": []}'`, ""],
    ["an unknown one", `${A}/global: "true"`, ""],
    ["labels of reservations", `${A}/no-prefix-label-regexp: "^a"`, ""],
    ["a name that is none", `${A}/clustername: "No Name"`, ""],
  ])("have no equal for %s", (_case, annotation, suffix) => {
    const { gaps, refused } = converted(job(annotation));
    const [key = ""] = annotation.split(": ");
    expect(gaps).toEqual([`Job shop/pi: spec.template.metadata.annotations[${key}]${suffix}`]);
    expect(refused).toEqual([]);
  });

  test("a labelled namespace is opted in", () => {
    const { objects } = converted(
      "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {multicluster-scheduler: enabled, a: b}}}",
    );
    expect(objects).toMatchObject([{ metadata: { labels: { a: "b", "legation.dev/delegation": "annotated" } } }]);
    expect(objects[0]?.metadata.labels).not.toHaveProperty("multicluster-scheduler");
  });

  test("a Target is to be joined, under the label by which pods select it", () => {
    const { objects, steps } = converted(
      `{apiVersion: ${A}/v1alpha1, kind: Target, metadata: {name: west, namespace: shop}}`,
    );
    expect(objects).toEqual([]);
    expect(steps).toEqual([
      `Target shop/west: legation join west --member-kubeconfig FILE --labels ${A}/cluster-target-name=west`,
    ]);
  });
});
