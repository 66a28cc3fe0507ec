import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PREFERENCES_ANNOTATION } from "../../../src/api/keys.ts";
import type { Namespace, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { fitOf } from "../../../src/placement/node-fit.ts";
import { rank } from "../../../src/placement/rank.ts";
import type { HomeApi } from "../../../src/pods/home-api.ts";
import { Store } from "../../../src/runtime/store.ts";
import { rankInput, type Sharing } from "../../../src/scheduling/eligibility.ts";
import { proxyPod } from "../../support/builders/pod.ts";
import { placementOver } from "./placement-over.ts";

const NAMES = ["west", "east", "north"];
const size = { pods: 100 };
const KNOWN: HomeApi = { state: "known", address: { host: "192.0.2.1", port: "6443" } };

/** Returns a replica of a Deployment that is divided over all members, and rebalanced. */
function replica(annotations: Record<string, string>, wishes: Partial<PodSpec>): Stored<Pod> {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web", controller: true };
  const preferences = { rebalance: true, clusters: { "*": { weight: 1 } } };
  const token = { serviceAccountToken: { path: "token" } };
  return proxyPod({
    metadata: {
      annotations: { ...annotations, [PREFERENCES_ANNOTATION]: JSON.stringify(preferences) },
      ownerReferences: [owner],
    },
    spec: { nodeName: "legation-west", ...wishes, volumes: [{ name: "api", projected: { sources: [token] } }] },
  });
}

/** Returns how the replica is divided over three members of equal size, by its namespace's annotations. */
function sharing({
  namespace = { metadata: { name: "team", uid: "team", resourceVersion: "1" } },
  homeApi = () => KNOWN,
  annotations = {},
  wishes = {},
}: {
  readonly namespace?: Stored<Namespace> | null;
  readonly homeApi?: (member: string) => HomeApi;
  readonly annotations?: Record<string, string>;
  readonly wishes?: Partial<PodSpec>;
} = {}): Sharing | undefined {
  const candidates = NAMES.map((name) => ({ name, labels: {}, allocatable: size, largestNode: size, used: {} }));
  const namespaces = new Store<Namespace>();
  if (namespace !== null) namespaces.set(namespace);
  const { placementState } = placementOver(candidates, { namespaces, homeApi });
  return placementState.eligibilities.sharing(replica(annotations, wishes));
}

describe("a workload that is divided", () => {
  test("uses the members that its namespace permits", () => {
    const annotations = { "legation.dev/clusters": "west,east" };
    const namespace = { metadata: { name: "team", uid: "team", resourceVersion: "1", annotations } };
    expect(sharing({ namespace })?.candidates.map(({ name }) => name)).toEqual(["west", "east"]);
  });

  test("is left as it is while its namespace is not opted in, since its division is unknown", () => {
    expect(sharing({ namespace: null })).toBeUndefined();
  });

  test("is left as it is if its pods name their members themselves", () => {
    expect(sharing({ wishes: { nodeSelector: { disk: "fast" } } })).toBeDefined();
    expect(sharing({ wishes: { nodeSelector: { "legation.dev/cluster": "west" } } })).toBeUndefined();
  });

  test("uses the members that its pods' own affinity permits", () => {
    const matchExpressions = [{ key: "legation.dev/cluster", operator: "NotIn", values: ["east"] }];
    const required = { nodeSelectorTerms: [{ matchExpressions }] };
    const wishes = { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } };
    expect(sharing({ wishes })?.candidates.map(({ name }) => name)).toEqual(["west", "north"]);
  });

  test.each<[string, HomeApi]>([
    ["are still to be read", { state: "pending", message: "its Secrets cannot be read yet" }],
    ["lead nowhere, since the host's address is unknown", { state: "unknown", message: "" }],
  ])("keeps its replicas, and adds none, in a member while the tokens of its pods %s", (_, refused) => {
    const homeApi = (member: string): HomeApi => (member === "west" ? refused : KNOWN);
    const { candidates = [], full } = sharing({ homeApi, annotations: { "legation.dev/api": "host" } }) ?? {};
    expect(candidates.map(({ name }) => name)).toEqual(NAMES);
    expect([...(full ?? [])]).toEqual(["west"]);
  });
});

test("a pod's ranking by its shape's last one is the pod's own, whichever pods were ranked before", () => {
  const nodes = ["ssd", "disk"].map((disk) => ({
    metadata: { labels: { disk } },
    status: {
      allocatable: { cpu: disk === "ssd" ? "2" : "8", pods: "100" },
      conditions: [{ type: "Ready", status: "True" }],
    },
  }));
  const variants: readonly Variant[] = [
    {},
    { namespace: "other" },
    { annotations: { "legation.dev/clusters": "west,east" } },
    { annotations: { "legation.dev/cluster-selector": "tier>1" } },
    { annotations: { "legation.dev/cluster-spread": JSON.stringify([{ topologyKey: "tier", labelSelector: {} }]) } },
    { annotations: { "legation.dev/api": "host" }, homeApi: { state: "unknown", message: "no address" } },
    { annotations: { "legation.dev/api": "host" } },
    { spec: { nodeSelector: { disk: "ssd" } } },
    { spec: { nodeSelector: { "legation.dev/cluster": "north" } } },
    { spec: { tolerations: [{ key: "dear", operator: "Exists" }] } },
    { hasReserved: true },
    { labels: { name: "" } },
  ];
  const variant = fc.constantFrom(...variants);
  const pod = fc.record({ isFirst: fc.boolean(), member: fc.constantFrom(...NAMES) });
  fc.assert(
    fc.property(variant, variant, fc.array(pod, { minLength: 2, maxLength: 20 }), (first, second, pods) => {
      const namespaces = new Store<Namespace>();
      const candidates = NAMES.map((name, index) => ({
        name,
        labels: { tier: String(index) },
        allocatable: { cpu: 1000, pods: 1000 },
        largestNode: { cpu: 8, pods: 100 },
        used: { cpu: 0, pods: 0 },
        limits: { total: { cpu: index === 0 ? 9 : 1000 }, perNamespace: {} },
        reservedFor: (uid: string) => (uid.endsWith(`-${name}`) ? { cpu: 4 } : undefined),
        tracked: true as const,
        nodesFor: (needs: Parameters<typeof fitOf>[0]) => fitOf(needs, nodes),
        ...(index === 0 ? { admits: [{ key: "name", operator: "In", values: ["team"] }] as const } : {}),
        ...(index === 1 ? { taints: [{ key: "dear", effect: "NoSchedule" as const }] } : {}),
      }));
      let current = candidates;
      let home: HomeApi = KNOWN;
      const { proxies, placementState } = placementOver(candidates, { namespaces, homeApi: () => home });
      for (const [index, { isFirst, member }] of pods.entries()) {
        const {
          namespace = "team",
          annotations = {},
          spec,
          homeApi = KNOWN,
          hasReserved = false,
          ...of
        } = isFirst ? first : second;
        home = homeApi;
        for (const name of ["team", "other"])
          namespaces.set({ metadata: { name, uid: name, resourceVersion: "1", labels: { name, ...of.labels } } });
        const proxy = proxyPod({
          metadata: {
            namespace,
            name: `web-${index}`,
            uid: `uid-${index}${hasReserved ? `-${member}` : ""}`,
            annotations,
          },
          spec: { containers: [{ name: "main", resources: { requests: { cpu: "4" } } }], ...spec },
        });
        if (hasReserved) placementState.memories.noteReserved(proxy.metadata.uid, member);
        const input = rankInput(proxy, placementState.eligibilities.of(proxy), current);
        const { shared: _, ...alone } = input;
        expect(rank(input)).toEqual(rank(alone));
        const bound = proxyPod({ ...proxy, spec: { ...proxy.spec, nodeName: `legation-${member}` } });
        proxies.set(bound);
        placementState.update(bound);
        current = current.map((candidate) => {
          if (candidate.name !== member || candidate.used.cpu >= 8) return candidate;
          candidate.used.cpu += 4;
          return { ...candidate };
        });
      }
    }),
    { numRuns: 300 },
  );
});

interface Variant {
  readonly namespace?: string;
  readonly annotations?: Record<string, string>;
  readonly spec?: Partial<PodSpec>;
  readonly homeApi?: HomeApi;
  /** Labels of the namespace. */
  readonly labels?: Record<string, string>;
  /** Room for the pod itself is reserved in the member. */
  readonly hasReserved?: boolean;
}
