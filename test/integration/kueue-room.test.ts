import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { OwnerReference } from "../../src/api/kubernetes.ts";
import type { CheckEntry, PodSetAssignment } from "../../src/api/kueue-workload.ts";
import { admissionChecks, clusters } from "../../src/api/resources.ts";
import type { Patch } from "../../src/kube/client.ts";
import { resourceOf } from "../../src/kube/optional-resource.ts";
import { jobs, pods } from "../../src/kube/resources.ts";
import { installKueueDefinitions, removeKueueDefinitions } from "../support/engines/kueue-definitions.ts";
import { KueueScheduler, type Ref, workloadsV1beta2 } from "../support/engines/kueue-scheduler.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

const host = hostCluster();
// The controller looks for the API when it starts, and once a minute.
beforeAll(async () => {
  afterFile(() => removeKueueDefinitions(host));
  await installKueueDefinitions(host);
}, 120_000);
const running = useLegation();
const clients = useClients();
const patient = { timeoutMs: 30_000, intervalMs: 100 };
const CHECK = "room";
const checks = resourceOf(admissionChecks, {});
let kueue: KueueScheduler;

beforeAll(async () => {
  kueue = new KueueScheduler(clients().host, CHECK);
  await clients().host.create(checks, {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "AdmissionCheck",
    metadata: { name: CHECK },
    spec: { controllerName: "legation.dev/room" },
  });
});

function opted(mode = "all"): Promise<string> {
  const labels = { "legation.dev/delegation": mode };
  return freshNamespace([host, memberCluster("west"), memberCluster("east")], { prefix: "room", labels });
}

interface PodSetParts {
  readonly name?: string;
  readonly count?: number;
  readonly cpu?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly nodeSelector?: Readonly<Record<string, string>>;
}

interface WorkloadParts {
  readonly priority?: number;
  readonly owner?: OwnerReference;
  readonly assignments?: readonly PodSetAssignment[];
}

/** Creates a Workload, and reserves quota for it. */
async function queued(
  namespace: string,
  name: string,
  podSets: readonly PodSetParts[],
  { priority, owner, assignments }: WorkloadParts = {},
): Promise<Ref> {
  const sets = podSets.map(({ name: set = "main", count = 1, cpu = "1", annotations = {}, nodeSelector }) => ({
    name: set,
    count,
    template: {
      metadata: { annotations },
      spec: {
        containers: [{ name: "main", image: "main:1", resources: { requests: { cpu } } }],
        ...(nodeSelector === undefined ? {} : { nodeSelector }),
      },
    },
  }));
  const ref = { namespace, name };
  await clients().host.create(workloadsV1beta2, {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "Workload",
    metadata: { ...ref, ...(owner === undefined ? {} : { ownerReferences: [owner] }) },
    spec: { podSets: sets, ...(priority === undefined ? {} : { priority }) },
  });
  onTestFinished(() => ended(ref));
  await kueue.reserve(ref, assignments ?? sets.map(({ name: set, count }) => ({ name: set, count })));
  return ref;
}

/** Deletes a Workload: what it was told of is free. */
async function ended(ref: Ref): Promise<void> {
  if ((await clients().host.find(workloadsV1beta2, ref)) !== undefined)
    await clients().host.delete(workloadsV1beta2, ref);
}

/** Waits for the check's answer. */
function answer(ref: Ref): Promise<CheckEntry> {
  return eventually(async () => {
    const entry = await kueue.entry(ref);
    return entry?.state !== "Pending" && entry;
  }, patient);
}

test("Legation answers for its AdmissionCheck", async () => {
  await eventuallyPasses(async () => {
    const { status } = await clients().host.get(checks, { name: CHECK });
    expect(status?.conditions).toMatchObject([{ type: "Active", status: "True", reason: "Active" }]);
  }, patient);
});

test("a workload whose pods fit in members is ready", async () => {
  const ref = await queued(await opted(), "small", [{ count: 3 }]);
  expect(await answer(ref)).toMatchObject({
    state: "Ready",
    message: expect.stringMatching(/^3 pods fit: \d in (east|west)/),
  });
});

test("a workload whose pods stay on the host is ready", async () => {
  const foreign = await freshNamespace(host, { prefix: "room" });
  expect(await answer(await queued(foreign, "own", [{ cpu: "1k" }]))).toMatchObject({
    state: "Ready",
    message: `namespace ${foreign} has no label legation.dev/delegation: its pods run on the host`,
  });
  expect(await answer(await queued(await opted("annotated"), "own", [{ cpu: "1k" }]))).toMatchObject({
    state: "Ready",
    message: expect.stringContaining("its pods do not ask for delegation"),
  });
});

test("a workload without room now is to be asked for again, with the reason of each member", async () => {
  const ref = await queued(await opted(), "wide", [{ count: 300, cpu: "40" }]);
  expect(await answer(ref)).toMatchObject({
    state: "Retry",
    message: expect.stringMatching(
      /^\d+ of 300 pods would wait: east: cpu: 40 requested, [\d.]+ left; west: cpu: 40 requested, [\d.]+ left$/,
    ),
    requeueAfterSeconds: 10,
  });
  await kueue.evict(ref);
  await kueue.reserve(ref, [{ name: "main", count: 2 }]);
  expect(await answer(ref)).toMatchObject({ state: "Ready", message: expect.stringContaining("2 pods fit") });
});

test("a workload that no member could ever run is rejected", async () => {
  const namespace = await opted();
  expect(await answer(await queued(namespace, "huge", [{ cpu: "4k" }]))).toMatchObject({
    state: "Rejected",
    message: expect.stringMatching(
      /^no member could ever run a pod of pod set main: east: cpu: 4000 requested, the largest node has 64; west: /,
    ),
  });
  const selecting = await queued(namespace, "selecting", [{ nodeSelector: { "legation.dev/cluster": "north" } }]);
  expect(await answer(selecting)).toMatchObject({ state: "Rejected" });
  const misspelt = await queued(namespace, "misspelt", [{ annotations: { "legation.dev/cluster-selector": "a in" } }]);
  expect(await answer(misspelt)).toMatchObject({
    state: "Rejected",
    message: expect.stringContaining("admission refuses its pods: annotation legation.dev/cluster-selector"),
  });
});

test("a workload is ready only if all of its pod sets find a place", async () => {
  const namespace = await opted();
  const sets = (workers: number): PodSetParts[] => [{ name: "leader" }, { name: "workers", count: workers, cpu: "40" }];
  expect(await answer(await queued(namespace, "all", sets(2)))).toMatchObject({ state: "Ready" });
  expect(await answer(await queued(namespace, "some", sets(300)))).toMatchObject({
    state: "Retry",
    message: expect.stringMatching(/^\d+ of 300 pods of pod set workers would wait: east: /),
  });
});

test("pods of a group, and of a pod set in one topology domain, need room in one member", async () => {
  const { nodes = 0 } = (await clients().host.get(clusters, { name: "west" })).status ?? {};
  const namespace = await opted();
  // More than one member has nodes for, and no more than both have.
  const count = nodes + 1;
  const parts = { count, cpu: "60" };
  const grouped = await queued(namespace, "grouped", [{ ...parts, annotations: { "legation.dev/group": "g" } }]);
  expect(await answer(grouped)).toMatchObject({ state: "Retry", message: expect.stringContaining("group g") });
  const domains = (member: string): PodSetAssignment[] => [
    {
      name: "main",
      count,
      topologyAssignment: {
        levels: ["legation.dev/cluster"],
        slices: [{ domainCount: 1, valuesPerLevel: [{ universal: member }], podCounts: { universal: count } }],
      },
    },
  ];
  const pinned = await queued(namespace, "pinned", [parts], { assignments: domains("west") });
  expect(await answer(pinned)).toMatchObject({ state: "Retry", message: expect.stringContaining("east: ") });
  expect(await answer(await queued(namespace, "free", [parts]))).toMatchObject({ state: "Ready" });
});

test("room that one workload was told of is not told to another, also by a controller that starts anew", async () => {
  const { nodes = 0 } = (await clients().host.get(clusters, { name: "west" })).status ?? {};
  const namespace = await opted();
  const parts = [{ count: 2 * nodes, cpu: "40" }];
  expect(await answer(await queued(namespace, "first", parts))).toMatchObject({ state: "Ready" });
  const second = await queued(namespace, "second", parts);
  expect(await answer(second)).toMatchObject({ state: "Retry" });
  await kueue.evict(second);
  await running().controller.stop();
  await running().controller.start();
  await kueue.reserve(second, [{ name: "main", count: 2 * nodes }]);
  expect(await answer(second)).toMatchObject({ state: "Retry" });
  await ended({ namespace, name: "first" });
  await kueue.evict(second);
  await kueue.reserve(second, [{ name: "main", count: 2 * nodes }]);
  expect(await answer(second)).toMatchObject({ state: "Ready" });
});

test("of workloads that ask together, the one of higher priority gets the room", async () => {
  const { nodes = 0 } = (await clients().host.get(clusters, { name: "west" })).status ?? {};
  const namespace = await opted();
  const parts = [{ count: 2 * nodes, cpu: "40" }];
  await running().controller.stop();
  const low = await queued(namespace, "low", parts, { priority: 1 });
  const high = await queued(namespace, "high", parts, { priority: 2 });
  await running().controller.start();
  expect(await answer(high)).toMatchObject({ state: "Ready" });
  expect(await answer(low)).toMatchObject({ state: "Retry" });
});

test("a workload whose pods find no place within the check's time after its admission is evicted, once", async () => {
  const { host: client } = clients();
  const namespace = await opted();
  const containers = [{ name: "main", image: "main:1", resources: { requests: { cpu: "4k" } } }];
  const job = await client.create(jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { namespace, name: "late" },
    // The test makes its pod.
    spec: { suspend: true, managedBy: "example.com/test", template: { spec: { restartPolicy: "Never", containers } } },
  });
  const { uid } = job.metadata;
  const owner = { apiVersion: "batch/v1", kind: "Job", name: "late", uid, controller: true };
  await client.patch(checks, { name: CHECK }, within("2s"));
  onTestFinished(async () => void (await client.patch(checks, { name: CHECK }, within(null))));
  const ref = await queued(namespace, "late", [{}], { owner });
  expect(await answer(ref)).toMatchObject({ state: "Ready" });
  await client.create(pods, {
    apiVersion: "v1",
    kind: "Pod",
    // Members change between the check and the pod.
    metadata: { namespace, name: "late-1", ownerReferences: [owner] },
    spec: { containers },
  });
  await kueue.admit(ref);
  const entry = await eventually(async () => {
    const found = await kueue.entry(ref);
    return found?.state === "Retry" && found;
  }, patient);
  expect(entry.message).toMatch(/^1 of 1 pod of late found no place within 2s of the admission: late-1: /);
  const { metadata } = await kueue.evict(ref);
  await eventuallyPasses(async () => {
    expect((await client.get(workloadsV1beta2, ref)).metadata.resourceVersion).toBe(metadata.resourceVersion);
  }, patient);
});

test("an AdmissionCheck with a misspelt time is not active, and says what to write", async () => {
  const { host: client } = clients();
  await client.patch(checks, { name: CHECK }, within("soon"));
  onTestFinished(async () => void (await client.patch(checks, { name: CHECK }, within(null))));
  await eventuallyPasses(async () => {
    const { status } = await client.get(checks, { name: CHECK });
    expect(status?.conditions).toMatchObject([
      {
        status: "False",
        reason: "Invalid",
        message:
          'the annotation legation.dev/place-within is "soon", no time up to 24h; write hours, minutes and seconds, e.g. "30s", "5m" or "1h30m"',
      },
    ]);
  }, patient);
});

function within(time: string | null): Patch {
  return { type: "merge", body: { metadata: { annotations: { "legation.dev/place-within": time } } } };
}
