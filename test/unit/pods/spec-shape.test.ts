import { expect, test } from "vitest";
import { podSpec, shapeProblems } from "../../../src/pods/spec-shape.ts";

const containers = [{ name: "main" }];

test.each<[string, unknown]>([
  ["fields that no decision reads", { containers, hostAliases: 7, containerField: {} }],
  ["null for what may be absent", { containers, volumes: null, affinity: null, tolerations: null, overhead: null }],
  [
    "amounts as text or numbers",
    { containers: [{ name: "main", resources: { requests: { cpu: 1, memory: "1Gi" } } }] },
  ],
])("a pod may have %s", (_, spec) => {
  expect(shapeProblems(spec)).toEqual([]);
  expect(podSpec.safeParse(spec).data).toBe(spec);
});

test.each<[string, string, unknown]>([
  ["no container", "spec.containers", { containers: [] }],
  ["a container without a name", "spec.containers.0.name", { containers: [{}] }],
  ["a list that is none", "spec.volumes", { containers, volumes: {} }],
  ["a label that is no text", "spec.nodeSelector.disk", { containers, nodeSelector: { disk: 7 } }],
  [
    "an amount that is none",
    "spec.containers.0.resources.requests.cpu",
    { containers: [{ name: "a", resources: { requests: { cpu: "much" } } }] },
  ],
  [
    "a claim's volume without a name",
    "spec.volumes.0.persistentVolumeClaim.claimName",
    { containers, volumes: [{ name: "data", persistentVolumeClaim: {} }] },
  ],
  ["no spec", "spec", undefined],
])("a pod with %s is refused, and the problem names %s", (_, path, spec) => {
  expect(shapeProblems(spec)).toEqual([expect.stringContaining(`${path}: `)]);
  expect(podSpec.safeParse(spec).success).toBe(false);
});
