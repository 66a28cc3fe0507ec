import { expect, test } from "vitest";
import { limitAmounts } from "../../../src/api/cluster-policy.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { divideOpen, type OpenDivisionInput } from "../../../src/placement/open-division.ts";

const large = { cpu: 100, pods: 100 };

function candidate(name: string, parts: Partial<Candidate> = {}): Candidate {
  return { name, labels: {}, allocatable: large, largestNode: large, used: {}, ...parts };
}

/** Ten replicas of one core each, evenly over west and east. */
function divided(west: Partial<Candidate>, more: Partial<OpenDivisionInput> = {}) {
  return divideOpen({
    preferences: { rebalance: false, clusters: { "*": { weight: 1, minReplicas: 0 } } },
    candidates: [candidate("west", west), candidate("east")],
    full: new Set(),
    closed: new Set(),
    total: 10,
    placed: {},
    requests: { cpu: 1, pods: 1 },
    key: "shop/web",
    ...more,
  }).replicas;
}

const usedIn = (namespace?: string) => ({ cpu: namespace === "shop" ? 3 : 6 });

test.each<[string, Partial<Candidate>, Partial<OpenDivisionInput>, Record<string, number>]>([
  ["its share, when there is room", {}, {}, { west: 5, east: 5 }],
  ["what there is room for", { used: { cpu: 98 } }, {}, { west: 2, east: 8 }],
  ["its replicas and its room", { used: { cpu: 98 } }, { placed: { west: 1 } }, { west: 3, east: 7 }],
  ["nothing, when no node of it is large enough", { largestNode: { cpu: 0.5, pods: 9 } }, {}, { west: 0, east: 10 }],
  [
    "as many as fit with what its overrides make of them",
    { allocatable: { cpu: 8, pods: 100 } },
    { requestsIn: ({ name }) => ({ cpu: name === "west" ? 4 : 1, pods: 1 }) },
    { west: 2, east: 8 },
  ],
  [
    "what the limits of its Cluster leave",
    { limits: limitAmounts({ total: { cpu: "8" } }), usedIn },
    {},
    { west: 2, east: 8 },
  ],
  [
    "the rest of the namespace's limit",
    { limits: limitAmounts({ perNamespace: { cpu: "7" } }), usedIn },
    {},
    { west: 4, east: 6 },
  ],
  ["its replicas, if it gets no more", {}, { full: new Set(["west"]), placed: { west: 2 } }, { west: 2, east: 8 }],
  [
    "its share of what closed members leave",
    {},
    { closed: new Set(["north"]), placed: { north: 4 } },
    { west: 3, east: 3, north: 4 },
  ],
  [
    "nothing, when closed members have all",
    {},
    { closed: new Set(["north"]), placed: { north: 12 } },
    { west: 0, east: 0, north: 12 },
  ],
])("gives one of two members %s", (_, west, more, replicas) => {
  expect(divided(west, more)).toEqual(replicas);
});
