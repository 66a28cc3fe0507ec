import { describe, expect, test } from "vitest";
import type { Namespace, Stored } from "../../../../src/api/kubernetes.ts";
import type { DryRunAnswer } from "../../../../src/cli/plan/dry-run.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { endedStatus, proxyPod } from "../../../support/builders/pod.ts";
import { host, type MemberParts, namespace } from "../simulation/host.ts";
import { deployment, division, plan, planWithNamespaces, whyNot } from "./plan-with.ts";

const preferences = (clusters: object): Record<string, string> => ({
  "legation.dev/scheduling-preferences": JSON.stringify({ clusters }),
});

describe("the place of a Deployment's replicas", () => {
  test("is divided evenly by the members' size", async () => {
    const planned = await plan(host({ east: {}, west: {} }), deployment(4));
    expect(planned).toMatchObject({ fits: true, guesses: [] });
    expect(planned.workloads[0]).toMatchObject({ kind: "Deployment", namespace: "team", name: "web", outcome: "fits" });
    expect(division(planned)).toEqual({ east: 2, west: 2 });
    expect(planned.workloads[0]?.pods.map(({ name, cluster }) => [name, cluster])).toEqual([
      ["web-planned-*0", "east"],
      ["web-planned-*1", "west"],
      ["web-planned-*2", "east"],
      ["web-planned-*3", "west"],
    ]);
  });

  test("follows the scheduling preferences", async () => {
    const annotations = preferences({ west: { weight: 3 }, "*": { weight: 1, maxReplicas: 2 } });
    const planned = await plan(host({ east: {}, west: {}, north: {} }), deployment(10, annotations));
    expect(division(planned)).toEqual({ east: 2, north: 2, west: 6 });
    expect(whyNot(planned, "east")).toContain("west is better by legation.dev/scheduling-preferences");
  });

  test("is in no member that refuses them, and names each reason", async () => {
    const members: Record<string, MemberParts> = {
      cordoned: { node: { unschedulable: true } },
      forbidden: { spec: { namespaceSelector: { matchLabels: { team: "gold" } } } },
      limited: { spec: { limits: { total: { cpu: "500m" } } } },
      lost: {
        status: {
          conditions: [{ type: "Ready", status: "False", reason: "R", message: "it hangs", lastTransitionTime: "x" }],
        },
      },
      nodeless: {
        status: {
          conditions: [
            { type: "Ready", status: "False", reason: "NodeRefused", message: "m", lastTransitionTime: "x" },
          ],
        },
      },
      unreadable: {
        status: {
          conditions: [
            {
              type: "Ready",
              status: "False",
              reason: "ProbeFailed",
              message: "its pods cannot be read: forbidden",
              lastTransitionTime: "x",
            },
          ],
        },
      },
      small: {
        status: { largestNode: { cpu: "500m", pods: "10" }, allocatable: { cpu: "4", pods: "10" }, nodeKinds: [] },
      },
      tainted: { spec: { taints: [{ key: "team", value: "gold", effect: "NoSchedule" }] } },
      unknown: { status: { conditions: [] } },
      west: {},
    };
    const planned = await plan(host(members), deployment(2));
    expect(planned.fits).toBe(true);
    const reasons = planned.workloads[0]?.clusters.map(({ cluster, whyNot: why }) => [cluster, why[0]?.message]);
    expect(Object.fromEntries(reasons ?? [])).toEqual({
      cordoned: "its virtual node is cordoned",
      forbidden: "its namespaceSelector does not admit namespace team",
      limited: "its limit of cpu: 1 requested, 500m of 500m left",
      lost: "it is not ready: it hangs",
      nodeless: "the host has no virtual node for it; if this lasts, its Cluster's condition Ready says why",
      small: "cpu: 1 requested, the largest node has 500m",
      tainted: "the pod does not tolerate its taint team=gold:NoSchedule",
      unknown: "no controller has reported on it: does `legation controller` run?",
      unreadable: "it is not ready: its pods cannot be read: forbidden",
      west: undefined,
    });
  });

  test("follows a spread over a label up to its maxSkew", async () => {
    const spread = JSON.stringify([{ topologyKey: "region" }]);
    const members = {
      east: { labels: { region: "us" } },
      west: { labels: { region: "eu" }, status: { allocatable: { cpu: "1", pods: "220", memory: "64Gi" } } },
    };
    const planned = await plan(host(members), deployment(4, { "legation.dev/cluster-spread": spread }));
    expect(planned.fits).toBe(false);
    expect(division(planned)).toEqual({ east: 2, west: 1 });
    expect(planned.workloads[0]).toMatchObject({ outcome: "waits" });
    expect(planned.workloads[0]?.pods[3]).toMatchObject({
      waitsIn: "west",
      reason: "NotPlaced",
      message:
        "east: one more pod would be too many: region=us has 2, the fewest is 1, and maxSkew is 1; west: cpu: 1 requested, 0 left",
    });
  });

  test("is none when no member may have them, in the words of their condition", async () => {
    const planned = await plan(host({ east: {} }), deployment(1, { "legation.dev/clusters": "west" }));
    expect(planned.workloads[0]?.pods).toEqual([
      {
        name: "web-planned-*0",
        reason: "NotPlaced",
        message: "east: not named by legation.dev/clusters; west: no Cluster of that name has joined",
      },
    ]);
    expect(whyNot(planned, "west")).toEqual(["no Cluster of that name has joined"]);
  });

  test("needs a node that the pod selects", async () => {
    const ssd = await plan(host({ west: {} }), deployment(1, {}, { nodeSelector: { disk: "ssd" } }));
    expect(ssd.fits).toBe(true);
    const hdd = await plan(host({ west: {} }), deployment(1, {}, { nodeSelector: { disk: "hdd" } }));
    expect(whyNot(hdd, "west")).toEqual(["none of its 2 nodes is one that the pod selects"]);
    const named = await plan(
      host({ west: {} }),
      deployment(1, {}, { nodeSelector: { "kubernetes.io/hostname": "n1" } }),
    );
    expect(named).toMatchObject({
      fits: true,
      guesses: [{ cluster: "west", message: expect.stringContaining("label kubernetes.io/hostname of nodes") }],
    });
  });

  test("is a guess where the host does not know the nodes", async () => {
    const { guesses } = await plan(host({ west: { status: { nodeKinds: [] } } }), deployment(1));
    expect(guesses).toEqual([{ cluster: "west", message: expect.stringContaining("what its nodes are like") }]);
  });

  test("is a guess where a pod needs the host's API server and the Cluster has no homeAPI", async () => {
    const insisting = deployment(1, { "legation.dev/api": "host" });
    const { guesses } = await plan(host({ west: {} }), insisting);
    expect(guesses).toEqual([{ cluster: "west", message: expect.stringContaining("has no spec.homeAPI") }]);
    const told = { west: { spec: { homeAPI: { server: "https://10.0.0.1:6443" } } } };
    expect((await plan(host(told), insisting)).guesses).toEqual([]);
  });

  test("names the override that fails", async () => {
    const overrides = [{ clusters: ["west"], patch: [{ op: "remove", path: "/spec/priorityClassName" }] }];
    const planned = await plan(
      host({ east: {}, west: {} }),
      deployment(2, { "legation.dev/overrides": JSON.stringify(overrides) }),
    );
    expect(division(planned)).toEqual({ east: 2, west: 0 });
    expect(whyNot(planned, "west")).toEqual([
      "legation.dev/overrides: [0].patch[0]: remove /spec/priorityClassName: the pod has nothing there",
    ]);
  });

  test("is in no member whose override changes the host's tokens", async () => {
    const volume = (name: string, audience: string): object => ({
      name,
      projected: { sources: [{ serviceAccountToken: { path: "token", audience } }] },
    });
    const patch = [{ op: "add", path: "/spec/volumes/0", value: volume("vault", "vault") }];
    const overrides = { "legation.dev/overrides": JSON.stringify([{ clusters: ["west"], patch }]) };
    const spec = { volumes: [volume("api", "")] };
    const planned = await plan(host({ east: {}, west: {} }), deployment(2, overrides, spec));
    expect(whyNot(planned, "west")).toEqual([
      "legation.dev/overrides: a patch changes the service account tokens that the pod mounts, which are the host's",
    ]);
    const own = deployment(2, { ...overrides, "legation.dev/api": "member" }, spec);
    expect(division(await plan(host({ east: {}, west: {} }), own))).toEqual({ east: 1, west: 1 });
  });

  test("counts running and waiting pods, and no finished ones", async () => {
    const spec = { containers: [{ name: "main", resources: { requests: { cpu: "7" } } }] };
    const proxies = [
      proxyPod({ name: "a", uid: "a", spec: { ...spec, nodeName: "legation-east" } }),
      proxyPod({ name: "b", uid: "b", spec: { ...spec, nodeName: "legation-west" }, status: endedStatus(0) }),
      proxyPod({ name: "c", uid: "c", spec, metadata: { annotations: { "legation.dev/clusters": "east" } } }),
    ];
    const planned = await plan(host({ east: {}, west: {} }, { proxies }), deployment(8));
    expect(division(planned)).toEqual({ east: 0, west: 8 });
    expect(whyNot(planned, "east")).toEqual([
      "west has more room: with the pod it would be 50 % full, and this member 94 %",
    ]);
  });

  test("follows the namespace's annotations and PlacementDefaults", async () => {
    const defaults = [
      {
        metadata: { name: "default", uid: "d", resourceVersion: "1" },
        spec: { clusterSelector: { matchLabels: { tier: "gold" } } },
      },
    ];
    const members = { east: { labels: { tier: "gold" } }, west: {} };
    expect(division(await plan(host(members, { defaults }), deployment(2)))).toEqual({ east: 2, west: 0 });
    const namespaces = [
      namespace("team", {
        labels: { "legation.dev/delegation": "all" },
        annotations: { "legation.dev/cluster-selector": "tier!=gold" },
      }),
    ];
    expect(division(await plan(host(members, { defaults, namespaces }), deployment(2)))).toEqual({ east: 0, west: 2 });
  });

  test("is one member for a whole group", async () => {
    const grouped = { "legation.dev/group": "flow" };
    const other = { ...deployment(1, grouped), metadata: { ...deployment(1, grouped).metadata, name: "other" } };
    const planned = await plan(host({ east: {}, west: {} }), deployment(3, grouped), other);
    expect(planned.workloads.flatMap(({ pods }) => pods.map(({ cluster }) => cluster))).toEqual(Array(4).fill("east"));
    expect(whyNot(planned, "west")).toContain("group flow runs in east");
  });
});

describe("pods of", () => {
  const template = {
    metadata: { annotations: { "legation.dev/delegate": "true" } },
    spec: { containers: [{ name: "main" }] },
  };
  const workload = (apiVersion: string, kind: string, spec: object): WrittenObject => ({
    apiVersion,
    kind,
    metadata: { name: "web" },
    spec: { template, ...spec },
  });

  test.each<[string, WrittenObject, string[], string[]]>([
    ["ReplicaSet", workload("apps/v1", "ReplicaSet", { replicas: 2 }), ["web-*0", "web-*1"], []],
    ["ReplicationController", workload("v1", "ReplicationController", { replicas: 1 }), ["web-*0"], []],
    ["StatefulSet", workload("apps/v1", "StatefulSet", { replicas: 2 }), ["web-0", "web-1"], []],
    [
      "Job of more than come at once",
      workload("batch/v1", "Job", { parallelism: 2, completions: 5 }),
      ["web-*0", "web-*1"],
      ["3 more pods come as those end"],
    ],
    ["Job of fewer", workload("batch/v1", "Job", { parallelism: 5, completions: 1 }), ["web-*0"], []],
    ["indexed Job", workload("batch/v1", "Job", { completionMode: "Indexed", completions: 1 }), ["web-0-*"], []],
    [
      "CronJob",
      workload("batch/v1", "CronJob", { schedule: "@daily", jobTemplate: { spec: { parallelism: 2, template } } }),
      ["web-planned-*0", "web-planned-*1"],
      ["for one run of it"],
    ],
    [
      "Pod",
      { apiVersion: "v1", kind: "Pod", ...template, metadata: { name: "web", ...template.metadata } },
      ["web"],
      [],
    ],
  ])("%s", async (_, object, names, notes) => {
    const { workloads } = await plan(host({ west: {} }), object);
    expect(workloads[0]?.pods.map(({ name }) => name)).toEqual(names);
    expect(workloads[0]).toMatchObject({ outcome: "fits", notes });
  });

  test("bare pods of one generateName are planned one by one", async () => {
    const generated = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { generateName: "d-", ...template.metadata },
      spec: { containers: [{ name: "main", resources: { requests: { cpu: "6" } } }] },
    };
    const { workloads, fits } = await plan(host({ west: {} }), generated, generated, generated);
    expect(workloads.map(({ name, outcome }) => [name, outcome])).toEqual([
      ["d-*", "fits"],
      ["d-*2", "fits"],
      ["d-*3", "waits"],
    ]);
    expect(fits).toBe(false);
  });

  test("a DaemonSet stay on the host, and a Service has none", async () => {
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "web" } };
    const daemons = { ...template, metadata: { labels: { app: "web" } } };
    const { workloads, fits } = await plan(host({}), workload("apps/v1", "DaemonSet", { template: daemons }), service);
    expect(workloads).toMatchObject([{ kind: "DaemonSet", outcome: "notDelegated" }]);
    expect(fits).toBe(true);
  });
});

describe("a refused or not delegated object", () => {
  test("is refused in the webhook's words for an invalid annotation", async () => {
    const planned = await plan(host({ west: {} }), deployment(1, { "legation.dev/clusters": "West" }));
    expect(planned).toMatchObject({ fits: false, workloads: [{ outcome: "refused", pods: [] }] });
    expect(planned.workloads[0]?.message).toContain(
      'metadata: annotation legation.dev/clusters: "West" is not a DNS label',
    );
  });

  test("stays on the host without an annotation or in a namespace without the label", async () => {
    const silent = { ...deployment(1), metadata: { name: "web" } };
    expect((await plan(host({ west: {} }), silent)).workloads[0]).toMatchObject({ outcome: "notDelegated" });
    const all = { namespaces: [namespace("team", { labels: { "legation.dev/delegation": "all" } })] };
    expect((await plan(host({ west: {} }, all), silent)).workloads[0]).toMatchObject({ outcome: "fits" });
    const none = { namespaces: [namespace("team", { labels: {} })] };
    expect((await plan(host({ west: {} }, none), deployment(1))).workloads[0]?.message).toBe(
      "namespace team has no label legation.dev/delegation: its pods run on the host",
    );
  });

  test.each([
    ["Deployment", deployment(1)],
    ["Pod", { apiVersion: "v1", kind: "Pod", spec: { containers: [{ name: "main", image: "busybox" }] } }],
  ])("is a %s whose annotations ask for nothing, with the webhook's warning", async (_, object) => {
    const metadata = { name: "web", annotations: { "legation.dev/group": "flow-7" } };
    const [planned] = (await plan(host({ west: {} }), { ...object, metadata })).workloads;
    expect(planned?.outcome).toBe("notDelegated");
    expect(planned?.warnings).toEqual([expect.stringContaining("legation.dev/group: does not ask for delegation")]);
  });

  test("is refused in an overflow namespace as the webhook refuses it", async () => {
    const state = host(
      { west: {} },
      { namespaces: [namespace("team", { labels: { "legation.dev/delegation": "overflow" } })] },
    );
    expect(await plan(state, deployment(1, { "legation.dev/failover": "never" }))).toMatchObject({
      fits: false,
      workloads: [
        { kind: "Deployment", outcome: "refused", pods: [], message: expect.stringContaining("own nodes, too") },
      ],
    });
  });

  const written = (name: string, metadata: object): WrittenObject => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, ...metadata },
  });
  const optedIn = { labels: { "legation.dev/delegation": "all" } };

  test("is refused in a missing namespace, unless the manifest creates that", async () => {
    const bare = host({ west: {} }, { namespaces: [] });
    expect((await plan(bare, deployment(1))).workloads[0]?.message).toContain("namespace team is neither on the host");
    const planned = await planWithNamespaces(bare, [written("team", optedIn), deployment(1)]);
    expect(planned).toMatchObject({
      fits: true,
      notChecked: [expect.stringMatching(/ in namespace team: the manifest creates or changes the namespace$/)],
    });
  });

  test("is refused in a namespace that the API server refuses", async () => {
    const refused = async (): Promise<DryRunAnswer<never>> => ({ is: "refused", message: "no", ofQuota: false });
    const objects = [written("team", optedIn), deployment(1)];
    expect(await planWithNamespaces(host({ west: {} }, { namespaces: [] }), objects, refused)).toMatchObject({
      fits: false,
      workloads: [
        { kind: "Namespace", name: "team", outcome: "refused", message: "no" },
        { kind: "Deployment", outcome: "refused", message: "namespace team would be refused itself" },
      ],
    });
    expect(await planWithNamespaces(host({ west: {} }), objects, refused)).toMatchObject({
      fits: false,
      workloads: [
        { kind: "Namespace", outcome: "refused" },
        { kind: "Deployment", outcome: "fits" },
      ],
    });
  });

  test("has a dry-run of its namespace only if the manifest changes that, and names a missing right", async () => {
    const asked: string[] = [];
    const ask = async ({ metadata }: Stored<Namespace>): Promise<DryRunAnswer<never>> => {
      asked.push(metadata.name);
      return { is: "notChecked", why: "you may not patch namespaces" };
    };
    const same = { labels: { "legation.dev/delegation": "annotated" } };
    const planned = await planWithNamespaces(host({ west: {} }), [written("team", same), deployment(1)], ask);
    expect(planned).toMatchObject({ fits: true, notChecked: [] });
    expect(asked).toEqual([]);
    const changed = await planWithNamespaces(host({ west: {} }), [written("team", optedIn), deployment(1)], ask);
    expect(changed.fits).toBe(true);
    expect(changed.notChecked).toContain("namespace team: you may not patch namespaces");
  });

  test("waits for its scheduling gates", async () => {
    const planned = await plan(host({ west: {} }), deployment(1, {}, { schedulingGates: [{ name: "quota" }] }));
    expect(planned.workloads[0]?.pods[0]).toMatchObject({ reason: "SchedulingGated" });
  });
});
