import { describe, expect, test } from "vitest";
import type { PersistentVolumeClaim, Pod, PodStatus, Stored } from "../../../../src/api/kubernetes.ts";
import type { WorkloadPlan } from "../../../../src/cli/plan/outcome.ts";
import type { ManifestState } from "../../../../src/cli/plan/read-host.ts";
import type { HostState } from "../../../../src/cli/plan/simulation.ts";
import type { WorkloadKind } from "../../../../src/cli/plan/workloads.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { endedStatus, type PodParts, pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { host, namespace, planWith } from "./host.ts";

const APIS: Partial<Record<WorkloadKind, string>> = { Job: "batch/v1", Pod: "v1", ReplicationController: "v1" };
const asks = { "legation.dev/delegate": "true" };

/** Workload `web` whose pods ask for delegation. */
function workload(kind: WorkloadKind, spec: object, image = "web:1", annotations: object = asks): WrittenObject {
  const template = {
    metadata: { labels: { app: "web" }, annotations },
    spec: { containers: [{ name: "main", image }] },
  };
  return { apiVersion: APIS[kind] ?? "apps/v1", kind, metadata: { name: "web" }, spec: { template, ...spec } };
}

/** The same as the host has it. */
function stored(object: WrittenObject, status: object = {}, annotations: Record<string, string> = {}): WrittenObject {
  return { ...object, metadata: { ...object.metadata, namespace: "team", annotations }, status };
}

type Builder = (parts: PodParts) => Stored<Pod>;

/** One pod of the workload in member west; with `pod`, one of the host's own. */
function own(kind: WorkloadKind, suffix: string, build: Builder = proxyPod, status?: PodStatus): Stored<Pod> {
  const owner = kind === "Deployment" ? { kind: "ReplicaSet", name: "web-abc" } : { kind, name: "web" };
  return build({
    name: `web-${suffix}`,
    uid: suffix,
    metadata: {
      labels: { "pod-template-hash": "abc" },
      ownerReferences: [{ apiVersion: "apps/v1", uid: "owner", controller: true, ...owner }],
    },
    spec: { nodeName: build === pod ? "worker-1" : "legation-west" },
    status: status ?? runningStatus(),
  });
}

async function planned(
  written: WrittenObject,
  existing: WrittenObject,
  present: readonly Stored<Pod>[],
  state: Partial<HostState> & Pick<Partial<ManifestState>, "quotas"> = {},
): Promise<WorkloadPlan> {
  const isProxy = ({ metadata }: Stored<Pod>): boolean => metadata.labels?.["legation.dev/proxy"] === "true";
  const proxies = present.filter(isProxy);
  const hostPods = present.filter((one) => !isProxy(one));
  const { quotas = [], ...rest } = state;
  const found = { existing: [existing], hostPods, quotas };
  const [only] = (await planWith(host({ east: {}, west: {} }, { ...rest, proxies }), [written], { found })).workloads;
  if (only === undefined) throw new Error("no workload was planned");
  return only;
}

const names = ({ pods }: WorkloadPlan): string[] => pods.map(({ name }) => name);

describe("the number of pods of a workload", () => {
  const three = ["a", "b", "c"].map((suffix) => own("Deployment", suffix));

  test("stays as an autoscaler has set it where the manifest names none", async () => {
    const found = await planned(workload("Deployment", {}), stored(workload("Deployment", { replicas: 3 })), three);
    expect(found).toMatchObject({ outcome: "fits", notes: ["3 of its pods are there already, and stay"] });
  });

  test("becomes one again where the manifest drops the number of an earlier one", async () => {
    const before = workload("Deployment", { replicas: 3 });
    const lastApplied = { "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(before) };
    expect(names(await planned(workload("Deployment", {}), stored(before, {}, lastApplied), three))).toHaveLength(1);
  });
});

describe("a Job that exists", () => {
  const job = workload("Job", { completions: 10, parallelism: 5 });
  const active = ["a", "b"].map((suffix) => own("Job", suffix));

  test("gets the pods that its stored status leaves, whatever status the manifest has", async () => {
    const found = await planned({ ...job, status: { succeeded: 0 } }, stored(job, { succeeded: 8, active: 2 }), active);
    expect(names(found)).toEqual(["web-a", "web-b"]);
    expect(names(await planned(job, stored(job, { succeeded: 7, active: 2 }), active))).toHaveLength(3);
    const uncounted = { succeeded: 6, uncountedTerminatedPods: { succeeded: ["x", "y"] } };
    expect(names(await planned(job, stored(job, uncounted), active))).toHaveLength(2);
  });

  test("without a number of completions gets no more pods once one has succeeded", async () => {
    const queue = workload("Job", { parallelism: 5 });
    expect(names(await planned(queue, stored(queue, { active: 2 }), active))).toHaveLength(5);
    expect(names(await planned(queue, stored(queue, { active: 2, succeeded: 1 }), active))).toHaveLength(2);
  });

  test.each(["Complete", "Failed"])("gets no more pods once it is %s", async (type) => {
    const found = await planned(job, stored(job, { conditions: [{ type, status: "True" }] }), []);
    expect(found).toMatchObject({ outcome: "fits", pods: [], notes: [`has ended (${type}): no more pods come`] });
  });
});

describe("a bare pod that exists", () => {
  const bare = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", annotations: asks },
    spec: { containers: [{ name: "main" }] },
  };

  test("does not run again once it has ended", async () => {
    const found = await planned(bare, stored(bare), [proxyPod({ name: "web", status: endedStatus(0) })]);
    expect(found).toMatchObject({
      outcome: "fits",
      pods: [],
      notes: ["has ended (Succeeded), and does not run again"],
    });
  });

  test("does not come back while it is being deleted", async () => {
    const leaving = proxyPod({ name: "web", metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });
    expect(await planned(bare, stored(bare), [leaving])).toMatchObject({ outcome: "fits", pods: [] });
  });

  test("stays on its node of the host", async () => {
    const found = await planned(bare, stored(bare), [pod({ name: "web", spec: { nodeName: "worker-1" } })]);
    expect(found).toMatchObject({ outcome: "fits", pods: [{ name: "web", kept: true, onHost: true }] });
  });
});

describe("pods of a workload on the host", () => {
  const hosts = ["a", "b", "c", "d"].map((suffix) => own("Deployment", suffix, pod));
  const quotas = [
    {
      metadata: { name: "team", namespace: "team", uid: "quota", resourceVersion: "1" },
      spec: { hard: { pods: "6" } },
      status: { used: { pods: "4" } },
    },
  ];

  test.each([
    ["delegated", asks],
    ["in overflow mode", { ...asks, "legation.dev/mode": "overflow" }],
  ])("leave their quota to the %s pods that replace them", async (_, annotations) => {
    const before = stored(workload("Deployment", { replicas: 4 }, "web:1", {}));
    const after = workload("Deployment", { replicas: 4 }, "web:1", annotations);
    const found = await planned(after, before, hosts, { quotas });
    expect(found.outcome).toBe("fits");
    expect(found.notes).toContain("its 4 pods are replaced: their room is counted as free");
    expect(found.pods.every(({ cluster }) => cluster !== undefined)).toBe(true);
  });

  test("stay while their template stays, in a namespace that is opted in only now", async () => {
    const web = workload("Deployment", { replicas: 5 }, "web:1", {});
    const namespaces = [namespace("team", { labels: { "legation.dev/delegation": "all" } })];
    const found = await planned(web, stored(web), hosts, { namespaces });
    expect(found).toMatchObject({
      outcome: "fits",
      notes: [
        "4 of its pods are there already, and stay",
        "on this cluster, and stay there: web-a, web-b, web-c, web-d",
      ],
    });
    expect(found.pods.map(({ onHost = false }) => onHost)).toEqual([true, true, true, true, false]);
    const annotated = { namespaces: [namespace("team")] };
    expect((await planned(web, stored(web), hosts.slice(0, 3), annotated)).outcome).toBe("notDelegated");
    const same = workload("Deployment", { replicas: 4 }, "web:1", {});
    expect((await planned(same, stored(same), hosts, annotated)).outcome).toBe("notDelegated");
  });

  test("are placed while they wait in overflow mode", async () => {
    const web = workload("Deployment", { replicas: 1 }, "web:1", { ...asks, "legation.dev/mode": "overflow" });
    const { spec, ...waiting } = own("Deployment", "a", pod, { phase: "Pending" });
    const labels = { ...waiting.metadata.labels, "legation.dev/proxy": "overflow" };
    const { nodeName: _, ...unbound } = spec ?? { containers: [] };
    const overflowing = { ...waiting, spec: unbound, metadata: { ...waiting.metadata, labels } };
    expect((await planned(web, stored(web), [overflowing])).pods).toEqual([
      { name: "web-a", kept: true, cluster: "east" },
    ]);
  });
});

describe("a changed template", () => {
  const change = async (
    kind: WorkloadKind,
    spec: object,
    present: readonly Stored<Pod>[],
  ): Promise<(string | undefined)[]> =>
    (await planned(workload(kind, spec, "web:2"), stored(workload(kind, spec)), present)).pods.map(
      ({ name, kept }) => `${kept === true ? "kept" : "new"} ${name}`,
    );
  const ordinals = (...of: string[]): Stored<Pod>[] => of.map((ordinal) => own("StatefulSet", ordinal));

  test.each<[WorkloadKind, object]>([
    ["ReplicaSet", {}],
    ["ReplicationController", {}],
    ["StatefulSet", { updateStrategy: { type: "OnDelete" } }],
    ["Deployment", { paused: true }],
  ])("of a %s with %j replaces no pod", async (kind, spec) => {
    const present = kind === "StatefulSet" ? ordinals("0", "1") : [own(kind, "a"), own(kind, "b")];
    expect((await change(kind, { replicas: 2, ...spec }, present)).every((name) => name?.startsWith("kept"))).toBe(
      true,
    );
  });

  test("of a StatefulSet replaces the pods from its partition on", async () => {
    const spec = { replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } };
    expect(await change("StatefulSet", spec, ordinals("0", "1", "2"))).toEqual([
      "kept web-0",
      "kept web-1",
      "new web-2",
    ]);
    const later = { ...spec, ordinals: { start: 5 } };
    expect(await change("StatefulSet", later, ordinals("5", "6", "7"))).toEqual([
      "kept web-5",
      "kept web-6",
      "new web-7",
    ]);
    expect(await change("StatefulSet", { replicas: 2 }, ordinals("0", "1"))).toEqual(["new web-0", "new web-1"]);
  });
});

describe("pods of a StatefulSet", () => {
  const claims = { volumeClaimTemplates: [{ metadata: { name: "data" } }] };

  test("come with the missing ordinals and their claims", async () => {
    const claim = (name: string, cluster: string): Stored<PersistentVolumeClaim> => ({
      metadata: {
        name,
        namespace: "team",
        uid: name,
        resourceVersion: "1",
        annotations: { "legation.dev/cluster": cluster },
      },
    });
    const set = workload("StatefulSet", { replicas: 3, ...claims });
    const there = new Map([["team", [claim("data-web-1", "west"), claim("data-web-2", "east")]]]);
    const present = [own("StatefulSet", "0"), own("StatefulSet", "2")];
    const found = await planned(set, stored(set), present, { claims: there });
    expect(found.pods.map(({ name, cluster }) => [name, cluster])).toEqual([
      ["web-0", "west"],
      ["web-2", "west"],
      ["web-1", "west"],
    ]);
  });

  test("begin at the first ordinal, and go outside the ordinals", async () => {
    const set = workload("StatefulSet", { replicas: 2, ordinals: { start: 3 } });
    const found = await planned(set, stored(set), [own("StatefulSet", "2"), own("StatefulSet", "4")]);
    expect(names(found)).toEqual(["web-4", "web-3"]);
    expect(found.notes).toContain("1 pod goes, probably web-2");
  });
});
