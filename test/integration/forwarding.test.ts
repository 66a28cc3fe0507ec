import { describe, expect, onTestFinished, test } from "vitest";
import type {
  ContainerStatus,
  KubeObject,
  Pod,
  PodCondition,
  PodSpec,
  PodStatus,
  Stored,
} from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { configMaps, events, nodes, pods, type Resource, serviceAccounts } from "../../src/kube/resources.ts";
import { conditionOf } from "../../src/pods/pod-state.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podOf, podThat } from "../support/harness/pods-of.ts";
import { isRefused, refuseWrites } from "../support/harness/refusals.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

useLegation();
const clients = useClients();

const limitRanges: Resource<KubeObject & { spec: object }> = {
  group: "",
  version: "v1",
  plural: "limitranges",
  kind: "LimitRange",
  namespaced: true,
};
const admission = { group: "admissionregistration.k8s.io", version: "v1", namespaced: false } as const;
const mutations: Resource<KubeObject & { spec: object }> = {
  ...admission,
  plural: "mutatingadmissionpolicies",
  kind: "MutatingAdmissionPolicy",
};
const mutationBindings: Resource<KubeObject & { spec: object }> = {
  ...admission,
  plural: "mutatingadmissionpolicybindings",
  kind: "MutatingAdmissionPolicyBinding",
};

const amounts = (cpu: string) => ({ requests: { cpu, memory: "64Mi" }, limits: { cpu, memory: "64Mi" } });

interface Delegated {
  readonly namespace: string;
  readonly ref: { readonly namespace: string; readonly name: string };
  /** Changes the proxy by a strategic merge patch. */
  change(body: object, subresource?: string): Promise<Stored<Pod>>;
  /** Writes the delegate's status, as its kubelet would. */
  asKubelet(status: Partial<PodStatus>): Promise<void>;
}

/** Creates a namespace whose pods are delegated, on the host and in west. */
function optedIn(): Promise<string> {
  const labels = { "legation.dev/delegation": "all" };
  return freshNamespace([hostCluster(), memberCluster("west")], { prefix: "forward", labels });
}

/** Creates a pod that runs in west. */
async function delegated(spec: Partial<PodSpec> = {}, namespace?: string): Promise<Delegated> {
  const ref = { namespace: namespace ?? (await optedIn()), name: "web" };
  const { host, west } = clients();
  await host.create(pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...ref, annotations: { "legation.dev/clusters": "west" } },
    spec: { containers: [{ name: "main", image: "main:1" }], ...spec },
  });
  await podThat(host, ref.namespace, "web", inPhase("Running"));
  const patch = (client: ClusterClient, body: object, subresource?: string): Promise<Stored<Pod>> =>
    client.patch(pods, ref, { type: "strategic", body }, subresource === undefined ? {} : { subresource });
  return {
    namespace: ref.namespace,
    ref,
    change: (body, subresource) => patch(host, body, subresource),
    asKubelet: async (status) => {
      await patch(west, { status }, "status");
    },
  };
}

function delegateThat(namespace: string, holds: (pod: Stored<Pod>) => boolean): Promise<Stored<Pod>> {
  return podThat(clients().west, namespace, "web", holds);
}

function proxyThat(namespace: string, holds: (pod: Stored<Pod>) => boolean): Promise<Stored<Pod>> {
  return podThat(clients().host, namespace, "web", holds);
}

const image = (pod: Pod, name: string): string | undefined =>
  [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].find((each) => each.name === name)?.image;

/** Writes the status of a kubelet that can resize a container with 100m. Returns the status before. */
async function canResize(namespace: string, asKubelet: Delegated["asKubelet"]): Promise<ContainerStatus> {
  const [shown] = (await delegateThat(namespace, inPhase("Running"))).status?.containerStatuses ?? [];
  if (shown === undefined) throw new Error("the delegate has no container status");
  await asKubelet({ containerStatuses: [{ ...shown, resources: amounts("100m") }] });
  await proxyThat(namespace, ({ status }) => status?.containerStatuses?.[0]?.resources?.limits?.cpu === "100m");
  return shown;
}

/** Has all nodes of west declare features, as kubelets do. */
async function declare(declaredFeatures: readonly string[] | null): Promise<void> {
  const { west } = clients();
  const { items } = await west.list(nodes);
  const patch = { type: "merge", body: { status: { declaredFeatures } } } as const;
  for (const { metadata } of items) await west.patch(nodes, { name: metadata.name }, patch, { subresource: "status" });
}

/** Drops attempts on an older version of the delegate, which the member refused with a conflict. */
function withoutConflicts(writes: readonly string[] = []): string[] {
  return writes.filter((write) => !write.endsWith(": 409"));
}

/** Returns a readiness gate's condition as a controller on the host sets it, after kwok has set it in the member. */
function openedNow(type: string): PodCondition {
  return { type, status: "True", reason: "Registered", lastTransitionTime: new Date().toISOString() };
}

describe("a change of a running proxy", () => {
  test("reaches the delegate: images by container name, the deadline, tolerations and debug containers", async () => {
    const sidecar = { name: "sidecar", image: "sidecar:1", restartPolicy: "Always" };
    const { namespace, change } = await delegated({
      containers: [
        { name: "z", image: "z:1" },
        { name: "a", image: "a:1" },
      ],
      initContainers: [{ name: "setup", image: "setup:1" }, sidecar],
    });
    const { spec } = await change({
      spec: {
        activeDeadlineSeconds: 600,
        containers: [{ name: "a", image: "a:2" }],
        initContainers: [{ name: "sidecar", image: "nop" }],
      },
    });
    const tolerations = [...(spec?.tolerations ?? []), { key: "example.com/a", operator: "Exists" }];
    await change({ spec: { tolerations } });
    const debug = [
      "debug",
      "-n",
      namespace,
      "web",
      "--image=tool:1",
      "--container=debugger",
      "--target=a",
      "--",
      "true",
    ];
    await kubectl(hostCluster(), debug);

    const delegate = await delegateThat(namespace, ({ spec }) => (spec?.ephemeralContainers?.length ?? 0) === 1);
    await eventuallyPasses(async () => {
      const { spec: theirs = { containers: [] } } = (await podOf(clients().west, namespace, "web")) ?? {};
      const now: Pod = { spec: theirs };
      expect(["z", "a", "setup", "sidecar"].map((name) => image(now, name))).toEqual(["z:1", "a:2", "setup:1", "nop"]);
      expect(theirs.activeDeadlineSeconds).toBe(600);
      expect(theirs.tolerations).toContainEqual({ key: "example.com/a", operator: "Exists" });
      expect(theirs.ephemeralContainers?.[0]).toMatchObject({
        name: "debugger",
        image: "tool:1",
        command: ["true"],
        targetContainerName: "a",
      });
    });
    expect((await podOf(clients().west, namespace, "web"))?.metadata.uid).toBe(delegate.metadata.uid);
  });

  test("reaches the delegate as an in-place resize, and its progress reaches the host", async () => {
    const { namespace, change, asKubelet } = await delegated({
      containers: [{ name: "main", image: "main:1", resources: amounts("100m") }],
    });
    const shown = await canResize(namespace, asKubelet);
    const { metadata } = await change(
      { spec: { containers: [{ name: "main", resources: amounts("200m") }] } },
      "resize",
    );
    const delegate = await delegateThat(
      namespace,
      ({ spec }) => spec?.containers[0]?.resources?.limits?.cpu === "200m",
    );
    expect(delegate.metadata.generation).toBe(metadata.generation);

    const time = "2026-01-02T03:04:05Z";
    const { generation = 0 } = delegate.metadata;
    const pending = {
      type: "PodResizePending",
      status: "True",
      reason: "Deferred",
      message: "Node didn't have enough resource: cpu",
      lastTransitionTime: time,
      observedGeneration: generation,
    };
    await asKubelet({ conditions: [pending], observedGeneration: generation });
    const waiting = await proxyThat(namespace, (pod) => conditionOf(pod, "PodResizePending") !== undefined);
    expect(conditionOf(waiting, "PodResizePending")).toMatchObject({
      status: "True",
      reason: "Deferred",
      message: pending.message,
      observedGeneration: metadata.generation,
    });
    expect(waiting.status?.observedGeneration).toBe(metadata.generation);

    const progress = { type: "PodResizeInProgress", status: "True", lastTransitionTime: time };
    await clients().west.patch(
      pods,
      { namespace, name: "web" },
      {
        type: "strategic",
        body: { status: { conditions: [{ type: "PodResizePending", $patch: "delete" }, progress] } },
      },
      { subresource: "status" },
    );
    await proxyThat(
      namespace,
      (pod) =>
        conditionOf(pod, "PodResizeInProgress") !== undefined && conditionOf(pod, "PodResizePending") === undefined,
    );

    const resized = { ...shown, resources: amounts("200m"), allocatedResources: amounts("200m").requests };
    await clients().west.patch(
      pods,
      { namespace, name: "web" },
      {
        type: "strategic",
        body: {
          status: { conditions: [{ type: "PodResizeInProgress", $patch: "delete" }], containerStatuses: [resized] },
        },
      },
      { subresource: "status" },
    );
    const done = await proxyThat(namespace, (pod) => conditionOf(pod, "PodResizeInProgress") === undefined);
    expect(done.status?.containerStatuses?.[0]).toMatchObject({
      resources: amounts("200m"),
      allocatedResources: { cpu: "200m", memory: "64Mi" },
    });
  });

  test("reaches the delegate as a resize of the pod as a whole, and the host shows no amounts of before", async () => {
    const feature = "InPlacePodLevelResourcesVerticalScaling";
    await declare([feature]);
    onTestFinished(() => declare(null));
    const { namespace, change, asKubelet } = await delegated({ resources: amounts("100m") });
    await eventuallyPasses(async () => {
      const { status } = await clients().host.get(nodes, { name: "legation-west" });
      expect(status?.declaredFeatures).toContain(feature);
    });
    await canResize(namespace, asKubelet);
    const before: object = { allocatedResources: amounts("100m").requests, resources: amounts("100m") };
    await asKubelet(before);
    await eventuallyPasses(async () =>
      expect((await podOf(clients().host, namespace, "web"))?.status).toMatchObject(before),
    );
    await change({ spec: { resources: amounts("200m") } }, "resize");
    await eventuallyPasses(async () =>
      expect((await podOf(clients().west, namespace, "web"))?.spec?.resources).toEqual(amounts("200m")),
    );

    const lost: object = { memory: null };
    const cpu = { cpu: "200m" };
    const resources: object = { requests: { ...cpu, ...lost }, limits: { ...cpu, ...lost } };
    await asKubelet({ allocatedResources: { ...cpu, ...lost }, resources } as Partial<PodStatus>);
    await eventuallyPasses(async () => {
      const status: Record<string, unknown> = { ...(await podOf(clients().host, namespace, "web"))?.status };
      expect(status.allocatedResources).toEqual(cpu);
      expect(status.resources).toEqual({ requests: cpu, limits: cpu });
    });
  });

  test("changes only its own fields: changes by the member's admission stay, and nothing is written twice", async () => {
    const namespace = await optedIn();
    const limits = [{ type: "Container", defaultRequest: { cpu: "10m" }, default: { memory: "1Gi" } }];
    await clients().west.create(limitRanges, {
      apiVersion: "v1",
      kind: "LimitRange",
      metadata: { namespace, name: "defaults" },
      spec: { limits },
    });
    const { change, asKubelet } = await delegated({}, namespace);
    const [before, proxy] = await Promise.all([
      delegateThat(namespace, inPhase("Running")),
      proxyThat(namespace, inPhase("Running")),
    ]);
    expect([before.status?.qosClass, proxy.status?.qosClass]).toEqual(["Burstable", "BestEffort"]);

    await clients().west.patch(
      pods,
      { namespace, name: "web" },
      {
        type: "strategic",
        body: { spec: { containers: [{ name: "main", image: "mirror.example.com/main:1" }] } },
      },
    );
    await change({ metadata: { labels: { changed: "yes" } }, spec: { activeDeadlineSeconds: 60 } });
    const after = await delegateThat(namespace, ({ spec }) => spec?.activeDeadlineSeconds === 60);
    expect(image(after, "main")).toBe("mirror.example.com/main:1");
    expect(after.spec?.containers[0]?.resources).toEqual(before.spec?.containers[0]?.resources);

    await asKubelet({ conditions: [{ type: "Ready", status: "False", reason: "Seen" }] });
    await proxyThat(namespace, (pod) => conditionOf(pod, "Ready")?.reason === "Seen");
    const inMember = await legationWrites(memberCluster("west"), namespace);
    expect(withoutConflicts(inMember.pods.get("web"))).toEqual(["create pods", "patch pods"]);
    const onHost = await legationWrites(hostCluster(), namespace);
    expect(onHost.pods.get("web")?.filter((write) => write !== "patch pods/status")).toEqual(["create pods/binding"]);
    expect(onHost.pods.get("web")?.length).toBeLessThanOrEqual(4);
  });

  test("reaches a delegate that waits for a node: an added toleration lets it go on", async () => {
    const namespace = await optedIn();
    const west = memberCluster("west");
    const taint = "example.com/pool=reserved:NoSchedule";
    const { items } = await clients().west.list(nodes);
    const [free = "", ...reserved] = items.map(({ metadata }) => metadata.name);
    onTestFinished(async () => {
      await kubectl(west, ["taint", "nodes", ...reserved, `${taint}-`]);
    });
    await kubectl(west, ["taint", "nodes", ...reserved, taint]);
    // The host expects the pod to fit the one node left; its port is taken there.
    const ports = [{ containerPort: 80, hostPort: 8080 }];
    const spec = { containers: [{ name: "main", image: "main:1", ports }] };
    const ref = { namespace, name: "web" };
    await clients().west.create(pods, { metadata: { namespace, name: "first" }, spec: { ...spec, nodeName: free } });
    await clients().host.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...ref, annotations: { "legation.dev/clusters": "west" } },
      spec,
    });
    const waiting = await proxyThat(namespace, (pod) => whyNotPlaced(pod) !== undefined);
    const tolerations = [...(waiting.spec?.tolerations ?? []), { key: "example.com/pool", operator: "Exists" }];
    await clients().host.patch(pods, ref, { type: "strategic", body: { spec: { tolerations } } });
    await proxyThat(namespace, inPhase("Running"));
    const writes = (await legationWrites(west, namespace)).pods.get("web");
    expect(withoutConflicts(writes)).toEqual(["create pods", "patch pods"]);
  });

  test("keeps a condition that was set on the host, whatever the delegate reports", async () => {
    const { namespace, change, asKubelet } = await delegated();
    const own = { type: "example.com/checked", status: "True", reason: "ByAudit" };
    await change({ status: { conditions: [own] } }, "status");
    const theirs = { type: own.type, status: "False", reason: "ByMember" };
    await asKubelet({ conditions: [{ type: "Ready", status: "False", reason: "ContainersNotReady" }, theirs] });
    const proxy = await proxyThat(namespace, (pod) => conditionOf(pod, "Ready")?.status === "False");
    expect(conditionOf(proxy, own.type)).toMatchObject(own);
    expect(conditionOf((await podOf(clients().west, namespace, "web")) ?? {}, own.type)).toMatchObject(theirs);
  });

  test("opens a readiness gate in the member, and shuts it when the condition is removed", async () => {
    const { namespace, change, asKubelet } = await delegated({
      readinessGates: [{ conditionType: "example.com/registered" }],
    });
    const gate = openedNow("example.com/registered");
    await change({ status: { conditions: [gate] } }, "status");
    await delegateThat(namespace, (pod) => conditionOf(pod, gate.type)?.reason === gate.reason);
    await change({ status: { conditions: [{ type: gate.type, $patch: "delete" }] } }, "status");
    await delegateThat(namespace, (pod) => conditionOf(pod, gate.type) === undefined);
    const seen = { type: "example.com/seen", status: "True" };
    await asKubelet({ conditions: [seen] });
    const proxy = await proxyThat(namespace, (pod) => conditionOf(pod, seen.type) !== undefined);
    expect(conditionOf(proxy, gate.type)).toBeUndefined();
    // A condition that only the member has set goes with it.
    const withdrawn = { type: seen.type, $patch: "delete" };
    await asKubelet({ conditions: [withdrawn as object as typeof seen] });
    await proxyThat(namespace, (pod) => conditionOf(pod, seen.type) === undefined);
  });
});

describe("a change that the member refuses", () => {
  /** Makes the member refuse pods for which the expression is false. */
  async function policy(namespace: string, resource: string, expression: string): Promise<void> {
    await refuseWrites(clients().west, { namespace, resource, operation: "UPDATE", expression });
  }

  /** Waits until the policy applies to the change in `body`. */
  function inForce(namespace: string, body: object, subresource?: string): Promise<void> {
    const options = { dryRun: true, ...(subresource === undefined ? {} : { subresource }) };
    return isRefused(() =>
      clients().west.patch(pods, { namespace, name: "web" }, { type: "strategic", body }, options),
    );
  }

  const debuggers = { spec: { ephemeralContainers: [{ name: "debugger", image: "tool:1" }] } };
  const other = { spec: { containers: [{ name: "main", image: "forbidden:1" }] } };
  const larger = { spec: { containers: [{ name: "main", resources: amounts("200m") }] } };

  test.each([
    ["a debug container", "pods/ephemeralcontainers", debuggers, "ephemeralcontainers", "the ephemeral containers"],
    ["an image", "pods", other, undefined, "the changed spec"],
    ["a resize", "pods/resize", larger, "resize", "the changed resources"],
  ])("has one event when it is %s, and later changes are forwarded", async (_, resource, body, subresource, what) => {
    const resources = amounts("100m");
    const { namespace, change, asKubelet } = await delegated({
      containers: [{ name: "main", image: "main:1", resources }],
    });
    if (subresource === "resize") await canResize(namespace, asKubelet);
    await policy(
      namespace,
      resource,
      "!has(object.spec.ephemeralContainers) && " +
        "object.spec.containers.all(c, c.image != 'forbidden:1' && c.resources.requests['cpu'] != '200m')",
    );
    await inForce(namespace, body, subresource);
    await change(body, subresource);
    const told = async (): Promise<string[]> => {
      const { items } = await clients().host.list(events, { namespace, fieldSelector: "involvedObject.name=web" });
      return items.filter(({ reason }) => reason === "NotForwarded").map(({ message = "" }) => message);
    };
    await eventually(async () => (await told()).length > 0, { what: "the event" });
    await change({ metadata: { labels: { changed: "yes" } } });
    await delegateThat(namespace, ({ metadata }) => metadata.labels?.changed === "yes");
    if (subresource === "resize") {
      const proxy = await proxyThat(namespace, (pod) => conditionOf(pod, "PodResizePending") !== undefined);
      expect(conditionOf(proxy, "PodResizePending")).toMatchObject({ status: "True", reason: "Infeasible" });
    }
    const [message, ...more] = await told();
    expect(message).toContain(`Cluster west did not take ${what}: `);
    expect(message).toContain("not in this cluster");
    expect(more).toEqual([]);
    const writes = (await legationWrites(memberCluster("west"), namespace)).pods.get("web") ?? [];
    expect(withoutConflicts(writes).filter((write) => write.includes("4"))).toHaveLength(1);
  });

  test("holds up neither an image nor a readiness gate when it is a label", async () => {
    const { namespace, change } = await delegated({ readinessGates: [{ conditionType: "example.com/registered" }] });
    const gate = openedNow("example.com/registered");
    await policy(namespace, "pods", "!('forbidden' in object.metadata.labels)");
    const labels = { forbidden: "yes" };
    await inForce(namespace, { metadata: { labels } });
    await change({ metadata: { labels } });
    await change({ spec: { containers: [{ name: "main", image: "main:2" }] } });
    await change({ status: { conditions: [gate] } }, "status");
    const delegate = await delegateThat(
      namespace,
      (pod) => image(pod, "main") === "main:2" && conditionOf(pod, gate.type)?.reason === gate.reason,
    );
    expect(delegate.metadata.labels).not.toHaveProperty("forbidden");
  });

  test("is not repeated for ever when it is a label that the member's admission sets back", async () => {
    const { west } = clients();
    const { namespace, change, asKubelet } = await delegated();
    const name = `set-back-${namespace}`;
    onTestFinished(async () => {
      await west.delete(mutationBindings, { name });
      await west.delete(mutations, { name });
    });
    await west.create(mutations, {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: mutations.kind,
      metadata: { name },
      spec: {
        failurePolicy: "Fail",
        reinvocationPolicy: "Never",
        matchConstraints: {
          resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["UPDATE"] }],
        },
        mutations: [
          {
            patchType: "ApplyConfiguration",
            applyConfiguration: {
              expression: 'Object{metadata: Object.metadata{labels: {"team": "member"}}}',
            },
          },
        ],
      },
    });
    const selector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
    await west.create(mutationBindings, {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: mutationBindings.kind,
      metadata: { name },
      spec: { policyName: name, matchResources: { namespaceSelector: selector } },
    });
    const tryIt = { type: "merge", body: { metadata: { labels: { tried: "yes" } } } } as const;
    await eventually(
      async () => {
        const { metadata } = await west.patch(pods, { namespace, name: "web" }, tryIt, { dryRun: true });
        return metadata.labels?.team === "member";
      },
      { what: "the member's admission" },
    );
    await change({ metadata: { labels: { team: "host", other: "yes" } } });
    await delegateThat(namespace, ({ metadata }) => metadata.labels?.other === "yes");
    for (const reason of ["A", "B", "C"]) {
      await asKubelet({ conditions: [{ type: "example.com/seen", status: "True", reason }] });
      await proxyThat(namespace, (pod) => conditionOf(pod, "example.com/seen")?.reason === reason);
    }
    expect((await podOf(west, namespace, "web"))?.metadata.labels?.team).toBe("member");
    const writes = (await legationWrites(memberCluster("west"), namespace)).pods.get("web") ?? [];
    // The create, the change, and one attempt more for each version of the delegate.
    expect(withoutConflicts(writes).length).toBeLessThanOrEqual(2 + 4);
  });
});

describe("what is at the limits of the API server", () => {
  const many = (prefix: string, count: number): Record<string, string> =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`${"d".repeat(50)}.example.com/${prefix}-${index}`, "v"]),
    );
  const labels = many("label", 2000);
  // Legation's own fit beside them.
  const annotations = { ...many("note", 1000), large: "x".repeat(170_000) };
  const gone = Object.keys(labels)[7] ?? "";
  const lost = Object.keys(annotations)[7] ?? "";

  test("is delegated and copied, and follows the removal of a key", async () => {
    const { host, west } = clients();
    const namespace = await optedIn();
    const ref = { namespace, name: "web" };
    await host.create(configMaps, { metadata: { namespace, name: "settings", labels, annotations }, data: { a: "b" } });
    await host.create(serviceAccounts, { metadata: { namespace, name: "worker", labels, annotations } });
    const containers = Array.from({ length: 20 }, (_, index) => ({
      name: `${"c".repeat(60)}${String(index).padStart(3, "0")}`,
      image: "main:1",
      envFrom: [{ configMapRef: { name: "settings" } }],
    }));
    await host.create(pods, {
      metadata: { ...ref, labels, annotations: { ...annotations, "legation.dev/clusters": "west" } },
      spec: { serviceAccountName: "worker", automountServiceAccountToken: false, containers },
    });
    await proxyThat(namespace, inPhase("Running"));
    const theirs = { metadata: { labels: { theirs: "1" }, annotations: { theirs: "1" } } };
    const change = { metadata: { labels: { [gone]: null, added: "1" }, annotations: { [lost]: null } } };
    const resources: readonly Resource<KubeObject>[] = [pods, configMaps, serviceAccounts];
    for (const resource of resources) {
      const { name } = resource === pods ? ref : { name: resource === configMaps ? "settings" : "worker" };
      const there = await west.get(resource, { namespace, name });
      expect(Object.keys(there.metadata.labels ?? {})).toEqual(expect.arrayContaining(Object.keys(labels)));
      await west.patch(resource, { namespace, name }, { type: "merge", body: theirs }, { fieldManager: "tool" });
      await host.patch(resource, { namespace, name }, { type: "merge", body: change });
      await eventuallyPasses(
        async () => {
          const { metadata } = await west.get(resource, { namespace, name });
          const { labels: now = {}, annotations: notes = {} } = metadata;
          expect([now.added, now.theirs, notes.theirs]).toEqual(["1", "1", "1"]);
          expect([now[gone], notes[lost]]).toEqual([undefined, undefined]);
          expect(Object.keys(now).filter((key) => key in labels)).toHaveLength(1999);
        },
        { timeoutMs: 60_000 },
      );
    }
    const next = containers.map(({ name }, index) => ({ name, image: index === 19 ? "main:2" : "main:1" }));
    await host.patch(pods, ref, { type: "strategic", body: { spec: { containers: next.slice(19) } } });
    await delegateThat(namespace, ({ spec }) => spec?.containers.at(19)?.image === "main:2");
  });

  test("is refused at once where it leaves no room for Legation's own annotations", async () => {
    const namespace = await optedIn();
    const full = { metadata: { namespace, name: "full", annotations: { large: "x".repeat(256 * 1024 - 100) } } };
    const created = clients().host.create(pods, { ...full, spec: { containers: [{ name: "main", image: "main:1" }] } });
    await expect(created).rejects.toThrow("those of a delegated pod may take 258048");
  });
});
