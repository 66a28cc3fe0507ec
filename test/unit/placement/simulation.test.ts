import { describe, expect, test } from "vitest";
import { parsePlacement } from "../../../src/api/annotations.ts";
import type { KubeNode } from "../../../src/api/kubernetes.ts";
import { addAmounts } from "../../../src/api/quantity.ts";
import { NodeFits } from "../../../src/clusters/node-fits.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { rank } from "../../../src/placement/rank.ts";
import { podRequests } from "../../../src/placement/requests.ts";
import { placementRules, policyRules } from "../../../src/placement/rules.ts";
import { proxyPod } from "../../support/builders/pod.ts";

const MEMBERS = 50;
const PODS = 20_000;
const GIB = 2 ** 30;

interface Simulated extends Candidate {
  readonly used: Record<string, number>;
}

/** Members of 20 to 118 nodes in five regions; every tenth is for gold alone, every fourth is better avoided. */
function members(): Simulated[] {
  return Array.from({ length: MEMBERS }, (_, index) => {
    const count = 20 + 2 * index;
    const nodes = Array.from(
      { length: count },
      (__, number): KubeNode => ({
        metadata: { name: `n${number}`, labels: { disk: number % 2 === 0 ? "ssd" : "hdd" } },
        status: {
          allocatable: { cpu: "64", memory: "256Gi", pods: "110" },
          conditions: [{ type: "Ready", status: "True" }],
        },
      }),
    );
    const fits = new NodeFits(() => nodes);
    return {
      name: `m${index}`,
      labels: { region: `r${index % 5}` },
      allocatable: { cpu: 64 * count, memory: 256 * GIB * count, pods: 110 * count },
      largestNode: { cpu: 64, memory: 256 * GIB, pods: 110 },
      used: {},
      nodesFor: (needs) => fits.fit(needs),
      ...(index % 10 === 0 ? { admits: [{ key: "team", operator: "In", values: ["gold"] }] } : {}),
      ...(index % 4 === 1 ? { taints: [{ key: "spot", effect: "PreferNoSchedule" }] } : {}),
    };
  });
}

describe(`${PODS} pods over ${MEMBERS} members`, () => {
  const all = members();
  const regions = new Map<string, number>();
  const counts = new Map<string, number>();
  let cpuMs = 0;
  for (let index = 0; index < PODS; index++) {
    const requests = { cpu: `${100 + (index % 50) * 10}m`, memory: "256Mi" };
    const pod = proxyPod({
      name: `p${index}`,
      uid: `p${index}`,
      metadata: {
        annotations: {
          "legation.dev/cluster-selector": "region notin (r4)",
          "legation.dev/cluster-spread": "[{topologyKey: region, maxSkew: 3}]",
        },
      },
      spec: {
        containers: [{ name: "main", image: "x", resources: { requests } }],
        ...(index % 3 === 0 ? { nodeSelector: { disk: "ssd" } } : {}),
      },
    });
    const started = process.threadCpuUsage();
    const parsed = parsePlacement(pod.metadata.annotations ?? {});
    const placement = parsed.ok ? parsed.placement : {};
    const amounts = podRequests(pod);
    const facts = {
      pod,
      requests: amounts,
      placement,
      namespaceLabels: {},
      candidates: all,
      spreadCounts: () => counts,
    };
    const selected = all.filter(({ labels }) => labels.region !== "r4");
    const rules = [...policyRules(facts), ...placementRules(facts)];
    const [best = ""] = rank({ requests: amounts, rules, candidates: selected }).fitting;
    const { user, system } = process.threadCpuUsage(started);
    cpuMs += (user + system) / 1000;
    const member = all.find(({ name }) => name === best);
    if (member === undefined) continue;
    addAmounts(member.used, amounts);
    counts.set(best, (counts.get(best) ?? 0) + 1);
    const region = member.labels.region ?? "";
    regions.set(region, (regions.get(region) ?? 0) + 1);
  }

  test("take less than a millisecond each on average", () => {
    expect(cpuMs / PODS).toBeLessThan(1);
  });

  test("all have a place, as evenly over regions as was asked, in none that is forbidden or avoided without need", () => {
    expect([...regions.values()].reduce((sum, one) => sum + one, 0)).toBe(PODS);
    expect(Math.max(...regions.values()) - Math.min(...regions.values())).toBeLessThanOrEqual(3);
    expect([...regions.keys()].sort()).toEqual(["r0", "r1", "r2", "r3"]);
    for (const { name, admits, taints } of all) {
      if (admits !== undefined || taints !== undefined) expect(counts.get(name)).toBeUndefined();
    }
  });

  test("fill the members of a region evenly, relative to their size", () => {
    for (const region of regions.keys()) {
      const loads = all
        .filter(({ name, labels }) => labels.region === region && counts.has(name))
        .map(({ used, allocatable }) => (used.cpu ?? 0) / (allocatable.cpu ?? 1));
      expect(loads.length).toBeGreaterThan(1);
      expect(Math.max(...loads) - Math.min(...loads)).toBeLessThan(0.01);
    }
  });
});
