import { expect, test } from "vitest";
import { clusterQueues, localQueues, resourceFlavors, workloads } from "../../../../src/api/resources.ts";
import type { QueueStatus } from "../../../../src/cli/explain/queues.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { queuesText } from "../../../../src/cli/status/queues-text.ts";
import { resourceOf } from "../../../../src/kube/optional-resource.ts";
import { storedFlavor, storedLocalQueue, storedQueue, storedWorkload } from "../../../support/builders/kueue.ts";
import { accountInTeam, MEMBERS_TOO } from "../account-in-team.ts";
import { recordedSession } from "../session.ts";

const NOW = Date.parse("2026-01-01T00:05:00Z");
const V1BETA2 = { apiVersion: "kueue.x-k8s.io/v1beta2" };
const MAY_READ = "which the ClusterRole legation-viewer lets you read";

const QUEUE: QueueStatus = {
  name: "teams",
  followsMembers: true,
  admitted: 2,
  pending: 5,
  flavors: [
    {
      name: "west",
      members: ["west"],
      quotas: [
        { resource: "cpu", used: 126, nominal: 128 },
        { resource: "memory", used: 2 ** 34, nominal: 2 ** 35 },
      ],
    },
    { name: "own", members: [], quotas: [{ resource: "cpu", used: 0, nominal: 4 }] },
  ],
  waiting: [
    {
      ...{ namespace: "team", kind: "Job", name: "sweep", workload: "job-sweep-1", since: "2026-01-01T00:00:00Z" },
      why: ["admission check room: east: full; west: not ready"],
      waitsFor: "has quota, and waits for admission check room",
    },
  ],
};

test("the text has a line of each queue, and what waits in it, for what, since when and why", () => {
  const stopped = { ...QUEUE, name: "own", followsMembers: false, waiting: [], stopped: "is stopped" };
  const lines = queuesText([stopped, QUEUE], NOW, recordedSession().terminal).join("\n").split("\n");
  const quotas = "west: cpu 126/128, memory 16Gi/32Gi; own: cpu 0/4";
  expect(lines).toEqual([
    "",
    "QUEUE  ADMITTED  WAITING  FOLLOWS MEMBERS  QUOTA USED/ALL",
    `own    2         5        no               ${quotas}; is stopped`,
    `teams  2         5        yes              ${quotas}`,
    "Job team/sweep waits in teams for 5m",
    "  has quota, and waits for admission check room",
    "  admission check room: east: full",
    "  west: not ready",
    "4 more wait in teams",
  ]);
});

const KUEUE = [
  [
    resourceOf(clusterQueues, V1BETA2),
    storedQueue("teams", { west: { used: "6", nominal: "8" } }, { status: { pendingWorkloads: 2 } }),
  ],
  [resourceOf(resourceFlavors, V1BETA2), storedFlavor("west")],
  [resourceOf(localQueues, V1BETA2), storedLocalQueue("team", "teams")],
  [resourceOf(localQueues, V1BETA2), storedLocalQueue("other", "teams")],
  [resourceOf(workloads, V1BETA2), storedWorkload("team", "own")],
  [resourceOf(workloads, V1BETA2), storedWorkload("other", "foreign")],
] as const;
const QUEUE_TYPES = ["clusterqueues", "resourceflavors"];
const ALL_TYPES = [...QUEUE_TYPES, "localqueues", "workloads"];

async function shown(objects: Parameters<typeof accountInTeam>[0], more: readonly string[]) {
  const session = accountInTeam(objects, [...MEMBERS_TOO, "pods", ...more]);
  expect(await runProgram(["status", "-o", "json"], session, "1")).toBe(0);
  return JSON.parse(session.out.join(""));
}

test("status shows queues and what waits in them to an account that may read them", async () => {
  const { queues, hidden } = await shown(KUEUE, ALL_TYPES);
  expect(hidden).toBeUndefined();
  expect(queues).toMatchObject([{ name: "teams", waiting: [{ name: "foreign" }, { name: "own" }] }]);
});

test("status shows what waits of the account's own namespace, and what it hides", async () => {
  const { queues, hidden } = await shown(KUEUE, QUEUE_TYPES);
  expect(queues).toMatchObject([{ name: "teams", pending: 2, waiting: [{ name: "own" }] }]);
  expect(hidden).toBe(`not shown: workloads of other namespaces in Kueue's queues, ${MAY_READ}`);
});

test("status says that flavors are hidden, which tell the members of a queue", async () => {
  const { queues, hidden } = await shown(KUEUE, ["clusterqueues", "localqueues", "workloads"]);
  expect(queues).toMatchObject([{ flavors: [{ name: "west", members: [] }] }]);
  expect(hidden).toBe(`not shown: the members of Kueue's flavors, ${MAY_READ}`);
});

test("status says that Kueue's queues are hidden from an account that may not read them", async () => {
  const { queues, hidden } = await shown(KUEUE, []);
  expect(queues).toEqual([]);
  expect(hidden).toBe(`not shown: Kueue's queues, ${MAY_READ}`);
});

test("status says nothing of queues where the host does not serve Kueue", async () => {
  const { queues, hidden } = await shown([], []);
  expect([queues, hidden]).toEqual([undefined, undefined]);
});
