import { describe, expect, test } from "vitest";
import { annotationsOf, converted } from "./converted.ts";

const DEPLOYMENT = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {propagationpolicy.karmada.io/name: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "registry.example:5000/team/web:1.0", command: [serve], args: [-a, -b]}
      - {name: side, image: busybox}`;
const CONFIG = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: b}`;

interface Parts {
  readonly kind?: string;
  readonly name?: string;
  readonly selectors?: string;
  readonly rest?: string;
}

function propagation(
  placement: string,
  {
    kind = "PropagationPolicy",
    name = "web",
    selectors = "[{apiVersion: apps/v1, kind: Deployment}]",
    rest = "",
  }: Parts = {},
): string {
  const namespace = kind.startsWith("Cluster") ? "" : ", namespace: shop";
  return `
apiVersion: policy.karmada.io/v1alpha1
kind: ${kind}
metadata: {name: ${name}${namespace}}
spec: {resourceSelectors: ${selectors}, placement: {${placement}}${rest}}`;
}

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

const WEST_AND_EAST = "clusterAffinity: {clusterNames: [west, east]}";
const DIVIDED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted";

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
      { "cluster-selector": "region in (eu)" },
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

test("a Cluster of Karmada is to be joined", () => {
  const { objects, steps } = converted(`
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: west, labels: {tier: gold}}
spec: {}`);
  expect(objects).toEqual([]);
  expect(steps).toEqual(["Cluster west: legation join west --member-kubeconfig FILE --labels tier=gold"]);
});
