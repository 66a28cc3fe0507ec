import { describe, expect, test } from "vitest";
import { COPY_LABEL, FORWARDED_ANNOTATION, HOST_LABEL, OWNER_ANNOTATION, PROXY_LABEL } from "../../../src/api/keys.ts";
import { madeByHost, ownerOf, toDelegate } from "../../../src/pods/delegate.ts";
import { proxyPod } from "../../support/builders/pod.ts";

const host = { id: "host-id", name: "cern" };

describe("a delegate", () => {
  test("has the proxy's name, namespace, labels and annotations, and an owner annotation", () => {
    const proxy = proxyPod({
      metadata: { labels: { app: "web" }, annotations: { note: "kept" }, generateName: "web-" },
    });
    const { metadata } = toDelegate(proxy, host);
    expect(metadata).toEqual({
      name: "web-0",
      namespace: "team",
      generateName: "web-",
      labels: { app: "web", [HOST_LABEL]: "host-id" },
      annotations: {
        note: "kept",
        [OWNER_ANNOTATION]: '{"cluster":"cern","kind":"Pod","namespace":"team","name":"web-0","uid":"uid-1"}',
        [FORWARDED_ANNOTATION]:
          '{"labels":["app"],"annotations":["note"],"conditions":[],"spec":{"image/main":"qiht01"}}',
      },
    });
  });

  test.each([
    ["the proxy label", { metadata: { labels: { [PROXY_LABEL]: "true" } } }],
    ["zone labels of the virtual node", { metadata: { labels: { "topology.kubernetes.io/zone": "virtual" } } }],
    ["a copy's label", { metadata: { labels: { [COPY_LABEL]: "true" } } }],
    ["a forged host label", { metadata: { labels: { [HOST_LABEL]: "other" } } }],
  ])("does not have %s", (_, parts) => {
    expect(toDelegate(proxyPod(parts), host).metadata?.labels).toEqual({ [HOST_LABEL]: "host-id" });
  });

  test("has no owner references and finalizers of the host", () => {
    const ownerReferences = [{ apiVersion: "batch/v1", kind: "Job", name: "j", uid: "u", controller: true }];
    const proxy = proxyPod({ metadata: { ownerReferences, finalizers: ["batch.kubernetes.io/job-tracking"] } });
    const { metadata } = toDelegate(proxy, host);
    expect(metadata).not.toHaveProperty("ownerReferences");
    expect(metadata).not.toHaveProperty("finalizers");
  });

  test("has no labels and annotations of the host's queue", () => {
    const labels = { "kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": "team", app: "web" };
    const annotations = { "kueue.x-k8s.io/pod-suspending-parent": "job", note: "kept" };
    const admitted = toDelegate(proxyPod({ metadata: { labels, annotations } }), host).metadata;
    expect(admitted?.labels).toEqual({ app: "web", [HOST_LABEL]: "host-id" });
    expect(Object.keys(admitted?.annotations ?? {})).not.toContain("kueue.x-k8s.io/pod-suspending-parent");
    // Pods of a Job are not queued one by one, and say no more than that it was admitted.
    const ofJob = { "kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/tas": "true", app: "web" };
    const queued = toDelegate(proxyPod({ metadata: { labels: ofJob } }), host).metadata;
    expect(queued?.labels).toEqual({ app: "web", [HOST_LABEL]: "host-id" });
    // A host without Kueue: the author means the member's.
    const { "kueue.x-k8s.io/managed": _, ...unmanaged } = labels;
    const sent = toDelegate(proxyPod({ metadata: { labels: unmanaged, annotations } }), host).metadata;
    expect(sent?.labels).toMatchObject(unmanaged);
  });

  test("has no admission annotations of the host's OpenShift, but the author's required constraint", () => {
    const annotations = {
      "openshift.io/scc": "restricted-v2",
      "security.openshift.io/validated-scc-subject-type": "user",
      "openshift.io/required-scc": "nonroot-v2",
    };
    const delegate = toDelegate(proxyPod({ metadata: { annotations } }), host);
    expect(Object.keys(delegate.metadata?.annotations ?? {})).toEqual([
      "openshift.io/required-scc",
      OWNER_ANNOTATION,
      FORWARDED_ANNOTATION,
    ]);
  });

  test("is safe to evict where the host's autoscaler would evict its proxy", () => {
    const key = "cluster-autoscaler.kubernetes.io/safe-to-evict";
    const moved = (apiVersion: string, kind: string, parts: { annotations?: object; spec?: object } = {}): unknown => {
      const ownerReferences = [{ apiVersion, kind, name: "web", uid: "u", controller: true }];
      const metadata = { ownerReferences, annotations: { ...parts.annotations } };
      return toDelegate(proxyPod({ metadata, spec: { ...parts.spec } }), host).metadata?.annotations?.[key];
    };
    expect(moved("apps/v1", "ReplicaSet")).toBe("true");
    expect(moved("apps/v1", "ReplicaSet", { annotations: { [key]: "false" } })).toBe("false");
    expect(moved("apps/v1", "ReplicaSet", { spec: { volumes: [{ name: "cache", emptyDir: {} }] } })).toBeUndefined();
    expect(moved("argoproj.io/v1alpha1", "Workflow")).toBeUndefined();
  });

  test.each([
    ["node name", { nodeName: "legation-west" }],
    ["resolved priority", { priority: 0, preemptionPolicy: "PreemptLowerPriority" }],
    ["runtime class overhead", { overhead: { cpu: "1" } }],
    ["Legation's scheduler name", { schedulerName: "legation" }],
    ["deprecated service account alias", { serviceAccount: "default" }],
    ["default tolerations", { tolerations: defaultTolerations() }],
  ])("leaves the %s to the member", (_, spec) => {
    const { tolerations, ...rest } = toDelegate(proxyPod({ spec }), host).spec ?? {};
    expect(rest).toEqual({ containers: [{ name: "main", image: "busybox" }] });
    expect(tolerations ?? []).toEqual([]);
  });

  test("keeps the author's scheduler, classes, tolerations and unknown fields", () => {
    const toleration = { key: "gpu", operator: "Exists", effect: "NoSchedule" };
    const spec = {
      priorityClassName: "high",
      runtimeClassName: "kata",
      serviceAccountName: "runner",
      tolerations: [toleration, ...defaultTolerations()],
      fieldOfTheFuture: { kept: true },
    };
    const annotations = { "legation.dev/scheduler-name": "volcano" };
    const delegate = toDelegate(proxyPod({ spec, metadata: { annotations } }), host);
    expect(delegate.spec).toMatchObject({ ...spec, tolerations: [toleration], schedulerName: "volcano" });
    expect(delegate.metadata?.annotations).not.toHaveProperty("legation.dev/scheduler-name");
  });

  test("keeps tolerations of overrides, and drops those of virtual nodes", () => {
    const gpu = { key: "gpu", operator: "Exists" };
    const lost = {
      key: "node.kubernetes.io/not-ready",
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 300,
    };
    const proxy = proxyPod({ spec: { tolerations: [lost] } });
    const overridden = { containers: [], ...proxy.spec, tolerations: [lost, gpu] };
    expect(toDelegate(proxy, host, { mode: "none" }, overridden).spec?.tolerations).toEqual([gpu]);
  });

  test("drops the host's API access volume with its mounts, and keeps the author's volumes", () => {
    const token = {
      name: "kube-api-access-x2x4z",
      projected: { sources: [{ serviceAccountToken: { path: "token" } }] },
    };
    const mount = { name: token.name, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true };
    const data = { name: "data", emptyDir: {} };
    const dataMount = { name: "data", mountPath: "/data" };
    const proxy = proxyPod({
      spec: {
        volumes: [data, token],
        containers: [{ name: "main", volumeMounts: [dataMount, mount] }],
        initContainers: [{ name: "init", volumeMounts: [mount] }],
      },
    });
    const { volumes, containers, initContainers } = toDelegate(proxy, host).spec ?? {};
    expect(volumes).toEqual([data]);
    expect(containers).toEqual([{ name: "main", volumeMounts: [dataMount] }]);
    expect(initContainers).toEqual([{ name: "init" }]);
  });
});

describe("the owner annotation", () => {
  test("names the proxy of the delegate", () => {
    const delegate = toDelegate(proxyPod(), host);
    expect(ownerOf(delegate)).toEqual({ cluster: "cern", kind: "Pod", namespace: "team", name: "web-0", uid: "uid-1" });
    expect(madeByHost(delegate, "host-id")).toBe(true);
    expect(madeByHost(delegate, "another-host")).toBe(false);
  });

  test.each([
    ["no kind, as 0.1 wrote it, names a proxy", undefined, true],
    ["the kind of another type is carried over by a client of the member: the pod is no delegate", "ConfigMap", false],
  ])("with %s", (_, kind, expected) => {
    const { metadata = {}, ...delegate } = toDelegate(proxyPod(), host);
    const owner = JSON.stringify({ ...ownerOf({ metadata }), kind });
    const annotations = { ...metadata.annotations, [OWNER_ANNOTATION]: owner };
    expect(madeByHost({ ...delegate, metadata: { ...metadata, annotations } }, "host-id")).toBe(expected);
  });

  test.each(["name", "namespace"])(
    "of another %s is carried over by a client of the member: the pod is no delegate",
    (field) => {
      const { metadata = {}, ...delegate } = toDelegate(proxyPod(), host);
      expect(madeByHost({ ...delegate, metadata: { ...metadata, [field]: "other" } }, "host-id")).toBe(false);
    },
  );

  test.each(["", "{", "null", "[]", '"text"', '{"cluster":"c"}', '{"cluster":1,"namespace":"n","name":"n","uid":"u"}'])(
    "with the value %j names no owner",
    (text) => {
      const object = { metadata: { labels: { [HOST_LABEL]: "host-id" }, annotations: { [OWNER_ANNOTATION]: text } } };
      expect(ownerOf(object)).toBeUndefined();
      expect(madeByHost(object, "host-id")).toBe(false);
    },
  );
});

function defaultTolerations(): { key: string; operator: string; effect: string; tolerationSeconds: number }[] {
  return ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map((key) => ({
    key,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: 300,
  }));
}
