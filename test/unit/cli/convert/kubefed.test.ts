import { describe, expect, test } from "vitest";
import { annotationsOf, converted } from "./converted.ts";
import { federated, preference, TEMPLATE } from "./federated.ts";

describe("a federated workload", () => {
  test.each<[string, string, Record<string, unknown>]>([
    [
      "a selector",
      "clusterSelector: {matchLabels: {region: eu}, matchExpressions: [{key: tier, operator: NotIn, values: [spot, old]}]}",
      { "cluster-selector": "region=eu,tier notin (spot,old)" },
    ],
    ["an empty selector, which is every cluster", "clusterSelector: {}", {}],
    [
      "a list, and not the selector beside it",
      "clusters: [{name: west}], clusterSelector: {matchLabels: {region: eu}}",
      { clusters: "west" },
    ],
  ])("is placed by %s", (_case, placement, annotations) => {
    const { objects, refused } = converted(federated({ placement, spec: `replicas: 1, template: ${TEMPLATE}` }));
    expect(annotationsOf(objects[0])).toMatchObject({ delegate: "true", ...annotations });
    expect(refused).toEqual([]);
  });

  test.each(["{}", "clusters: []", "clusters: [], clusterSelector: {}"])(
    "is left out when it was in no cluster: %s",
    (placement) => {
      const { objects, gaps } = converted(
        federated({ placement: placement.replace("{}", placement === "{}" ? "" : "{}") }),
      );
      expect(objects).toEqual([]);
      expect(gaps).toEqual(["FederatedDeployment shop/web: spec.placement"]);
    },
  );

  test("keeps differences of its pods as overrides, with replace as the default", () => {
    const overrides = `
  - clusterName: east
    clusterOverrides:
    - {path: /spec/template/spec/containers/0/image, value: "web:2"}
    - {op: add, path: /spec/template/spec/containers/0/args/0, value: -q}
    - {op: remove, path: /spec/template/spec/containers/0/args/1, value: ignored}`;
    const { objects, gaps, refused } = converted(federated({ overrides }));
    expect(annotationsOf(objects[0]).overrides).toEqual([
      {
        clusters: ["east"],
        patch: [
          { op: "replace", path: "/spec/containers/0/image", value: "web:2" },
          { op: "add", path: "/spec/containers/0/args/0", value: "-q" },
          { op: "remove", path: "/spec/containers/0/args/1" },
        ],
      },
    ]);
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test.each([
    ["annotations of the object", "op: add, path: /metadata/annotations, value: {foo: bar}"],
    ["labels of its pods", "path: /spec/template/metadata/labels/app, value: x"],
    ["another field of the workload", "path: /spec/strategy/type, value: Recreate"],
    ["the number of containers", "op: add, path: /spec/template/spec/containers/-, value: {name: b, image: b}"],
    ["a field that the host's admission judges", "op: add, path: /spec/template/spec/hostNetwork, value: true"],
  ])("cannot differ in %s", (_case, operation) => {
    const { objects, gaps, refused } = converted(
      federated({ overrides: `[{clusterName: east, clusterOverrides: [{${operation}}]}]` }),
    );
    expect(annotationsOf(objects[0])).not.toHaveProperty("overrides");
    expect(gaps).toEqual(["FederatedDeployment shop/web: spec.overrides[0].clusterOverrides[0]"]);
    expect(refused).toEqual([]);
  });

  test.each<[string, string, readonly string[]]>([
    ["a StatefulSet, whose pods are numbered", "StatefulSet", ["FederatedStatefulSet shop/web: template"]],
    ["a ReplicaSet", "ReplicaSet", []],
  ])("may be %s", (_case, kind, gaps) => {
    const found = converted(federated({ kind, spec: `replicas: 2, serviceName: web, template: ${TEMPLATE}` }));
    expect(found.objects).toMatchObject([{ kind, spec: { replicas: 4 } }]);
    expect(found.gaps).toEqual(gaps);
    expect(found.refused).toEqual([]);
  });

  test("is left out when it is a DaemonSet", () => {
    const { objects, gaps } = converted(federated({ kind: "DaemonSet" }));
    expect(objects).toEqual([]);
    expect(gaps).toEqual(["FederatedDaemonSet shop/web: kind"]);
  });
});

describe("a ReplicaSchedulingPreference", () => {
  test("gives the workload its number and its division, and chooses the clusters", () => {
    const rsp = preference(
      "targetKind: FederatedDeployment, totalReplicas: 10, rebalance: true, clusters: {west: {weight: 2, maxReplicas: 7}, '*': {weight: 1, minReplicas: 1}}",
    );
    const overrides = "[{clusterName: west, clusterOverrides: [{path: /spec/replicas, value: 9}]}]";
    const { objects, gaps, refused } = converted(federated({ overrides }), rsp);
    expect(objects).toMatchObject([{ spec: { replicas: 10 } }]);
    expect(annotationsOf(objects[0])).toEqual({
      delegate: "true",
      "scheduling-preferences": {
        rebalance: true,
        clusters: { west: { weight: 2, maxReplicas: 7 }, "*": { weight: 1, minReplicas: 1 } },
      },
    });
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test("is a gap without its workload", () => {
    const { objects, gaps } = converted(preference("targetKind: FederatedDeployment, totalReplicas: 9"));
    expect(objects).toEqual([]);
    expect(gaps).toEqual(["ReplicaSchedulingPreference shop/web: spec"]);
  });
});

describe("other federated objects", () => {
  test.each<[string, string, string]>([
    ["ConfigMap", "v1", "data: {a: b}"],
    ["Secret", "v1", "stringData: {a: b}"],
    ["ClusterRole", "rbac.authorization.k8s.io/v1", "rules: []"],
  ])("%s goes to members whole", (kind, apiVersion, body) => {
    const { objects, gaps, steps, refused } = converted(`
apiVersion: types.kubefed.io/v1beta1
kind: Federated${kind}
metadata: {name: all, namespace: shop}
spec: {template: {${body}}, placement: {clusterSelector: {}}}`);
    expect(objects).toMatchObject([{ apiVersion, kind, metadata: { name: "all" } }]);
    expect(annotationsOf(objects[0])).toEqual({ whole: "true" });
    const optIn = kind === "ClusterRole" ? [] : [expect.stringMatching(/^Namespace shop: kubectl label/)];
    expect(steps).toEqual([expect.stringMatching(/DelegatedType|legation install --types/), ...optIn]);
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test.each(["Service", "ServiceAccount", "NetworkPolicy", "Ingress", "HorizontalPodAutoscaler", "ResourceQuota"])(
    "%s stays on the host without annotations",
    (kind) => {
      const { objects, steps } = converted(federated({ kind, spec: "" }));
      expect(objects).toMatchObject([{ kind }]);
      expect(annotationsOf(objects[0])).toEqual({});
      expect(steps).toEqual([expect.stringMatching(new RegExp(`^Federated${kind} shop/web: stays on the host`))]);
    },
  );

  test("a custom resource has the apiVersion of its FederatedTypeConfig", () => {
    const widget = federated({ kind: "Widget", spec: "size: 1" });
    const config = `
apiVersion: core.kubefed.io/v1beta1
kind: FederatedTypeConfig
metadata: {name: widgets.example.com, namespace: kube-federation-system}
spec: {targetType: {group: example.com, version: v1, kind: Widget, pluralName: widgets}, federatedType: {kind: FederatedWidget}}`;
    expect(converted(widget, config).objects).toMatchObject([{ apiVersion: "example.com/v1", kind: "Widget" }]);
    expect(converted(widget)).toMatchObject({ objects: [], gaps: ["FederatedWidget shop/web: spec.template"] });
  });

  test("a namespace is opted in, and limits what is in it", () => {
    const namespace = `
apiVersion: types.kubefed.io/v1beta1
kind: FederatedNamespace
metadata: {name: shop, namespace: shop}
spec: {placement: {clusters: [{name: west}]}}`;
    const { objects, steps } = converted(federated(), namespace);
    expect(objects).toMatchObject([
      { kind: "Namespace", metadata: { name: "shop", labels: { "legation.dev/delegation": "annotated" } } },
      { kind: "Deployment", spec: { replicas: 3 } },
    ]);
    expect(annotationsOf(objects[0])).toEqual({ clusters: "west" });
    expect(annotationsOf(objects[1])).toEqual({ delegate: "true", clusters: "west" });
    expect(steps).toEqual([]);
  });

  test("a KubeFedCluster is to be joined", () => {
    const cluster = `
apiVersion: core.kubefed.io/v1beta1
kind: KubeFedCluster
metadata: {name: west, namespace: kube-federation-system, labels: {region: eu}}
spec: {}`;
    expect(converted(cluster).steps).toEqual([
      "KubeFedCluster kube-federation-system/west: legation join west --member-kubeconfig FILE --labels region=eu",
    ]);
  });

  test("an orphaned object leaves its copies in members", () => {
    const { objects, gaps, refused } = converted(
      federated({ kind: "ConfigMap", spec: "", metadata: ", annotations: {kubefed.io/orphan: 'true'}" }),
    );
    expect(annotationsOf(objects[0])).toEqual({ whole: "true", clusters: "west,east", "on-delete": "orphan" });
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test("fields that make no difference here are told", () => {
    const orphan = federated({ metadata: ", annotations: {kubefed.io/orphan: 'true'}" }).replace(
      "  overrides:",
      "  retainReplicas: true\n  overrides:",
    );
    expect(converted(orphan).gaps).toEqual([
      "FederatedDeployment shop/web: spec.retainReplicas",
      "FederatedDeployment shop/web: metadata.annotations[kubefed.io/orphan]",
    ]);
  });
});

describe("a federated Job", () => {
  const spec = `parallelism: 2, completions: 4, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}`;

  test("runs whole in its cluster", () => {
    const { objects, gaps, refused } = converted(
      federated({ kind: "Job", spec, placement: "clusters: [{name: west}]" }),
    );
    expect(objects).toMatchObject([{ apiVersion: "batch/v1", kind: "Job", spec: { parallelism: 2, completions: 4 } }]);
    expect(annotationsOf(objects[0])).toEqual({ whole: "true", clusters: "west" });
    expect({ gaps, refused }).toEqual({ gaps: [], refused: [] });
  });

  test("loses a selector of its own, which its member chooses", () => {
    const selecting = `manualSelector: true, selector: {matchLabels: {app: web}}, ${spec}`;
    const { objects, gaps, refused } = converted(
      federated({ kind: "Job", spec: selecting, placement: "clusters: [{name: west}]" }),
    );
    expect(objects[0]?.spec).not.toHaveProperty("selector");
    expect(gaps).toEqual(["FederatedJob shop/web: template.spec.manualSelector"]);
    expect(refused).toEqual([]);
  });

  test("of a CronJob is annotated in the Job template", () => {
    const { objects, refused } = converted(
      federated({
        kind: "CronJob",
        spec: `schedule: "@daily", jobTemplate: {spec: {${spec}}}`,
        placement: "clusters: [{name: west}]",
      }),
    );
    expect(objects[0]?.metadata.annotations).toBeUndefined();
    expect(objects[0]?.spec).toMatchObject({
      jobTemplate: { metadata: { annotations: { "legation.dev/whole": "true" } } },
    });
    expect(refused).toEqual([]);
  });
});
