import { describe, expect, test } from "vitest";
import type { Job, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { ResourceFlavor } from "../../../../src/api/kueue.ts";
import type { TopologyAssignment, Workload } from "../../../../src/api/kueue-workload.ts";
import type { Verdict } from "../../../../src/controllers/queues/decide-room.ts";
import { podsOf, workloadsOfPod } from "../../../../src/controllers/queues/room-pods.ts";
import { judge, type QueuedWorkload } from "../../../../src/controllers/queues/room-round.ts";
import { workOfObject } from "../../../../src/controllers/whole/objects/queued-work.ts";
import { completedSpec } from "../../../../src/pods/host-admission.ts";
import type { HostState } from "../../../../src/simulation/host-state.ts";
import { JOBS } from "../../../../src/whole/jobs/type.ts";
import type { WholeWork } from "../../../../src/whole/type.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { host, namespace } from "../../cli/simulation/host.ts";
import { AT, entry, NOW, podSet, workload } from "./workloads.ts";

interface RoundParts {
  readonly told?: readonly Stored<Workload>[];
  readonly whole?: readonly WholeWork[];
  readonly flavors?: Readonly<Record<string, ResourceFlavor["spec"]>>;
}

// Two members with two nodes of 8 cores each.
const TWO = host({ west: {}, east: {} });

function judged(state: HostState, asking: readonly Stored<Workload>[], parts: RoundParts = {}): Verdict[] {
  const { told = [], flavors = {}, whole = [] } = parts;
  const classes = { runtimeClass: () => undefined, priorityClass: () => undefined };
  const withPods = (queued: Stored<Workload>): QueuedWorkload => {
    const found = (value: string): Stored<Pod>[] => state.proxies.filter((pod) => workloadsOfPod(pod).includes(value));
    return { workload: queued, pods: podsOf(queued, found) };
  };
  const round = judge({
    host: state,
    told: told.map(withPods),
    asking: asking.map(withPods),
    sources: {
      flavor: (name) => (flavors[name] === undefined ? undefined : { spec: flavors[name] }),
      complete: (spec) => completedSpec(spec, classes),
      whole: (uid) => whole.find((work) => work.uid === uid),
    },
    now: NOW,
  });
  let step = round.next();
  while (step.done !== true) step = round.next();
  const verdicts = step.value;
  return asking.flatMap(({ metadata }) => verdicts.get(`team/${metadata.name}`) ?? []);
}

/** A proxy of a workload's Job. */
function madePod(of: string, index: number, parts: Partial<Stored<Pod>> & { readonly on?: string } = {}): Stored<Pod> {
  const owner = { apiVersion: "batch/v1", kind: "Job", name: of, uid: `job-${of}`, controller: true };
  const { on, status } = parts;
  const pod = proxyPod({
    name: `${of}-${index}`,
    uid: `${of}-${index}`,
    metadata: {
      ownerReferences: [owner],
      annotations: { "legation.dev/delegate": "true", ...(on === undefined ? {} : { "legation.dev/cluster": on }) },
    },
    spec: {
      containers: [{ name: "main", image: "main:1", resources: { requests: { cpu: "5" } } }],
      ...(on === undefined ? {} : { nodeName: `legation-${on}` }),
    },
    ...(status === undefined ? {} : { status }),
  });
  return pod;
}

const ready = { conditions: ["Admitted"], entries: [entry({ state: "Ready" })] };

describe("a workload", () => {
  test("whose pods all find a place is ready, and hears where", () => {
    const verdict = { state: "Ready", message: "4 pods fit: 2 in east, 2 in west" };
    expect(judged(TWO, [workload("a", { podSets: [podSet({ count: 4, cpu: "5" })] })])).toEqual([verdict]);
  });

  test("with pods that find no place now hears of each member, in the plan's words", () => {
    expect(judged(TWO, [workload("a", { podSets: [podSet({ count: 9, cpu: "5" })] })])).toEqual([
      {
        state: "Retry",
        message: "3 of 9 pods would wait: east: cpu: 5 requested, 1 left; west: cpu: 5 requested, 1 left",
      },
    ]);
  });

  test("hears of the pod set that finds no place", () => {
    const podSets = [podSet({ name: "leader" }), podSet({ name: "workers", count: 9, cpu: "5" })];
    expect(judged(TWO, [workload("a", { podSets })])).toMatchObject([
      { state: "Retry", message: expect.stringMatching(/^3 of 9 pods of pod set workers would wait: east: /) },
    ]);
  });

  test("that fails takes no room from the next", () => {
    const large = workload("a", { podSets: [podSet({ count: 9, cpu: "5" })], priority: 9 });
    const small = workload("b", { podSets: [podSet({ count: 6, cpu: "5" })] });
    expect(judged(TWO, [large, small])).toMatchObject([{ state: "Retry" }, { state: "Ready" }]);
  });

  test("of higher priority is judged first, and of the same priority the older one", () => {
    const parts = { podSets: [podSet({ count: 4, cpu: "5" })] };
    const young = workload("young", { ...parts, createdAt: "2026-01-02T00:00:00Z" });
    expect(judged(TWO, [young, workload("old", parts)])).toMatchObject([{ state: "Retry" }, { state: "Ready" }]);
    const urgent = workload("urgent", { ...parts, createdAt: "2026-01-02T00:00:00Z", priority: 1 });
    expect(judged(TWO, [workload("old", parts), urgent])).toMatchObject([{ state: "Retry" }, { state: "Ready" }]);
  });

  test("is judged by the pods that are still to come of others that were told of room", () => {
    const told = [workload("told", { ...ready, podSets: [podSet({ count: 4, cpu: "5" })] })];
    const asking = [workload("a", { podSets: [podSet({ count: 3, cpu: "5" })] })];
    expect(judged(TWO, asking, { told })).toMatchObject([{ state: "Retry" }]);
    // Its pods are there, and not counted twice.
    const proxies = [0, 1].map((index) => madePod("told", index, { on: "west" }));
    const two = [workload("told", { ...ready, podSets: [podSet({ count: 2, cpu: "5" })] })];
    expect(judged({ ...TWO, proxies }, asking, { told: two })).toMatchObject([{ state: "Ready" }]);
  });

  test("that ends gives its room back pod by pod", () => {
    const proxies = [
      madePod("told", 0, { on: "west", status: { phase: "Succeeded" } }),
      madePod("told", 1, { on: "west" }),
    ];
    const podSets = [podSet({ count: 4, cpu: "5" })];
    const told = (reclaimed: number): Stored<Workload>[] => [
      workload("told", { ...ready, podSets, status: { reclaimablePods: [{ name: "main", count: reclaimed }] } }),
    ];
    const asking = [workload("a", { podSets: [podSet({ count: 3, cpu: "5" })] })];
    // One runs and two are to come.
    expect(judged({ ...TWO, proxies }, asking, { told: told(0) })).toMatchObject([{ state: "Ready" }]);
    expect(judged({ ...TWO, proxies }, asking, { told: told(1) })).toMatchObject([{ state: "Ready" }]);
    const four = [workload("a", { podSets: [podSet({ count: 4, cpu: "5" })] })];
    expect(judged({ ...TWO, proxies }, four, { told: told(1) })).toMatchObject([{ state: "Retry" }]);
    expect(judged({ ...TWO, proxies }, four, { told: told(2) })).toMatchObject([{ state: "Ready" }]);
  });

  test("that Kueue admits in part asks for that part", () => {
    const assignments = [{ name: "main", count: 6 }];
    const asking = workload("a", {
      podSets: [podSet({ count: 9, cpu: "5" })],
      status: { admission: { podSetAssignments: assignments } },
    });
    expect(judged(TWO, [asking])).toMatchObject([{ state: "Ready" }]);
  });

  test("gets the node labels and tolerations of its flavors", () => {
    const flavors = { west: { nodeLabels: { "legation.dev/cluster": "west" } } };
    const podSets = [podSet({ count: 4, cpu: "5" })];
    const podSetAssignments = [{ name: "main", count: 4, flavors: { cpu: "west", memory: "west" } }];
    const asking = workload("a", { podSets, status: { admission: { podSetAssignments } } });
    expect(judged(TWO, [asking], { flavors })).toMatchObject([
      { state: "Retry", message: expect.stringContaining("west: cpu: 5 requested, 1 left") },
    ]);
    const tainted = host({
      west: {
        status: {
          nodeKinds: [
            { count: 2, taints: [{ key: "gpu", effect: "NoSchedule" }], allocatable: { cpu: "8", pods: "9" } },
          ],
        },
      },
    });
    const one = workload("a", {
      status: { admission: { podSetAssignments: [{ name: "main", flavors: { cpu: "gpu" } }] } },
    });
    expect(judged(tainted, [one])).toMatchObject([{ state: "Rejected" }]);
    const tolerations = [{ key: "gpu", operator: "Exists", effect: "NoSchedule" }];
    expect(judged(tainted, [one], { flavors: { gpu: { tolerations } } })).toMatchObject([{ state: "Ready" }]);
  });

  test("gets the domains that Kueue's topology assignment gives its pods", () => {
    const podSets = [podSet({ count: 4, cpu: "5" })];
    const topologyAssignment = (counts: readonly number[]): TopologyAssignment => ({
      levels: ["legation.dev/cluster"],
      slices: [
        {
          domainCount: 2,
          valuesPerLevel: [{ individual: { roots: ["we", "ea"], suffix: "st" } }],
          podCounts: { individual: counts },
        },
      ],
    });
    const asking = (counts: readonly number[]): Stored<Workload> => {
      const assignment = { name: "main", count: 4, topologyAssignment: topologyAssignment(counts) };
      return workload("a", { podSets, status: { admission: { podSetAssignments: [assignment] } } });
    };
    expect(judged(TWO, [asking([3, 1])])).toEqual([{ state: "Ready", message: "4 pods fit: 1 in east, 3 in west" }]);
    expect(judged(TWO, [asking([4, 0])])).toMatchObject([{ state: "Retry" }]);
  });

  test("whose pod set is to be in one topology domain needs one member for all of it", () => {
    const topologyRequest = { required: "legation.dev/cluster" };
    const asking = (count: number): Stored<Workload> =>
      workload("a", { podSets: [podSet({ count, cpu: "5", topologyRequest })] });
    expect(judged(TWO, [asking(3)])).toMatchObject([
      { message: expect.stringMatching(/^3 pods fit: 3 in (east|west)$/) },
    ]);
    expect(judged(TWO, [asking(4)])).toMatchObject([{ state: "Retry" }]);
  });

  test("whose pods stay on the host is ready", () => {
    const own = workload("a", { podSets: [podSet({ cpu: "99", template: {} })] });
    expect(judged(TWO, [own])).toMatchObject([
      { state: "Ready", message: expect.stringContaining("its pods do not ask for delegation") },
    ]);
    expect(judged({ ...TWO, namespaces: [] }, [own])).toEqual([
      { state: "Ready", message: "namespace team has no label legation.dev/delegation: its pods run on the host" },
    ]);
    const overflow = [namespace("team", { labels: { "legation.dev/delegation": "overflow" } })];
    expect(judged({ ...TWO, namespaces: overflow }, [own])).toMatchObject([
      { state: "Ready", message: expect.stringContaining("the host's own scheduler is asked") },
    ]);
  });

  test("of a whole Job needs one member for all of its pods, and the one that has it", () => {
    const job = (parts: Pick<Job, "status"> = {}, annotations = {}): Stored<Job> => {
      const metadata = { namespace: "team", name: "a", uid: "job-a", resourceVersion: "1", annotations };
      return { metadata, ...parts };
    };
    const asking = (count: number): Stored<Workload>[] => [
      workload("a", {
        podSets: [podSet({ count, cpu: "5", template: { ...podSet({ cpu: "5" }).template, metadata: {} } })],
      }),
    ];
    expect(judged(TWO, asking(3), { whole: [JOBS.workOf(job())] })).toMatchObject([
      { message: expect.stringMatching(/^3 pods fit: 3 in /) },
    ]);
    expect(judged(TWO, asking(4), { whole: [JOBS.workOf(job())] })).toMatchObject([{ state: "Retry" }]);
    const begun = job({}, { "legation.dev/cluster": "west" });
    expect(judged(TWO, asking(3), { whole: [JOBS.workOf(begun)] })).toMatchObject([
      { message: "3 pods fit: 3 in west" },
    ]);
    // Its pods are in the member only, and the Job's status counts them.
    const told = [workload("a", { ...ready, podSets: [podSet({ count: 3, cpu: "5" })] })];
    const other = [workload("b", { podSets: [podSet({ count: 6, cpu: "5" })] })];
    expect(judged(TWO, other, { told, whole: [JOBS.workOf(begun)] })).toMatchObject([{ state: "Retry" }]);
    const runs = { ...begun, status: { active: 2, succeeded: 1 } };
    expect(judged(TWO, other, { told, whole: [JOBS.workOf(runs)] })).toMatchObject([{ state: "Ready" }]);
  });

  test("of a whole object needs one member for all of its pods, and the one that it has begun in", () => {
    const type = {
      spec: {
        ...{ group: "example.com", version: "v1", kind: "Set", plural: "sets", exclusive: true },
        queue: { suspend: "/spec/suspend", templates: ["/spec/template"] },
      },
    };
    const work = (suspend: boolean, cluster?: string, hasBegun = false): WholeWork => {
      const annotations = {
        "legation.dev/overrides": '[{"patch":[{"op":"add","path":"/spec/mode","value":1}]}]',
        ...(cluster === undefined ? {} : { "legation.dev/cluster": cluster }),
      };
      const metadata = { namespace: "team", name: "a", uid: "job-a", resourceVersion: "1", annotations };
      const expressions = { hasBegun: () => hasBegun, podCounts: () => [] };
      return workOfObject({ metadata, spec: { suspend } }, { type, expressions });
    };
    const bare = (cpu: string): object => ({ ...podSet({ cpu }).template, metadata: {} });
    const podSets = [
      podSet({ name: "leader", cpu: "5", template: bare("5") }),
      podSet({ name: "workers", count: 2, cpu: "5", template: bare("5") }),
    ];
    const asking = [workload("a", { podSets })];
    expect(judged(TWO, asking, { whole: [work(true)] })).toMatchObject([
      { message: expect.stringMatching(/^3 pods fit: 3 in (east|west)$/) },
    ]);
    const four = [workload("a", { podSets: [...podSets, podSet({ name: "more", template: bare("5") })] })];
    expect(judged(TWO, four, { whole: [work(true)] })).toMatchObject([{ state: "Retry" }]);
    // Kueue took it back before it began: its next flavor may be another member's.
    const flavors = { east: { nodeLabels: { "legation.dev/cluster": "east" } } };
    const assignments = podSets.map(({ name, count }) => ({ name, count, flavors: { cpu: "east" } }));
    const toEast = [workload("a", { podSets, status: { admission: { podSetAssignments: assignments } } })];
    expect(judged(TWO, toEast, { flavors, whole: [work(true, "west")] })).toMatchObject([
      { message: "3 pods fit: 3 in east" },
    ]);
    expect(judged(TWO, toEast, { flavors, whole: [work(true, "west", true)] })).toMatchObject([
      { message: "3 pods fit: 3 in west" },
    ]);
    // Its pods are in the member only, where they are counted as others'.
    const told = [workload("a", { ...ready, podSets })];
    const other = [workload("b", { podSets: [podSet({ count: 4, cpu: "5" })] })];
    expect(judged(TWO, other, { told, whole: [work(true)] })).toMatchObject([{ state: "Retry" }]);
    expect(judged(TWO, other, { told, whole: [work(false, "west", true)] })).toMatchObject([{ state: "Ready" }]);
  });

  test("asks for what a pod's limits request", () => {
    const limited = { containers: [{ name: "main", image: "main:1", resources: { limits: { cpu: "99" } } }] };
    const template = { ...podSet().template, spec: limited };
    expect(judged(TWO, [workload("a", { podSets: [podSet({ template })] })])).toMatchObject([{ state: "Rejected" }]);
  });

  test("that Legation's admission would refuse is rejected with its words", () => {
    const template = { ...podSet().template, metadata: { annotations: { "legation.dev/clusters": "" } } };
    expect(judged(TWO, [workload("a", { podSets: [podSet({ template })] })])).toMatchObject([
      {
        state: "Rejected",
        message: expect.stringMatching(/^admission refuses its pods: annotation legation.dev\/clusters/),
      },
    ]);
  });
});

describe("a workload that no member could ever run", () => {
  const huge = workload("a", { podSets: [podSet({ cpu: "9" })] });

  test("is rejected with the reason of each member", () => {
    expect(judged(TWO, [huge])).toEqual([
      {
        state: "Rejected",
        message:
          "no member could ever run a pod of pod set main: east: cpu: 9 requested, the largest node has 8; west: cpu: 9 requested, the largest node has 8",
      },
    ]);
  });

  test("is not rejected for members that are lost, cordoned or full", () => {
    const small = workload("a", { podSets: [podSet({ cpu: "8" })] });
    const lost = {
      type: "Ready",
      status: "False",
      reason: "ProbeFailed",
      message: "no answer",
      lastTransitionTime: "",
    } as const;
    for (const member of [
      { status: { conditions: [lost] } },
      { node: { unschedulable: true } },
      { status: { requestedByOthers: { cpu: "16" } } },
    ]) {
      expect(judged(host({ west: member }), [small])).toMatchObject([{ state: "Retry" }]);
    }
  });

  test("is asked for again while the member of its flavor leaves, and rejected once that has left", () => {
    const flavors = { west: { nodeLabels: { "legation.dev/cluster": "west" } } };
    const podSetAssignments = [{ name: "main", count: 1, flavors: { cpu: "west" } }];
    const pinned = workload("a", { status: { admission: { podSetAssignments } } });
    const clusters = TWO.clusters.map(({ metadata, ...rest }) =>
      metadata.name === "west" ? { ...rest, metadata: { ...metadata, deletionTimestamp: AT } } : { ...rest, metadata },
    );
    expect(judged({ ...TWO, clusters }, [pinned], { flavors })).toMatchObject([
      { state: "Retry", message: expect.stringContaining("west: ") },
    ]);
    expect(judged(host({ east: {} }), [pinned], { flavors })).toMatchObject([{ state: "Rejected" }]);
  });

  test("is asked for again while a member's nodes are not all known", () => {
    for (const status of [{ nodes: 3 }, { nodes: 0, nodeKinds: [], allocatable: {}, largestNode: {} }]) {
      expect(judged(host({ west: { status }, east: {} }), [huge])).toMatchObject([{ state: "Retry" }]);
    }
    expect(judged(host({}), [huge])).toEqual([
      { state: "Retry", message: "1 of 1 pod would wait: no member cluster has joined: see `legation join`" },
    ]);
  });
});
