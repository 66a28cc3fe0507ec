import { expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { KubeNode, Stored } from "../../../../src/api/kubernetes.ts";
import { formatAmounts } from "../../../../src/api/quantity.ts";
import type { WorkloadPlan } from "../../../../src/cli/plan/outcome.ts";
import { parseDocuments } from "../../../../src/cli/shared/documents.ts";
import { totalsOf } from "../../../../src/clusters/node-totals.ts";
import { nodeKindsOf } from "../../../../src/placement/node-kinds.ts";
import { MEMBER_NAMES, MEMBERS, type MemberName } from "../../../support/scenarios/members.ts";
import type { Expected, Scenario } from "../../../support/scenarios/scenario.ts";
import { SCENARIOS } from "../../../support/scenarios/table.ts";
import { SCHEDULER } from "../../../support/scenarios/words.ts";
import { namespace } from "../simulation/host.ts";
import { planWith } from "./plan-with.ts";

/** Scenarios that a member's answer decides, which no plan can know: their names or messages say so. */
const ONLY_MEMBERS_KNOW = /its API server refused|nodes are available/;
const ANSWERED_BY_MEMBERS = /^whole nodes: |^a member whose API server refuses/;

/** The Cluster of a member as the controller reports on it. */
function reported(name: MemberName): Stored<Cluster> {
  const { labels, spec, nodes: described } = MEMBERS[name];
  const conditions = [{ type: "Ready", status: "True" }];
  const nodes: KubeNode[] = described.map((node) => ({ ...node, status: { ...node.status, conditions } }));
  const { allocatable, largestNode } = totalsOf(nodes);
  const kinds = nodeKindsOf(nodes);
  return {
    metadata: { name, labels, uid: name, resourceVersion: "1" },
    spec: { credentialsSecret: { name: "" }, ...spec },
    status: {
      nodes: nodes.length,
      allocatable: formatAmounts(allocatable),
      largestNode: formatAmounts(largestNode),
      nodeKinds: kinds?.kinds ?? [],
      unlistedNodeLabels: kinds?.unlistedLabels ?? [],
      conditions: [{ type: "Ready", status: "True", reason: "R", message: "", lastTransitionTime: "x" }],
    },
  };
}

const CLUSTERS = MEMBER_NAMES.map(reported);

async function planned({ namespace: own, steps: [first] }: Scenario): Promise<readonly WorkloadPlan[]> {
  const labels = { "legation.dev/delegation": "annotated", ...own?.labels };
  const namespaces = [namespace("team", { labels, annotations: { ...own?.annotations } })];
  const objects = parseDocuments(JSON.stringify({ kind: "List", items: first?.make ?? [] }), "scenario");
  const host = { clusters: CLUSTERS, nodes: [], proxies: [], namespaces, defaults: [] };
  return (await planWith(host, objects, { now: 0 })).workloads;
}

function check({ outcome, message, pods, clusters }: WorkloadPlan, expected: Expected): void {
  const { refused, among, together, waits, waiting = waits === undefined ? 0 : 1 } = expected;
  if (refused !== undefined) {
    expect(outcome).toBe("refused");
    expect(message).toMatch(refused);
    return;
  }
  const counts = Object.fromEntries(
    clusters.flatMap(({ cluster, pods: there }) => (there === 0 ? [] : [[cluster, there]])),
  );
  const waitingPods = pods.filter(({ cluster }) => cluster === undefined);
  if (among !== undefined) {
    expect(among.members).toEqual(expect.arrayContaining(Object.keys(counts)));
    expect(pods.length - waitingPods.length).toBe(among.pods);
  } else if (together !== undefined) expect(Object.values(counts)).toEqual([together]);
  else expect(counts).toEqual(expected.in ?? {});
  expect(waitingPods).toHaveLength(waiting);
  for (const pod of waitingPods) {
    if (typeof waits === "string") expect(pod.message).toBe(waits.replaceAll("{namespace}", "team"));
    else if (waits !== undefined) expect(pod.message).toMatch(waits);
  }
}

const foreseeable = SCENARIOS.flatMap(([, scenarios]) => scenarios).filter(({ shows, steps: [first] }) => {
  if (first === undefined || first.stage === "trouble" || ANSWERED_BY_MEMBERS.test(shows)) return false;
  const words = Object.values(first.expect).map(({ waits = "" }) => String(waits));
  return !words.some((text) => ONLY_MEMBERS_KNOW.test(text) || text.includes(SCHEDULER));
});

test("foresees at least forty scenarios", () => {
  expect(foreseeable.length).toBeGreaterThanOrEqual(40);
});

test.each(foreseeable)("foresees: $shows", async (scenario) => {
  const [first] = scenario.steps;
  const workloads = await planned(scenario);
  for (const [name, expected] of Object.entries(first?.expect ?? {})) {
    const workload = workloads.find((one) => one.name === name);
    expect(workload).toBeDefined();
    if (workload !== undefined) check(workload, expected);
  }
});
