import { describe, expect, test } from "vitest";
import { PREFERENCES_ANNOTATION } from "../../../src/api/keys.ts";
import type { Namespace, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import type { HomeApi } from "../../../src/pods/home-api.ts";
import { Store } from "../../../src/runtime/store.ts";
import type { Sharing } from "../../../src/scheduling/eligibility.ts";
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
