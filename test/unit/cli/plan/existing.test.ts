import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { missingOrdinal } from "../../../../src/cli/plan/controller-pods.ts";
import type { Plan } from "../../../../src/cli/plan/outcome.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { deployment, division, host, type MemberParts, planWith } from "./host.ts";

const annotations = { "legation.dev/delegate": "true", "legation.dev/group": "flow" };

const mainContainer = (image = "web:1"): object => ({ name: "main", image, resources: { requests: { cpu: "7" } } });

/** As the API server holds it: with defaults, and what the webhook copied into the template. */
function stored(replicas: number, own: Record<string, string>): WrittenObject {
  const metadata = { labels: { app: "web" }, creationTimestamp: null, annotations: own };
  const template = { metadata, spec: { containers: [mainContainer()], dnsPolicy: "ClusterFirst" } };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "team", annotations: own },
    spec: { replicas, selector: { matchLabels: { app: "web" } }, template },
  };
}

function replica(name: string, cluster: string | undefined, cost = 0): Stored<Pod> {
  return proxyPod({
    name,
    uid: name,
    metadata: {
      ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-abc", uid: "rs", controller: true }],
      labels: { "pod-template-hash": "abc" },
      annotations: { ...annotations, "controller.kubernetes.io/pod-deletion-cost": String(-cost) },
    },
    spec: {
      containers: [{ name: "main", resources: { requests: { cpu: "7" } } }],
      ...(cluster === undefined ? {} : { nodeName: `legation-${cluster}` }),
    },
    status: cluster === undefined ? { phase: "Pending" } : runningStatus(),
  });
}

const members: Record<string, MemberParts> = { east: {}, west: {} };
const written = (replicas: number, image = "web:1"): WrittenObject =>
  deployment(replicas, { "legation.dev/group": "flow" }, { containers: [mainContainer(image)] });

function plan(object: WrittenObject, existing: WrittenObject, proxies: readonly Stored<Pod>[]): Promise<Plan> {
  return planWith(host(members, { proxies }), [object], { found: { existing: [existing] } });
}

describe("a workload that is on the host already", () => {
  test("keeps its pods when its manifest differs by defaults and notation only", async () => {
    const kept = stored(1, annotations) as { spec: { template: { spec: object } } } & WrittenObject;
    const resources = { requests: { cpu: "700m", memory: "1Gi" } };
    kept.spec.template.spec = {
      containers: [
        {
          name: "main",
          image: "web:1",
          resources,
          livenessProbe: { periodSeconds: 10 },
          env: [{ name: "EMPTY" }],
          volumeMounts: [{ name: "data" }],
        },
      ],
    };
    const container = {
      name: "main",
      image: "web:1",
      args: [],
      tty: false,
      resources: { requests: { cpu: 0.7, memory: "1024Mi" } },
      livenessProbe: { initialDelaySeconds: 0 },
      env: [{ name: "EMPTY", value: "" }],
      volumeMounts: [{ name: "data", readOnly: false }],
    };
    const notes = async (one: object): Promise<unknown> => {
      const object = deployment(1, { "legation.dev/group": "flow" }, { containers: [{ ...container, ...one }] });
      return (await plan(object, kept, [replica("web-abc-1", "west")])).workloads[0]?.notes;
    };
    expect(await notes({})).toEqual(["1 of its pods is there already, and stays"]);
    for (const other of [
      { tty: true },
      { args: ["serve"] },
      { securityContext: { readOnlyRootFilesystem: false } },
      { resources: { requests: { cpu: "600m", memory: "1Gi" } } },
    ]) {
      expect(await notes(other)).not.toEqual(await notes({}));
    }
  });

  test("keeps its pods when it grows, and places new ones beside them", async () => {
    const planned = await plan(written(3), stored(1, annotations), [replica("web-abc-1", "west")]);
    expect(planned.workloads[0]?.notes).toEqual(["1 of its pods is there already, and stays"]);
    expect(planned.workloads[0]?.pods).toMatchObject([
      { name: "web-abc-1", kept: true, cluster: "west" },
      { name: "web-abc-*1", cluster: "west" },
      { name: "web-abc-*2", waitsIn: "west", message: "east: group flow runs in west; west: cpu: 7 requested, 2 left" },
    ]);
  });

  test("loses the pods of the lowest deletion cost when it shrinks", async () => {
    const proxies = [replica("web-abc-1", "west", 1), replica("web-abc-2", "west", 2), replica("web-abc-3", undefined)];
    const planned = await plan(written(1), stored(3, annotations), proxies);
    expect(planned.workloads[0]).toMatchObject({
      outcome: "fits",
      notes: ["1 of its pods is there already, and stays", "2 pods go, probably web-abc-3, web-abc-2"],
      pods: [{ name: "web-abc-1" }],
    });
  });

  test.each([
    ["another image", written(2, "web:2"), annotations],
    ["an annotation that is taken away", written(2), { ...annotations, "legation.dev/clusters": "west" }],
  ])("has all of its pods replaced by %s, and counts their room as free", async (_, object, before) => {
    const proxies = [replica("web-abc-1", "west"), replica("web-abc-2", "west")];
    const planned = await plan(object, stored(2, before), proxies);
    expect(planned.workloads[0]?.notes).toEqual(["its 2 pods are replaced: their room is counted as free"]);
    expect(planned.fits).toBe(true);
    // Nothing holds the group where it was.
    expect(division(planned)).toEqual({ east: 2, west: 0 });
  });

  describe("and was annotated by hand after `kubectl apply`", () => {
    const byHand = (applied: WrittenObject): WrittenObject => {
      const object = stored(1, annotations);
      const configuration = { "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(applied) };
      return { ...object, metadata: { ...object.metadata, annotations: { ...annotations, ...configuration } } };
    };
    const plain = (image?: string): WrittenObject => ({
      ...deployment(1, {}, { containers: [mainContainer(image)] }),
      metadata: { name: "web" },
    });
    const proxies = [replica("web-abc-1", "west")];

    test("keeps its pods when the same manifest is applied again", async () => {
      expect((await plan(plain(), byHand(plain()), proxies)).workloads[0]).toMatchObject({
        outcome: "fits",
        notes: ["1 of its pods is there already, and stays"],
        pods: [{ name: "web-abc-1", kept: true, cluster: "west" }],
      });
    });

    test("stays delegated with another image", async () => {
      const planned = (await plan(plain("web:2"), byHand(plain()), proxies)).workloads[0];
      expect(planned).toMatchObject({ outcome: "fits", notes: ["its 1 pod is replaced: its room is counted as free"] });
      expect(planned?.pods).toHaveLength(1);
    });

    test("is not delegated any more when the manifest drops an annotation of an earlier one", async () => {
      const earlier = { ...plain(), metadata: { name: "web", annotations } };
      expect((await plan(plain(), byHand(earlier), proxies)).workloads[0]).toMatchObject({ outcome: "notDelegated" });
    });
  });

  test("shows a pod behind scheduling gates as waiting", async () => {
    const held = replica("web-abc-1", undefined);
    const gated = { ...held, spec: { containers: [], ...held.spec, schedulingGates: [{ name: "kueue" }] } };
    expect((await plan(written(1), stored(1, annotations), [gated])).workloads[0]?.pods).toEqual([
      {
        name: "web-abc-1",
        kept: true,
        reason: "SchedulingGated",
        message: "waits for its scheduling gates",
      },
    ]);
  });

  test("keeps a bare pod in its place", async () => {
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "one", annotations },
      spec: { containers: [{ name: "main" }] },
    };
    const proxies = [proxyPod({ name: "one", spec: { nodeName: "legation-east" }, status: runningStatus() })];
    const planned = await plan(pod, { ...pod, metadata: { ...pod.metadata, namespace: "team" } }, proxies);
    expect(planned.workloads[0]).toMatchObject({
      outcome: "fits",
      notes: ["is there already: a pod keeps its place"],
      pods: [{ name: "one", kept: true, cluster: "east" }],
    });
  });
});

describe("in overflow mode", () => {
  const overflow = { "legation.dev/mode": "overflow" };
  const planned = (object: WrittenObject): Promise<Plan> => planWith(host(members), [object], { now: 0 });

  test("notes that the host's scheduler is asked first", async () => {
    expect((await planned(deployment(1, overflow))).workloads[0]).toMatchObject({
      outcome: "fits",
      notes: ["the host's own scheduler is asked first: this is for pods that it has no room for"],
    });
  });

  test("leaves a pod with a claim on the host", async () => {
    const volumes = [
      { name: "data", emptyDir: {} },
      { name: "disk", persistentVolumeClaim: { claimName: "disk" } },
    ];
    expect((await planned(deployment(1, overflow, { volumes }))).workloads[0]).toMatchObject({
      outcome: "waits",
      pods: [
        { reason: "NotOverflowed", message: "stays on this cluster: its claim is this cluster's (spec.volumes: disk)" },
      ],
    });
  });

  test("parks no pod in a member", async () => {
    const large = { containers: [{ name: "main", resources: { requests: { cpu: "9" } } }] };
    const { workloads } = await planned(deployment(1, overflow, large));
    expect(workloads[0]?.clusters.map(({ waiting }) => waiting)).toEqual([0, 0]);
    expect(workloads[0]?.pods).toEqual([
      {
        name: "web-planned-*0",
        reason: "NotOverflowed",
        message: expect.stringMatching(/^no member cluster has room either: .*the largest node has 8/),
      },
    ]);
    const elsewhere = (await planned(deployment(1, { ...overflow, "legation.dev/clusters": "north" }))).workloads[0];
    expect(elsewhere?.pods[0]).toMatchObject({
      reason: "NotOverflowed",
      message: expect.stringContaining("no member cluster has room either: "),
    });
  });
});

test.each<[string, readonly string[], number, number]>([
  ["none is there", [], 3, 3],
  ["one in the middle is missing", ["web-0", "web-2"], 0, 1],
  ["all are there", ["web-2", "web-3"], 2, 4],
])("gives the next pod of a StatefulSet the first missing ordinal: %s", (_case, names, first, next) => {
  expect(
    missingOrdinal(
      names.map((name) => proxyPod({ name })),
      first,
    ),
  ).toBe(next);
});
