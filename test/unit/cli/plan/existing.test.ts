import { describe, expect, test } from "vitest";
import type { PersistentVolumeClaim, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { DryRunAnswer } from "../../../../src/cli/plan/dry-run.ts";
import type { Plan, WorkloadPlan } from "../../../../src/cli/plan/outcome.ts";
import { planText, shortfallOf } from "../../../../src/cli/plan/text.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";
import { deployment, division, type PlanParts, planWith } from "./plan-with.ts";

const members = { east: {}, west: {} };
const asks = { "legation.dev/delegate": "true" };
const wide = { containers: [{ name: "main", image: "web:1", resources: { requests: { cpu: "7" } } }] };

function workload(kind: string, spec: object): WrittenObject {
  const template = { metadata: { annotations: asks }, spec: { containers: [{ name: "main", image: "web:1" }] } };
  return {
    apiVersion: kind === "Job" ? "batch/v1" : "apps/v1",
    kind,
    metadata: { name: "web" },
    spec: { template, ...spec },
  };
}

/** A pod in west, or in no member, that fills half of it. */
function replica(name: string, node: string | undefined = "legation-west"): Stored<Pod> {
  const spec = { ...wide, ...(node === undefined ? {} : { nodeName: node }) };
  return proxyPod({ name, uid: name, spec, status: node === undefined ? { phase: "Pending" } : runningStatus() });
}

async function planned(
  object: WrittenObject,
  stored: object,
  pods: readonly Stored<Pod>[],
  parts: PlanParts = {},
): Promise<Plan> {
  const existing = { stored: { ...object, ...stored }, pods };
  return planWith(host(members, { proxies: pods }), [object], { existing, ...parts });
}

const first = async (...of: Parameters<typeof planned>): Promise<WorkloadPlan | undefined> =>
  (await planned(...of)).workloads[0];

describe("a workload that is on the host already", () => {
  test("has all wanted pods placed anew, and its present ones counted where they are", async () => {
    const object = deployment(3, { "legation.dev/group": "flow" }, wide);
    const present = [
      replica("a"),
      replica("b"),
      pod({ name: "c", uid: "c", spec: { nodeName: "n1" } }),
      replica("d", ""),
    ];
    const plan = await planned(object, {}, present);
    // Room and group of the old pods do not hold the new ones where they were.
    expect(division(plan)).toEqual({ east: 2, west: 0 });
    expect(plan.workloads[0]).toMatchObject({
      notes: [
        "has 4 pods now (1 on this cluster, 1 without a node, 2 in west); the plan places all its pods anew",
        expect.stringMatching(/^1 of them waits now: NotPlaced: no controller has reported on it yet/),
      ],
      clusters: [
        { cluster: "east", now: 0, waiting: 1 },
        { cluster: "west", now: 2 },
      ],
    });
  });

  test("keeps the number of pods of an autoscaler where the manifest has none", async () => {
    const stored = workload("Deployment", { replicas: 3 });
    expect((await first(workload("Deployment", {}), stored, []))?.pods).toHaveLength(3);
    expect((await first(workload("Deployment", { replicas: 1 }), stored, []))?.pods).toHaveLength(1);
  });

  test("is not checked by a quota that its present pods fill", async () => {
    const answer = (): DryRunAnswer<never> => ({ is: "refused", message: "exceeded quota: team", ofQuota: true });
    const plan = await planned(deployment(1), {}, [replica("a")], { answer });
    expect(plan).toMatchObject({
      fits: true,
      notChecked: [
        expect.stringMatching(/ for Deployment team\/web: exceeded quota: team, with the pods that it has now$/),
      ],
    });
    expect((await planned(deployment(1), {}, [], { answer })).fits).toBe(false);
  });
});

describe("a Job that exists", () => {
  const job = workload("Job", { completions: 10, parallelism: 5 });

  test.each<[number, object]>([
    [2, { succeeded: 8, active: 2 }],
    [3, { succeeded: 7, active: 2 }],
    [2, { succeeded: 6, uncountedTerminatedPods: { succeeded: ["x", "y"] } }],
  ])("wants the %i pods that its stored status leaves, whatever status the manifest has", async (count, status) => {
    expect((await first({ ...job, status: { succeeded: 0 } }, { status }, []))?.pods).toHaveLength(count);
  });

  test("without a number of completions wants no more pods once one has succeeded", async () => {
    const queue = workload("Job", { parallelism: 5 });
    expect((await first(queue, { status: { active: 2 } }, []))?.pods).toHaveLength(5);
    expect((await first(queue, { status: { active: 2, succeeded: 1 } }, []))?.pods).toHaveLength(2);
  });

  test.each([
    ["Complete", "SuccessCriteriaMet"],
    ["Failed", "FailureTarget"],
  ])("wants no more pods once it is %s, and names no condition on the way there", async (type, before) => {
    const notes = [`has ended (${type}): no more pods come`];
    const status = { conditions: [before, type].map((each) => ({ type: each, status: "True" })) };
    expect(await first(job, { status }, [])).toMatchObject({ outcome: "fits", pods: [], notes });
  });
});

describe("a bare pod that exists", () => {
  const bare = { apiVersion: "v1", kind: "Pod", metadata: { name: "web", annotations: asks }, spec: wide };

  test.each([
    ["keeps its member", [replica("web")], "is there already (in west): a pod keeps its place"],
    ["keeps its node of the host", [replica("web", "n1")], "is there already (on this cluster): a pod keeps its place"],
    ["does not come back once it ends", [], "has ended or is being deleted: nothing comes in its place"],
  ])("%s", async (_, present, note) => {
    expect(await first(bare, {}, present)).toMatchObject({ outcome: "fits", pods: [], notes: [note] });
  });

  const waiting = (status: Stored<Pod>["status"]): Stored<Pod> =>
    proxyPod({ name: "web", uid: "web", spec: wide, status: { phase: "Pending", ...status } });
  const notPlaced = { type: "PodScheduled", status: "False", reason: "NotPlaced", lastTransitionTime: "" };

  test.each([
    [
      "for a member, with the reasons of its condition",
      waiting({ conditions: [{ ...notPlaced, message: "east: full; west: cordoned" }] }),
      { reason: "NotPlaced", message: "east: full; west: cordoned" },
    ],
    [
      "for its scheduling gates",
      { ...waiting({}), spec: { ...wide, schedulingGates: [{ name: "kueue.x-k8s.io/admission" }] } },
      { reason: "SchedulingGated", message: "waits for its scheduling gates: kueue.x-k8s.io/admission" },
    ],
    ["for a controller", waiting({}), { reason: "NotPlaced", message: expect.stringContaining("legation controller") }],
  ])("waits %s", async (_, present, why) => {
    const plan = await planned(bare, {}, [present]);
    expect(plan).toMatchObject({
      fits: false,
      workloads: [
        {
          outcome: "waits",
          notes: ["is there already (without a node): a pod keeps its place"],
          pods: [{ name: "web", ...why }],
        },
      ],
    });
    expect(shortfallOf(plan)).toBe("1 pod would wait");
    expect(planText(plan, recordedSession().terminal)).toMatch(
      /^Pod team\/web: 1 of 1 pods would wait\n.*\n {2}web waits: /,
    );
  });
});

describe("pods of a StatefulSet", () => {
  test("go where their claims are", async () => {
    const claim = (name: string, cluster: string): Stored<PersistentVolumeClaim> => ({
      metadata: {
        name,
        namespace: "team",
        uid: name,
        resourceVersion: "1",
        annotations: { "legation.dev/cluster": cluster },
      },
    });
    const claims = new Map([["team", [claim("data-web-1", "west"), claim("data-web-2", "east")]]]);
    const set = workload("StatefulSet", { replicas: 3, volumeClaimTemplates: [{ metadata: { name: "data" } }] });
    expect((await first(set, {}, [replica("web-0")], { found: { claims } }))?.pods).toEqual([
      { name: "web-0", cluster: "east" },
      { name: "web-1", cluster: "west" },
      { name: "web-2", cluster: "east" },
    ]);
  });

  test("begin at the first ordinal", async () => {
    const set = workload("StatefulSet", { replicas: 2, ordinals: { start: 3 } });
    expect((await first(set, {}, []))?.pods.map(({ name }) => name)).toEqual(["web-3", "web-4"]);
  });
});
