import { describe, expect, test } from "vitest";
import { CLUSTER_SPREAD_ANNOTATION, OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../../src/api/keys.ts";
import type { Namespace, Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { rank } from "../../../src/placement/rank.ts";
import { Store } from "../../../src/runtime/store.ts";
import type { PlacementState } from "../../../src/scheduling/placement-state.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";
import { placementOver } from "./placement-over.ts";

const size = { pods: 100 };

/** Places pods in overflow mode on two members of two regions; `west` has more room. */
function placing(unread: readonly string[] = []): {
  readonly proxies: Store<Pod>;
  readonly placementState: PlacementState;
  place(pod: Stored<Pod>): string;
} {
  const candidates = [candidate("west", "eu", 0), candidate("east", "us", 50)];
  const namespaces = new Store<Namespace>();
  namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1" } });
  const homeApi = () => ({ state: "unknown", message: "" }) as const;
  const { proxies, placementState } = placementOver(candidates, { namespaces, homeApi, unread });
  const place = (waiting: Stored<Pod>): string => {
    const rules = placementState.eligibilities.of(waiting).rules?.() ?? [];
    const [best = "none"] = rank({
      requests: { pods: 1 },
      rules,
      candidates,
    }).fitting;
    placementState.reserve(waiting, best, { requests: { pods: 1 }, namespace: "team" });
    return best;
  };
  return { proxies, placementState, place };
}

function candidate(name: string, region: string, pods: number): Candidate {
  return { name, labels: { region }, allocatable: size, largestNode: size, used: { pods } };
}

function overflowing(uid: string, spread: object): Stored<Pod> {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web", controller: true };
  const annotations = {
    [CLUSTER_SPREAD_ANNOTATION]: JSON.stringify([{ topologyKey: "region", ...spread }]),
    "legation.dev/api": "none",
  };
  const labels = { app: "web", [PROXY_LABEL]: OVERFLOW_LABEL_VALUE };
  return pod({ uid, name: uid, metadata: { annotations, labels, ownerReferences: [owner] } });
}

test("ranks members for a pod by what they made of the last one of its shape, in every rule", () => {
  const { placementState } = placing();
  const [first, second] = [proxyPod({ uid: "first" }), proxyPod({ uid: "second" })];
  const stored = pod({
    spec: { containers: [{ name: "main", image: "busybox", resources: { requests: { cpu: "20" } } }] },
  });
  const cpu = (candidate: Candidate): number | undefined => {
    const { requestsIn } = placementState.eligibilities.of(second);
    return requestsIn?.(candidate).cpu;
  };
  const [west, east] = [candidate("west", "eu", 0), candidate("east", "us", 50)];
  expect(cpu(west)).toBeUndefined();
  expect(placementState.reservations.noteStored("first", "west", first, { sent: first, stored })).toBe(true);
  expect([cpu(west), cpu(east)]).toEqual([20, undefined]);
  const limited = { ...west, limits: { total: { cpu: 10 }, perNamespace: {} } };
  const { rules, learntIn } = placementState.eligibilities.of(second);
  const messages = rules?.().flatMap(({ filter }) => filter?.(limited)?.message ?? []);
  expect(messages).toEqual(["its limit of cpu: 20 requested there by the member's admission, 10 of 10 left"]);
  expect(learntIn?.(west)?.until).toBe(600_000);
});

describe("a pod whose node selector names a virtual node", () => {
  const selecting = (cluster: string, annotations: Record<string, string> = {}): Stored<Pod> =>
    proxyPod({ metadata: { annotations }, spec: { nodeSelector: { "legation.dev/cluster": cluster } } });

  test.each([
    ["goes to its member and no other", selecting("east"), undefined],
    [
      "goes to no member that its author leaves out",
      selecting("east", { "legation.dev/clusters": "west" }),
      "not named by legation.dev/clusters",
    ],
    [
      "may name a member that does not exist",
      selecting("north"),
      'the pod\'s nodeSelector says legation.dev/cluster: "north"',
    ],
  ])("%s", (_, waiting, refusal) => {
    const { excludes, named } = placing().placementState.eligibilities.of(waiting);
    expect(excludes(candidate("east", "us", 0))).toBe(refusal);
    expect(excludes(candidate("west", "eu", 0))).toContain("the pod's nodeSelector says legation.dev/cluster");
    expect(named).toEqual([waiting.spec?.nodeSelector?.["legation.dev/cluster"]]);
  });
});

describe("a pod whose node affinity is about virtual nodes", () => {
  const onNodes = { key: "disk", operator: "In", values: ["fast"] };
  const waiting = (cluster: { operator: string; values: string[] }, annotations = {}): Stored<Pod> => {
    const nodeSelectorTerms = [{ matchExpressions: [{ key: "legation.dev/cluster", ...cluster }, onNodes] }];
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
    return proxyPod({ metadata: { annotations }, spec: { affinity: { nodeAffinity } } });
  };

  test("goes where a term permits it, and its delegate keeps the rest of that term", () => {
    const proxy = waiting({ operator: "NotIn", values: ["west"] });
    const { excludes, named } = placing().placementState.eligibilities.of(proxy);
    const east = candidate("east", "us", 0);
    expect(excludes(east)).toBeUndefined();
    expect(excludes(candidate("west", "eu", 0))).toContain("no term of the pod's nodeAffinity allows");
    expect(named).toBeUndefined();
    const nodeSelectorTerms = [{ matchExpressions: [onNodes] }];
    expect(placing().placementState.eligibilities.specIn(proxy, east)).toMatchObject({
      spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } },
    });
  });

  test("goes where it is preferred before it goes where there is more room", () => {
    const preference = { matchExpressions: [{ key: "legation.dev/cluster", operator: "In", values: ["east"] }] };
    const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference }] };
    const { place } = placing();
    expect(place(proxyPod())).toBe("west");
    expect(place(proxyPod({ spec: { affinity: { nodeAffinity } } }))).toBe("east");
  });

  test("is judged by each member's nodes without it", () => {
    const asked: string[] = [];
    const member = (name: string): Candidate => ({
      ...candidate(name, "eu", 0),
      nodesFor: (needs) => {
        asked.push(`${name} ${JSON.stringify(needs.terms)}`);
        return { nodes: 1, selected: 1, tolerated: 1, largest: size, large: true, against: new Map() };
      },
    });
    const rules =
      placing()
        .placementState.eligibilities.of(waiting({ operator: "In", values: ["east"] }))
        .rules?.() ?? [];
    for (const { filter } of rules) filter?.(member("east"));
    expect(asked).toEqual([`east ${JSON.stringify([{ matchExpressions: [onNodes] }])}`]);
  });
});

test("counts a pod's own spread over virtual nodes beside that of its annotations", () => {
  const { place } = placing();
  const topologySpreadConstraints = [
    {
      topologyKey: "legation.dev/cluster",
      maxSkew: 1,
      whenUnsatisfiable: "DoNotSchedule",
      labelSelector: { matchLabels: { app: "web" } },
    },
  ];
  const metadata = { labels: { app: "web", [PROXY_LABEL]: "true" } };
  const first = proxyPod({ uid: "first", name: "first", metadata, spec: { topologySpreadConstraints } });
  expect(place(first)).toBe("west");
  const second = proxyPod({ uid: "second", name: "second", metadata, spec: { topologySpreadConstraints } });
  expect(place(second)).toBe("east");
});

describe("pods in overflow mode that are due together", () => {
  test.each([
    ["their own controller", {}],
    ["a selector", { labelSelector: { matchLabels: { app: "web" } } }],
  ])("are spread over members as %s counts them", (_, spread) => {
    const { place } = placing();
    const places = ["a", "b", "c", "d"].map((uid) => place(overflowing(uid, spread)));
    expect(places).toEqual(["west", "east", "west", "east"]);
  });

  test("count once when they are bound, and not when they are not", () => {
    const { placementState: all, place, proxies } = placing();
    const spread = { labelSelector: { matchLabels: { app: "web" } } };
    expect(place(overflowing("a", spread))).toBe("west");
    const first = overflowing("a", spread);
    const bound = { ...first, spec: { containers: [], nodeName: "legation-west" } };
    proxies.set(bound);
    all.update(bound);
    expect(place(overflowing("b", spread))).toBe("east");
    all.giveUp("b", "east");
    expect(place(overflowing("c", spread))).toBe("east");
  });
});

describe("a pod in overflow mode that a pod owns", () => {
  const annotations = { "legation.dev/group-by": "owner" };
  const controlled = (uid: string, kind: string, owner: string): Stored<Pod> => {
    const reference = { apiVersion: "v1", kind, name: owner, uid: owner, controller: true };
    return pod({ uid, name: uid, metadata: { annotations, ownerReferences: [reference] } });
  };
  const driver = controlled("driver", "Job", "sum");
  const executor = controlled("executor", "Pod", "driver");

  test("belongs to its owner's group, on the host or in a member, as soon as that is decided", () => {
    const { placementState: all } = placing();
    expect(all.podRules.groupOf(executor)?.id).toBe("team/owner/driver");
    expect(all.podRules.groupOf(executor, () => driver)?.id).toBe("team/owner/sum");
    all.reserve(driver, "west", { requests: { pods: 1 }, namespace: "team" });
    expect(all.podRules.groupOf(executor)?.id).toBe("team/owner/sum");
  });
});

test.each([
  ["team", undefined],
  ["left", false],
])("knows whether the namespace of a bound pod is opted in: %s", (namespace, expected) => {
  const bound = pod({ metadata: { namespace }, spec: { nodeName: "legation-west" } });
  expect(placing().placementState.eligibilities.of(bound).optedIn).toBe(expected);
});

test.each<[string, boolean, string]>([
  ["waits for a member that has not been read and may have another of them", true, "none"],
  ["is placed where no other of them can have an unknown delegate", false, "west"],
])("%s, as a pod of a group", (_, inherited, place) => {
  const { placementState: all, proxies, place: placed } = placing(["west"]);
  const annotations = { "legation.dev/group": "flow", "legation.dev/api": "none" };
  for (const uid of ["earlier", "fresh"]) {
    const proxy = proxyPod({ uid, name: uid, metadata: { annotations } });
    proxies.set(proxy);
    all.update(proxy);
    if (uid === "earlier" && inherited) all.memories.noteInherited(uid);
    if (uid === "fresh") expect(placed(proxy)).toBe(place);
  }
});
