import { describe, expect, test } from "vitest";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { CheckEntry, KueueCondition, Workload } from "../../../../src/api/kueue-workload.ts";
import { clusterQueues, localQueues, resourceFlavors, workloads } from "../../../../src/api/resources.ts";
import type { HostMembers } from "../../../../src/cli/explain/members.ts";
import { type QueueObjects, QueueReader, type QueueStatus, queueStatuses } from "../../../../src/cli/explain/queues.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { resourceOf } from "../../../../src/kube/optional-resource.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { storedFlavor, storedLocalQueue, storedQueue, storedWorkload } from "../../../support/builders/kueue.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { host } from "../simulation/host.ts";

const AT = "2026-01-02T00:00:00Z";
const FULL = { west: { used: "126", nominal: "128" } };
const MEMBERS = host({ west: {}, east: {} });
const LOST = host({
  west: {
    status: {
      conditions: [{ type: "Ready", status: "False", reason: "R", message: "no answer", lastTransitionTime: AT }],
    },
  },
});

const condition = (type: string, status: string, message = ""): KueueCondition => {
  return { type, status, message, lastTransitionTime: AT };
};
const NO_QUOTA = condition("QuotaReserved", "False", "insufficient unused quota for cpu in flavor west, 2 more needed");

function statuses(objects: Partial<QueueObjects>, members: HostMembers = MEMBERS): QueueStatus[] {
  const flavors = [storedFlavor("west"), storedFlavor("east")];
  const localQueues = [storedLocalQueue("team", "teams")];
  return queueStatuses({ queues: [], flavors, localQueues, workloads: [], hidden: [], ...objects }, members, 3);
}

/** Returns what the only workload of a queue waits for. */
function waitsFor(
  queue: ReturnType<typeof storedQueue>,
  workload: Stored<Workload> = storedWorkload("team", "sweep", { conditions: [NO_QUOTA] }),
  members: HostMembers = MEMBERS,
  queues = [queue],
): string | undefined {
  return statuses({ queues, workloads: [workload] }, members).find(({ name }) => name === "teams")?.waiting[0]
    ?.waitsFor;
}

test("a queue has its quotas by flavor, with the members of each, and counts what it admitted and what waits", () => {
  const annotations = { "legation.dev/quota": "follow" };
  const status = { admittedWorkloads: 3, reservingWorkloads: 4, pendingWorkloads: 2 };
  const [first, second] = statuses({
    queues: [storedQueue("teams", FULL, { annotations, status }), storedQueue("own", { disk: FULL.west })],
  });
  expect(second).toMatchObject({
    ...{ name: "teams", followsMembers: true, admitted: 3, pending: 3 },
    flavors: [{ name: "west", members: ["west"], quotas: [{ resource: "cpu", used: 126, nominal: 128 }] }],
  });
  expect(first).toMatchObject({ name: "own", followsMembers: false, flavors: [{ name: "disk", members: [] }] });
});

describe("a flavor selects", () => {
  const kinds = (...labels: Readonly<Record<string, string>>[]): object => ({
    nodeKinds: labels.map((each) => ({ count: 1, labels: each, allocatable: { cpu: "8" } })),
  });
  const members = host({
    west: { labels: { region: "eu" }, status: kinds({ region: "us", gpu: "a100" }, {}) },
    east: { labels: { region: "eu" }, status: kinds({}) },
    away: { labels: { region: "eu" }, status: { nodes: 0, nodeKinds: [] } },
  });
  test.each<[string, Readonly<Record<string, string>>, string[]]>([
    ["members by their Clusters' labels, unless their nodes have that label", { region: "eu" }, ["east", "away"]],
    [
      "a member by a label that its nodes have in place of its Cluster",
      { type: "virtual-kubelet", region: "us" },
      ["west"],
    ],
    [
      "members with such nodes, and those of which no node is known",
      { type: "virtual-kubelet", gpu: "a100" },
      ["west", "away"],
    ],
    ["no member by labels of nodes alone", { gpu: "a100" }, []],
  ])("%s", (_what, nodeLabels, selected) => {
    const flavors = [{ ...storedFlavor("west"), spec: { nodeLabels } }];
    const [queue] = statuses({ queues: [storedQueue("teams", FULL)], flavors }, members);
    expect(queue?.flavors[0]?.members).toEqual(selected);
  });
});

test("workloads that wait are listed every ten seconds at most while queues are watched, and not where there is no queue", async () => {
  const cluster = new MemoryCluster("host", "host-1");
  const apiVersion = "kueue.x-k8s.io/v1beta2";
  const [queues, queued] = [resourceOf(clusterQueues, { apiVersion }), resourceOf(workloads, { apiVersion })];
  for (const one of [
    queues,
    queued,
    resourceOf(localQueues, { apiVersion }),
    resourceOf(resourceFlavors, { apiVersion }),
  ]) {
    cluster.serve(one, true);
  }
  const clock = new FakeClock();
  const listed: string[] = [];
  const client: ClusterClient = {
    ...cluster.client,
    list: (resource, options) => {
      listed.push(resource.plural);
      return cluster.client.list(resource, options);
    },
  };
  const reader = new QueueReader({ host: client, namespace: "team", clock });
  const { signal } = new AbortController();
  const waiting = async (): Promise<unknown> =>
    (await reader.read(signal))?.workloads.map(({ metadata }) => metadata.name);
  expect(await waiting()).toEqual([]);
  expect(listed).not.toContain("workloads");
  cluster.put(queues, storedQueue("teams", FULL));
  cluster.put(queued, storedWorkload("team", "sweep"));
  cluster.put(queued, storedWorkload("team", "ended", { conditions: [condition("Finished", "True")] }));
  for (let read = 0; read < 6; read += 1) {
    expect(await waiting()).toEqual(["job-sweep-12345"]);
    await clock.advance(2_000);
  }
  expect(listed.filter((plural) => plural === "workloads")).toHaveLength(2);
  expect(listed.filter((plural) => plural === "clusterqueues")).toHaveLength(7);
});

test("a workload that waits has its Job, since when, and what Kueue says", () => {
  const [queue] = statuses({
    queues: [storedQueue("teams", FULL)],
    workloads: [storedWorkload("team", "sweep", { conditions: [NO_QUOTA] })],
  });
  expect(queue?.waiting).toEqual([
    {
      ...{ namespace: "team", kind: "Job", name: "sweep", workload: "job-sweep-12345", since: "2026-01-01T00:00:00Z" },
      why: [NO_QUOTA.message],
      waitsFor: "waits for 4 cpu of flavor west: 126 of 128 are used by queue teams",
    },
  ]);
});

test("the three that wait longest are shown, and those that Kueue leaves alone come last", () => {
  const late = (hour: number): string => `2026-01-01T0${hour}:00:00Z`;
  const workloads = [
    storedWorkload("team", "rejected", { spec: { queueName: "queue", active: false } }),
    ...[3, 1, 2].map((hour) => storedWorkload("team", `at-${hour}`, { created: late(hour) })),
    storedWorkload("team", "runs", { conditions: [condition("Admitted", "True")] }),
    storedWorkload("team", "ended", { conditions: [condition("Finished", "True")] }),
    storedWorkload("other", "without-queue"),
  ];
  const names = (some: typeof workloads): (string | undefined)[] =>
    statuses({ queues: [storedQueue("teams", FULL)], workloads: some }).flatMap(({ waiting }) =>
      waiting.map(({ name }) => name),
    );
  expect(names(workloads)).toEqual(["at-1", "at-2", "at-3"]);
  expect(names(workloads.slice(0, 2))).toEqual(["at-3", "rejected"]);
});

test("a workload that was evicted waits since then, and says why", () => {
  const conditions = [condition("Evicted", "True", "1 of 2 pods would wait: west: full"), NO_QUOTA];
  const [queue] = statuses({
    queues: [storedQueue("teams", FULL)],
    workloads: [storedWorkload("team", "sweep", { conditions })],
  });
  expect(queue?.waiting).toMatchObject([
    { since: AT, why: ["was evicted: 1 of 2 pods would wait: west: full", NO_QUOTA.message] },
  ]);
});

test("several pods that wait as one are shown by their Workload", () => {
  const { metadata, ...rest } = storedWorkload("team", "sweep");
  const ownerReferences = ["a", "b"].map((name) => ({ apiVersion: "v1", kind: "Pod", name, uid: name }));
  const workload = { ...rest, metadata: { ...metadata, ownerReferences } };
  const [queue] = statuses({ queues: [storedQueue("teams", FULL)], workloads: [workload] });
  expect(queue?.waiting).toMatchObject([{ kind: "Workload", name: "job-sweep-12345" }]);
});

describe("what a workload waits for", () => {
  test("names a member of the flavor that is not ready, since when, or that is cordoned", () => {
    const queue = storedQueue("teams", FULL);
    const said = "waits for 4 cpu of flavor west: 126 of 128 are used by queue teams";
    expect(waitsFor(queue, undefined, LOST)).toBe(`${said}; member west is not ready since ${AT}`);
    const cordoned = host({ west: { node: { unschedulable: true } } });
    expect(waitsFor(queue, undefined, cordoned)).toBe(`${said}; member west is cordoned`);
  });

  test("is the first flavor that has room, of several", () => {
    const queue = storedQueue("teams", { ...FULL, east: { used: "8", nominal: "8" } });
    expect(waitsFor(queue)).toBe(
      "waits for 4 cpu of flavor west or east: 126 of 128 and 8 of 8 are used by queue teams",
    );
    const free = storedQueue("teams", { ...FULL, east: { used: "0", nominal: "8" } });
    expect(waitsFor(free)).toBeUndefined();
  });

  test("is a larger quota where the queue never has enough", () => {
    const queue = storedQueue("teams", { west: { used: "0", nominal: "2" } });
    expect(waitsFor(queue)).toBe("waits for 4 cpu of flavor west: more than the 2 of queue teams");
  });

  test("counts what queues of the cohort lend and use", () => {
    const spec = (cohortName: string): object => ({ spec: { cohortName } });
    const own = storedQueue("teams", { west: { used: "2", nominal: "4" } }, spec("all"));
    const lender = storedQueue("lender", { west: { used: "4", nominal: "4" } }, spec("all"));
    const foreign = storedQueue("foreign", { west: { used: "0", nominal: "90" } }, spec("others"));
    const said = "waits for 4 cpu of flavor west: 6 of 8 are used by cohort all";
    expect(waitsFor(own, undefined, MEMBERS, [foreign, own, lender])).toBe(said);
  });

  test("is computed from its pods until Kueue has tried to admit it", () => {
    const podSets = [
      {
        name: "main",
        count: 3,
        template: { spec: { containers: [{ name: "main", resources: { requests: { cpu: "2" } } }] } },
      },
    ];
    const untried = { ...storedWorkload("team", "sweep"), spec: { queueName: "queue", podSets }, status: {} };
    expect(waitsFor(storedQueue("teams", FULL), untried)).toContain("waits for 6 cpu of flavor west");
  });

  test("is an admission check once quota is reserved", () => {
    const admissionChecks: CheckEntry[] = [
      { name: "room", state: "Retry", message: "2 of 2 pods would wait: west: full" },
      { name: "budget", state: "Ready" },
      // The check's controller has not answered yet.
      { name: "owner", state: "Pending", message: "" },
    ];
    const workload = storedWorkload("team", "sweep", {
      conditions: [condition("QuotaReserved", "True")],
      status: { admission: { clusterQueue: "teams" }, admissionChecks },
    });
    const conditions = [condition("QuotaReserved", "True")];
    const held = { ...workload, status: { ...workload.status, conditions } };
    const [queue] = statuses({ queues: [storedQueue("teams", FULL)], workloads: [held] });
    expect(queue?.waiting).toMatchObject([
      {
        why: ["admission check room: 2 of 2 pods would wait: west: full"],
        waitsFor: "has quota, and waits for admission check room, owner",
      },
    ]);
  });

  test.each<[string, Parameters<typeof storedWorkload>[2], string]>([
    ["its backoff", { conditions: [condition("Requeued", "False")] }, `is queued again at ${AT}`],
    [
      "somebody to activate it",
      { spec: { queueName: "queue", active: false } },
      "is deactivated: Kueue leaves it alone until its Workload has spec.active: true",
    ],
  ])("is %s", (_what, parts, said) => {
    const requeueState = { requeueAt: AT };
    const workload = storedWorkload("team", "sweep", { ...parts });
    const asked = { ...workload, status: { ...workload.status, requeueState } };
    expect(waitsFor(storedQueue("teams", FULL), asked)).toBe(said);
  });

  test("is the queue where that admits nothing, or those before it in a strict one", () => {
    const conditions = [condition("Active", "False", "Can't admit new workloads: is stopped.")];
    const stopped = storedQueue("teams", FULL, { status: { conditions, pendingWorkloads: 1 } });
    expect(waitsFor(stopped)).toBe("waits for queue teams: Can't admit new workloads: is stopped.");
    const free = { west: { used: "0", nominal: "8" } };
    const strict = storedQueue("teams", free, { spec: { queueingStrategy: "StrictFIFO" } });
    expect(waitsFor(strict)).toBe("waits for those before it: the queue is StrictFIFO");
  });
});
