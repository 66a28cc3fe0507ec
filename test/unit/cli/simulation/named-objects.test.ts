import { expect, test } from "vitest";
import type { DevicesStatus } from "../../../../src/api/cluster-status.ts";
import { dependencyKey } from "../../../../src/copies/named-by-pods.ts";
import { preparationIn } from "../../../../src/placement/needs.ts";
import { followedObjects } from "../../../../src/scheduling/followed-objects.ts";
import { type NamedObjects, namedNeeds } from "../../../../src/simulation/named-objects.ts";
import { SimulatedMember } from "../../../../src/simulation/simulated-member.ts";
import { cluster } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";

const type = "resourceclaims.resource.k8s.io";
const followed = followedObjects({
  metadata: { name: type },
  spec: {
    group: "resource.k8s.io",
    version: "v1",
    kind: "ResourceClaim",
    plural: "resourceclaims",
    follows: { names: [{ field: "/spec/resourceClaims/*/resourceClaimName" }], confines: true },
  },
});
const proxy = proxyPod({ spec: { containers: [], resourceClaims: [{ name: "a", resourceClaimName: "gpu" }] } });
const { namespace = "" } = proxy.metadata;
const key = dependencyKey({ kind: type, namespace, name: "gpu" });
const west: DevicesStatus = { served: true, classes: [{ name: "gpu", driver: "gpu" }], drivers: ["gpu"] };
const members = new Map(
  Object.entries({ west: { devices: west }, east: { devices: { ...west, drivers: [] } }, north: {} }).map(
    ([name, status]) => [name, new SimulatedMember(cluster(name, { status }), undefined)],
  ),
);

function needsWith(exactly: object, more: Partial<NamedObjects> = {}): ReturnType<typeof namedNeeds> {
  const spec = { devices: { requests: [{ name: "a", exactly: { deviceClassName: "gpu", ...exactly } }] } };
  const claim = { metadata: { namespace, name: "gpu", uid: "u", resourceVersion: "1" }, spec };
  const objects = new Map([[key, claim]]);
  const named = { followed: followed === undefined ? [] : [followed], objects, ...more };
  return namedNeeds(proxy, named, (name) => members.get(name));
}

test("a claim needs a member with devices of its class, and one that the host knows nothing of is a guess", () => {
  const needs = needsWith({});
  expect(preparationIn(needs, "west")).toBe("prepared");
  expect(preparationIn(needs, "east")).toEqual({
    refused: "has no devices of driver gpu, which ResourceClaim gpu asks for by DeviceClass gpu",
  });
  expect(preparationIn(needs, "north")).toBe("prepared");
  expect([members.get("west")?.guesses, members.get("north")?.guesses]).toEqual([
    [],
    ["which devices it has, the host is not told: that it has those of claims is taken for granted"],
  ]);
});

test.each([
  ["asks for admin access", needsWith({ adminAccess: true }), /^ResourceClaim "gpu" asks for spec.devices/],
  ["is missing", needsWith({}, { missing: new Set([key]) }), /^resourceclaims.resource.k8s.io "gpu" not found$/],
])("a pod waits whose claim %s", (_, needs, message) => {
  expect(needs).toMatchObject({ state: "missing", message: expect.stringMatching(message) });
});

test("a claim that may not be read hinders no pod", () => {
  expect(needsWith({}, { objects: new Map() })).toBeUndefined();
});
