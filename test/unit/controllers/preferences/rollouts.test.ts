import { describe, expect, test } from "vitest";
import { DELETION_COST_ANNOTATION, virtualNodeName } from "../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { ClusterPreferences, SchedulingPreferences } from "../../../../src/api/preferences.ts";
import { divide, type Replicas } from "../../../../src/placement/division.ts";
import { rank } from "../../../../src/placement/rank.ts";
import { memberOf } from "../../../../src/pods/proxy.ts";
import { Divisions } from "../../../../src/scheduling/divisions.ts";
import { updatedOf, workloadOf } from "../../../../src/scheduling/workload.ts";
import { proxyPod } from "../../../support/builders/pod.ts";

const DEPLOYMENT = "pod-template-hash";
const ROLLOUT = "rollouts-pod-template-hash";
const NAMES = ["west", "east"];
const ALLOCATABLE = { pods: 1_000_000 };
const CANDIDATES = NAMES.map((name) => ({
  name,
  labels: {},
  allocatable: ALLOCATABLE,
  largestNode: ALLOCATABLE,
  used: {},
}));

const weights = (west: number, east: number): Record<string, ClusterPreferences> => ({
  west: { weight: west, minReplicas: 0 },
  east: { weight: east, minReplicas: 0 },
});
const AT_MOST: Record<string, ClusterPreferences> = {
  west: { weight: 2, minReplicas: 0, maxReplicas: 6 },
  east: { weight: 1, minReplicas: 0 },
};
const AT_LEAST: Record<string, ClusterPreferences> = {
  west: { weight: 1, minReplicas: 0 },
  east: { weight: 0, minReplicas: 4 },
};

function podOf(set: string, uid: string, labels: Record<string, string>): Stored<Pod> {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: set, uid: set, controller: true };
  return proxyPod({ name: uid, uid, metadata: { labels, ownerReferences: [owner] } });
}

/** ReplicaSets whose replicas are placed by Legation's own division, and are ready at once. */
class ReplicaSets {
  readonly #divisions = new Divisions();
  readonly #preferences: SchedulingPreferences;
  readonly #pods = new Map<string, Stored<Pod>[]>();
  #made = 0;

  constructor(clusters: Record<string, ClusterPreferences>) {
    this.#preferences = { rebalance: false, clusters };
  }

  /** Creates or deletes replicas until the ReplicaSet has this size. */
  resize(set: string, replicas: number, labels: Record<string, string>): void {
    const pods = this.#pods.get(set) ?? [];
    const made = Array.from({ length: Math.max(0, replicas - pods.length) }, () =>
      podOf(set, `${set}-${this.#made++}`, labels),
    );
    for (const pod of made) this.#divisions.update(pod);
    const all = [...pods, ...made.map((pod) => this.#place(pod))].sort((a, b) => costOf(b) - costOf(a));
    for (const gone of all.slice(replicas)) this.#divisions.remove(gone);
    this.#pods.set(set, all.slice(0, replicas));
  }

  of(...sets: readonly string[]): Replicas {
    const counts: Record<string, number> = { west: 0, east: 0 };
    for (const pod of sets.flatMap((set) => this.#pods.get(set) ?? [])) {
      const member = memberOf(pod) ?? "none";
      counts[member] = (counts[member] ?? 0) + 1;
    }
    return counts;
  }

  #place(proxy: Stored<Pod>): Stored<Pod> {
    const rules = [this.#divisions.rule(proxy, this.#preferences, CANDIDATES)];
    const [member = "none"] = rank({ requests: { pods: 1 }, rules, candidates: CANDIDATES }).fitting;
    this.#divisions.proxies.place(proxy.metadata.uid, member);
    const bound = {
      ...proxy,
      metadata: { ...proxy.metadata, annotations: this.#divisions.costAnnotations(proxy.metadata.uid) },
      spec: { containers: [], nodeName: virtualNodeName(member) },
      status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
    };
    this.#divisions.update(bound);
    return bound;
  }
}

function costOf({ metadata }: Stored<Pod>): number {
  return Number(metadata.annotations?.[DELETION_COST_ANNOTATION] ?? 0);
}

/** Runs two ReplicaSets of one Deployment or Rollout through these sizes of the old and the new one. */
function sizes(label: string, clusters: Record<string, ClusterPreferences>, steps: readonly [number, number][]) {
  const sets = new ReplicaSets(clusters);
  const seen = steps.map(([old, fresh]) => {
    sets.resize("web-old", old, { [label]: "old" });
    sets.resize("web-new", fresh, { [label]: "new" });
    return { together: sets.of("web-old", "web-new"), fresh: sets.of("web-new") };
  });
  return { seen, end: seen.at(-1)?.fresh };
}

function off(placed: Replicas, clusters: Record<string, ClusterPreferences>): number {
  const total = Object.values(placed).reduce((sum, one) => sum + one, 0);
  const preferences = { rebalance: false, clusters };
  const ideal = divide({ total, preferences, clusters: NAMES, key: "team/web" }).replicas;
  return Math.max(...NAMES.map((name) => Math.abs((placed[name] ?? 0) - (ideal[name] ?? 0))));
}

describe("the ReplicaSets of a Rollout", () => {
  const canary: [number, number][] = [
    [10, 0],
    [8, 2],
    [5, 5],
    [2, 8],
    [0, 10],
  ];
  const scaledAndAborted: [number, number][] = [
    [10, 0],
    [8, 2],
    [16, 4],
    [4, 1],
    [8, 2],
    [10, 0],
  ];
  const blueGreen: [number, number][] = [
    [10, 0],
    [10, 10],
    [0, 10],
  ];
  const preview: [number, number][] = [
    [10, 0],
    [10, 1],
    [10, 10],
    [0, 10],
  ];
  const routed: [number, number][] = [
    [10, 0],
    [10, 1],
    [10, 2],
    [10, 4],
    [10, 6],
    [10, 8],
    [10, 10],
    [0, 10],
  ];

  test.each([
    ["a canary", canary],
    ["a canary that is scaled and aborted", scaledAndAborted],
    ["blue and green", blueGreen],
    ["a preview of one", preview],
    ["a canary beside all of the stable ones", routed],
  ])("are divided together, within one by weights: %s", (_, steps) => {
    for (const clusters of [weights(1, 1), weights(2, 1), weights(5, 3)]) {
      const { seen, end = {} } = sizes(ROLLOUT, clusters, steps);
      expect(Math.max(...seen.map(({ together }) => off(together, clusters)))).toBeLessThanOrEqual(1);
      expect(off(end, clusters)).toBe(0);
      expect(seen).toEqual(sizes(DEPLOYMENT, clusters, steps).seen);
    }
  });

  test("do not each take their minReplicas", () => {
    const { seen } = sizes(ROLLOUT, AT_LEAST, canary);
    expect(seen.map(({ together }) => together.east)).toEqual([4, 5, 5, 5, 4]);
  });

  test.each([DEPLOYMENT, ROLLOUT])(
    "are within one at the end after any steps, where many replicas go at once: %s",
    (label) => {
      for (const clusters of [AT_MOST, AT_LEAST]) {
        for (const steps of [blueGreen, preview, routed]) {
          expect(off(sizes(label, clusters, steps).end ?? {}, clusters)).toBeLessThanOrEqual(1);
        }
      }
    },
  );

  test("do not include those of a Deployment of the same name, nor others with similar names", () => {
    const strangers: readonly [string, Record<string, string>][] = [
      ["web-old", { [DEPLOYMENT]: "old" }],
      ["web-other", { [ROLLOUT]: "x" }],
      ["web-bare", {}],
      ["web", { [ROLLOUT]: "new" }],
    ];
    for (const [name, labels] of strangers) {
      const sets = new ReplicaSets(AT_LEAST);
      sets.resize(name, 10, labels);
      sets.resize("web-new", 4, { [ROLLOUT]: "new" });
      expect(sets.of("web-new"), name).toEqual({ west: 0, east: 4 });
    }
  });
});

test.each<[string, Record<string, string>, ReturnType<typeof updatedOf>, string]>([
  ["web-5f7", { [DEPLOYMENT]: "5f7" }, { kind: "Deployment", name: "team/web" }, "team/web"],
  ["web-5f7", { [ROLLOUT]: "5f7" }, { kind: "Rollout", name: "team/web" }, "team/web"],
  ["web-5f7", { [DEPLOYMENT]: "x", [ROLLOUT]: "5f7" }, { kind: "Rollout", name: "team/web" }, "team/web"],
  ["trial-canary", { [ROLLOUT]: "5f7" }, undefined, "team/trial-canary"],
  ["web-5f7", { [ROLLOUT]: "f7" }, undefined, "team/web-5f7"],
  ["web-5f7", {}, undefined, "team/web-5f7"],
  ["web-", { [ROLLOUT]: "" }, undefined, "team/web-"],
])("assigns ReplicaSet %s with pods' labels %j to %j", (set, labels, updated, workload) => {
  const pod = podOf(set, `${set}-0`, labels);
  expect(updatedOf(pod)).toEqual(updated);
  expect(workloadOf(pod)).toBe(workload);
});
