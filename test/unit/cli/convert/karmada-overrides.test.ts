import { describe, expect, test } from "vitest";
import { annotationsOf, converted } from "./converted.ts";
import { CONFIG, DEPLOYMENT, DIVIDED, type Parts, propagation, WEST_AND_EAST } from "./karmada-documents.ts";

function override(
  rules: string,
  {
    kind = "OverridePolicy",
    name = "web",
    selectors = "[{apiVersion: apps/v1, kind: Deployment, name: web}]",
  }: Parts = {},
): string {
  const namespace = kind.startsWith("Cluster") ? "" : ", namespace: shop";
  return `
apiVersion: policy.karmada.io/v1alpha1
kind: ${kind}
metadata: {name: ${name}${namespace}}
spec: {resourceSelectors: ${selectors}, overrideRules: ${rules}}`;
}

describe("an OverridePolicy", () => {
  const POLICY = propagation(`${WEST_AND_EAST}, ${DIVIDED}}`);
  const WEST = "targetCluster: {clusterNames: [west]}";

  function overridesOf(
    overriders: string,
    target = WEST,
  ): { readonly overrides: unknown; readonly gaps: readonly string[]; readonly refused: readonly string[] } {
    const { objects, gaps, refused } = converted(
      DEPLOYMENT,
      POLICY,
      override(`[{${target}, overriders: {${overriders}}}]`),
    );
    return { overrides: annotationsOf(objects[0]).overrides, gaps, refused };
  }

  test.each<[string, string, readonly object[]]>([
    [
      "plain values",
      "plaintext: [{path: /spec/template/spec/containers/0/image, operator: replace, value: web:2}]",
      [{ op: "replace", path: "/spec/containers/0/image", value: "web:2" }],
    ],
    [
      "a registry, in every image",
      "imageOverrider: [{component: Registry, operator: replace, value: mirror.example}]",
      [
        { op: "replace", path: "/spec/containers/0/image", value: "mirror.example/team/web:1.0" },
        { op: "replace", path: "/spec/containers/1/image", value: "mirror.example/busybox" },
      ],
    ],
    [
      "one image twice",
      "imageOverrider: [{predicate: {path: /spec/template/spec/containers/0/image}, component: Repository, operator: replace, value: other/web}, {predicate: {path: /spec/template/spec/containers/0/image}, component: Tag, operator: replace, value: sha256:0a}]",
      [
        { op: "replace", path: "/spec/containers/0/image", value: "registry.example:5000/other/web:1.0" },
        { op: "replace", path: "/spec/containers/0/image", value: "registry.example:5000/other/web@sha256:0a" },
      ],
    ],
    [
      "a tag that goes",
      "imageOverrider: [{predicate: {path: /spec/template/spec/containers/0/image}, component: Tag, operator: remove}]",
      [{ op: "replace", path: "/spec/containers/0/image", value: "registry.example:5000/team/web" }],
    ],
    [
      "a longer command",
      "commandOverrider: [{containerName: main, operator: add, value: [--fast]}]",
      [{ op: "replace", path: "/spec/containers/0/command", value: ["serve", "--fast"] }],
    ],
    [
      "fewer arguments",
      "argsOverrider: [{containerName: main, operator: remove, value: [-a]}]",
      [{ op: "replace", path: "/spec/containers/0/args", value: ["-b"] }],
    ],
    [
      "arguments where there were none",
      "argsOverrider: [{containerName: side, operator: add, value: [-c]}]",
      [{ op: "add", path: "/spec/containers/1/args", value: ["-c"] }],
    ],
  ])("changes %s", (_case, overriders, patch) => {
    expect(overridesOf(overriders)).toEqual({ overrides: [{ clusters: ["west"], patch }], gaps: [], refused: [] });
  });

  test.each<[string, string, object]>([
    ["labels", "targetCluster: {labelSelector: {matchLabels: {region: eu}}}", { clusterSelector: "region=eu" }],
    [
      "names without excluded ones",
      "targetCluster: {clusterNames: [west, east], exclude: [east]}",
      { clusters: ["west"] },
    ],
  ])("is for clusters by %s", (_case, target, where) => {
    const { overrides } = overridesOf("argsOverrider: [{containerName: side, operator: add, value: [-c]}]", target);
    expect(overrides).toEqual([{ ...where, patch: [{ op: "add", path: "/spec/containers/1/args", value: ["-c"] }] }]);
  });

  test.each<[string, string, string]>([
    ["labels", "labelsOverrider: [{operator: add, value: {a: b}}]", "labelsOverrider"],
    ["annotations", "annotationsOverrider: [{operator: add, value: {a: b}}]", "annotationsOverrider"],
    ["a part of a value", "fieldOverrider: [{fieldPath: /data/x, json: []}]", "fieldOverrider[0]"],
    ["the workload's own fields", "plaintext: [{path: /spec/paused, operator: add, value: true}]", "plaintext[0]"],
    [
      "a container that is not there",
      "commandOverrider: [{containerName: other, operator: add, value: [a]}]",
      "commandOverrider[0]",
    ],
    [
      "an image that is not there",
      "imageOverrider: [{predicate: {path: /spec/template/spec/initContainers/0/image}, component: Tag, operator: remove}]",
      "imageOverrider[0]",
    ],
  ])("has no equal for %s", (_case, overriders, field) => {
    const { overrides, gaps, refused } = overridesOf(overriders);
    expect(overrides).toBeUndefined();
    expect(gaps).toHaveLength(1);
    expect(gaps[0]).toMatch(
      new RegExp(
        `^OverridePolicy shop/web: spec\\.overrideRules\\[0\\]\\.overriders\\.${field.replace(/[[\]]/g, "\\$&")}$`,
      ),
    );
    expect(refused).toEqual([]);
  });

  test("of a cluster comes before one of a namespace, and the old form is read, too", () => {
    const old = `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: z}
spec:
  targetCluster: {clusterNames: [east]}
  overriders: {argsOverrider: [{containerName: side, operator: add, value: [-old]}]}`;
    const own = override(
      `[{${WEST}, overriders: {argsOverrider: [{containerName: side, operator: add, value: [-own]}]}}]`,
    );
    const { objects } = converted(DEPLOYMENT, POLICY, own, old);
    expect(annotationsOf(objects[0]).overrides).toMatchObject([{ clusters: ["east"] }, { clusters: ["west"] }]);
  });

  test("gives a cluster its own number of replicas", () => {
    const each = propagation(WEST_AND_EAST);
    const { objects, gaps } = converted(
      DEPLOYMENT,
      each,
      override(`[{${WEST}, overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 1}]}}]`),
    );
    expect(objects).toMatchObject([{ spec: { replicas: 4 } }]);
    expect(annotationsOf(objects[0])["scheduling-preferences"]).toEqual({
      clusters: { west: { weight: 1 }, east: { weight: 3 } },
    });
    expect(gaps).toEqual([]);
  });

  test("changes fields of an object that members get whole, and not its labels", () => {
    const selectors = "[{apiVersion: v1, kind: ConfigMap}]";
    const plaintext = [
      "{path: /data/a, operator: replace, value: c}",
      "{path: /metadata/labels/a, operator: add, value: c}",
    ];
    const { objects, gaps, refused } = converted(
      CONFIG,
      propagation(WEST_AND_EAST, { selectors }),
      override(`[{${WEST}, overriders: {plaintext: [${plaintext.join(", ")}]}}]`, { selectors }),
    );
    expect(annotationsOf(objects[0]).overrides).toEqual([
      { clusters: ["west"], patch: [{ op: "replace", path: "/data/a", value: "c" }] },
    ]);
    expect(gaps).toEqual(["OverridePolicy shop/web: spec.overrideRules[0].overriders.plaintext[1]"]);
    expect(refused).toEqual([]);
  });
});
