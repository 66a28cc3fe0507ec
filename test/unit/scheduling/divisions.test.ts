import { describe, expect, test } from "vitest";
import type { OwnerReference, Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { SchedulingPreferences } from "../../../src/api/preferences.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { rank } from "../../../src/placement/rank.ts";
import { Divisions } from "../../../src/scheduling/divisions.ts";
import { type PodParts, proxyPod } from "../../support/builders/pod.ts";

const COST = "controller.kubernetes.io/pod-deletion-cost";
const OWN_COST = "legation.dev/deletion-cost";
const preferences: SchedulingPreferences = {
  rebalance: false,
  clusters: { west: { weight: 2, minReplicas: 0 }, east: { weight: 1, minReplicas: 0 } },
};

function candidate(name: string, used = 0): Candidate {
  const allocatable = { cpu: 100, pods: 100 };
  return { name, labels: {}, allocatable, largestNode: allocatable, used: { pods: used } };
}

function owned(uid: string, { metadata, ...parts }: PodParts = {}, kind = "ReplicaSet"): Stored<Pod> {
  const owner: OwnerReference = { apiVersion: "apps/v1", kind, name: "web-1", uid: "owner", controller: true };
  return proxyPod({ ...parts, name: `web-${uid}`, uid, metadata: { ownerReferences: [owner], ...metadata } });
}

/** Places the next pod, and tells the divisions. Returns its member. */
function place(divisions: Divisions, proxy: Stored<Pod>, candidates = [candidate("west"), candidate("east")]): string {
  const rules = [divisions.rule(proxy, preferences, candidates)];
  const [best = "none"] = rank({ requests: { pods: 1 }, rules, candidates }).fitting;
  divisions.proxies.place(proxy.metadata.uid, best);
  return best;
}

function created(divisions: Divisions, count: number, kind?: string): Stored<Pod>[] {
  const proxies = Array.from({ length: count }, (_, index) => owned(String(index), {}, kind));
  for (const proxy of proxies) divisions.update(proxy);
  return proxies;
}

function countOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

describe("a division that is tracked pod by pod", () => {
  test("counts pods on their way, so that a burst is divided", () => {
    const divisions = new Divisions();
    expect(countOf(created(divisions, 9).map((proxy) => place(divisions, proxy)))).toEqual({ west: 6, east: 3 });
    expect(divisions.proxies.placed("owner")).toEqual({ west: 6, east: 3 });
  });

  test("releases ended, deleted and terminating pods", () => {
    const divisions = new Divisions();
    const [one, two, three] = created(divisions, 3);
    if (one === undefined || two === undefined || three === undefined) throw new Error("three were made");
    for (const proxy of [one, two, three]) divisions.proxies.place(proxy.metadata.uid, "west");
    divisions.update({ ...one, status: { phase: "Succeeded" } });
    divisions.update({ ...two, metadata: { ...two.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } });
    expect(divisions.proxies.placed("owner")).toEqual({ west: 1 });
    divisions.remove(three);
    expect(divisions.proxies.placed("owner")).toEqual({});
    expect(divisions.proxies.owners()).toEqual([]);
  });

  test("does not count the pod itself where it is tried, and passes shares without room on", () => {
    const divisions = new Divisions();
    const [first, ...rest] = created(divisions, 4);
    if (first === undefined) throw new Error("four were made");
    expect(place(divisions, first)).toBe("west");
    expect(place(divisions, first)).toBe("west");
    const full = [candidate("west", 100), candidate("east")];
    expect(rest.map((proxy) => place(divisions, proxy, full))).toEqual(["east", "east", "east"]);
  });

  test("trusts a Binding more than a reservation, and that more than a delegate that is seen elsewhere", () => {
    const divisions = new Divisions();
    const [proxy] = created(divisions, 1);
    if (proxy === undefined) throw new Error("one was made");
    divisions.proxies.noteDelegate("0", "east");
    expect(divisions.proxies.placed("owner")).toEqual({ east: 1 });
    divisions.proxies.place("0", "west");
    divisions.proxies.noteDelegate("0", "east");
    expect(divisions.proxies.placed("owner")).toEqual({ west: 1 });
    divisions.update(owned("0", { spec: { nodeName: "legation-east" } }));
    divisions.proxies.place("0", "west");
    expect(divisions.proxies.placed("owner")).toEqual({ east: 1 });
  });

  test("writes a deletion cost with each Binding: the last placed pod goes first", () => {
    const divisions = new Divisions();
    const costs = created(divisions, 6).map((proxy) => {
      place(divisions, proxy);
      return divisions.costAnnotations(proxy.metadata.uid);
    });
    expect(costs.map((annotations) => annotations[COST])).toEqual(["-1", "-2", "-3", "-4", "-5", "-6"]);
    expect(costs.every((annotations) => annotations[COST] === annotations[OWN_COST])).toBe(true);
  });

  test("writes no costs for owners that ignore them, nor over an author's own", () => {
    const divisions = new Divisions();
    const authored = owned("authored", { metadata: { annotations: { [COST]: "7" } } });
    divisions.update(authored);
    for (const proxy of [...created(divisions, 1, "Job"), authored]) {
      place(divisions, proxy);
      expect(divisions.costAnnotations(proxy.metadata.uid)).toEqual({});
    }
  });
});
