import { afterEach, expect, test } from "vitest";
import { virtualNodeName } from "../../../../src/api/keys.ts";
import { type RunningControllers, startControllers } from "../../../../src/controllers/start-controllers.ts";
import { controllersOf } from "../../../bench/scale/controllers.ts";
import { type Fleet, fleetOf } from "../../../bench/scale/fleet.ts";
import type { SimulatedCluster } from "../../../bench/scale/simulated-cluster.ts";
import { eventually } from "../../../support/harness/wait.ts";

const NAMESPACE = "load";
const IMPORTANT = 1000;
const WAITS = { timeout: 60_000 };

let fleet: Fleet;
let controllers: RunningControllers | undefined;

afterEach(async () => {
  await controllers?.stop();
  controllers = undefined;
  await fleet.close();
});

/** Fills a member with one pod of this priority. Its scheduler reports of later pods that it can preempt nothing for them. */
function makeFull(member: SimulatedCluster, priority: number): void {
  const amounts = { cpu: "1", memory: "1Gi", pods: "1" };
  const node = found(member.get("nodes", "", "node-1"));
  member.put("nodes", { ...node, status: { ...(node.status as object), capacity: amounts, allocatable: amounts } });
  const runs = found(member.onPod);
  member.onPod = (pod) => {
    if (String(pod.metadata.name).startsWith("fills")) {
      const running = runs(pod);
      return { ...running, spec: { ...(running.spec as object), priority } };
    }
    const message = "0/1 nodes are available: 1 Too many pods. preemption: No preemption victims found";
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message };
    return { ...pod, status: { phase: "Pending", conditions: [condition] } };
  };
}

function found<T>(object: T | undefined): T {
  if (object === undefined) throw new Error("it is there");
  return object;
}

async function fill(member: string): Promise<void> {
  const pod = fleet.pod(`fills-${member}`);
  const annotations = { ...(pod.metadata.annotations as object), "legation.dev/clusters": member };
  fleet.host.put("pods", { ...pod, metadata: { ...pod.metadata, annotations } });
  await has(() => fleet.host.get("pods", NAMESPACE, `fills-${member}`)?.spec, virtualNodeName(member));
}

/** Waits until the text is in the object. */
function has(object: () => unknown, text: string): Promise<unknown> {
  return eventually(() => JSON.stringify(object() ?? {}).includes(text), { intervalMs: 20 });
}

function cordon(member: string, unschedulable: boolean): void {
  const node = found(fleet.host.get("nodes", "", virtualNodeName(member)));
  fleet.host.put("nodes", { ...node, spec: { ...(node.spec as object), unschedulable } });
}

test(
  "moves a pod of high priority from a member that can preempt nothing for it to one with pods of lower priority",
  WAITS,
  async () => {
    fleet = await fleetOf(2, 0);
    const [first, second] = fleet.members.map(found);
    makeFull(found(first), IMPORTANT);
    makeFull(found(second), 0);
    for (const name of ["member-0", "member-1"]) {
      const cluster = found(fleet.host.get("clusters", "", name));
      fleet.host.put("clusters", { ...cluster, spec: { ...(cluster.spec as object), scheduleTimeoutSeconds: 1 } });
    }
    controllers = await startControllers(controllersOf(fleet), new AbortController().signal);
    await fill("member-0");
    await fill("member-1");
    cordon("member-1", true);
    const pod = fleet.pod("important");
    fleet.host.put("pods", { ...pod, spec: { ...(pod.spec as object), priority: IMPORTANT } });
    await has(() => fleet.host.get("pods", NAMESPACE, "important")?.status, "No preemption victims found");
    expect(first?.get("pods", NAMESPACE, "important")).toBeDefined();

    cordon("member-1", false);
    await has(() => second?.get("pods", NAMESPACE, "important")?.metadata, "important");
    expect(first?.get("pods", NAMESPACE, "important")).toBeUndefined();
  },
);
