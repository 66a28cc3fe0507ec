import { expect, test } from "vitest";
import type { EndpointSlice, Stored } from "../../../src/api/kubernetes.ts";
import { lostPods, podsTakingConnections } from "../../../src/relay/endpoints.ts";

type Endpoint = NonNullable<EndpointSlice["endpoints"]>[number];

function slice(
  endpoints: readonly Endpoint[],
  manager = "endpointslice-controller.k8s.io",
  port = 8080,
): Stored<EndpointSlice> {
  return {
    metadata: {
      name: "web-x",
      uid: "slice",
      resourceVersion: "1",
      labels: { "endpointslice.kubernetes.io/managed-by": manager },
    },
    addressType: "IPv4",
    endpoints: [...endpoints],
    ports: [{ name: "http", port }],
  };
}

function endpoint(name: string, conditions: NonNullable<Endpoint["conditions"]>, nodeName = "legation-west"): Endpoint {
  const targetRef = { kind: "Pod", namespace: "team", name, uid: `${name}-uid` };
  return { addresses: ["10.1.0.1"], conditions, nodeName, targetRef };
}

const READY = { ready: true };
const ENDING = { ready: false, serving: true, terminating: true };

function names(...slices: readonly Stored<EndpointSlice>[]): string[] {
  return podsTakingConnections(slices, "http").map(({ name }) => name);
}

test("chooses ready pods, and serving ones that end where there is no other", () => {
  expect(names(slice([endpoint("ready", READY), endpoint("ending", ENDING)]))).toEqual(["ready"]);
  expect(names(slice([endpoint("ending", ENDING), endpoint("unready", { ready: false })]))).toEqual(["ending"]);
});

test("knows the member of a pod by its node, and the port of its slice", () => {
  const found = podsTakingConnections([slice([endpoint("far", READY), endpoint("near", READY, "node-1")])], "http");
  expect(found).toMatchObject([
    { name: "far", cluster: "west", port: 8080 },
    { name: "near", cluster: undefined, address: "10.1.0.1" },
  ]);
});

test("takes a pod with two addresses once", () => {
  expect(names(slice([endpoint("web", READY)]), slice([endpoint("web", READY)]))).toEqual(["web"]);
});

test("leads to no address that the host's own controller did not find as a pod's", () => {
  expect(names(slice([endpoint("web", READY)], "someone.example.com"))).toEqual([]);
  expect(names(slice([{ addresses: ["169.254.169.254"], conditions: READY }]))).toEqual([]);
});

test("tells of pods that no slice of the Service has any more", () => {
  const before = slice([endpoint("gone", ENDING), endpoint("moved", ENDING), endpoint("unselected", READY)]);
  expect(lostPods(before, [slice([]), slice([endpoint("moved", ENDING)])])).toEqual(["gone-uid", "unselected-uid"]);
  expect(lostPods(slice([endpoint("gone", ENDING)], "someone.example.com"), [slice([])])).toEqual([]);
});
