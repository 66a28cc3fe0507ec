import { describe, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { JsonObject } from "../../../src/api/json.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { claimObstacle, claimStatus, deviceClassesOf, driverOf } from "../../../src/copies/resource-claims.ts";
import { endedStatus, proxyPod } from "../../support/builders/pod.ts";

const PROTECTED = { finalizers: ["resource.kubernetes.io/delete-protection"] };

function claim({ status = {}, metadata = {}, spec = {} }: { [field: string]: object } = {}): Stored<AnyObject> {
  return { metadata: { name: "gpu", namespace: "team", uid: "c1", resourceVersion: "1", ...metadata }, spec, status };
}

function allocated(device: string, more: object = {}): JsonObject {
  return { devices: { results: [{ request: "gpu", driver: "gpu.example.com", pool: "node-1", device, ...more }] } };
}

function consumer(name: string, uid: string): JsonObject {
  return { resource: "pods", name, uid };
}

const IN_WEST = { nodeName: "legation-west" };
const bound = proxyPod({ name: "bound", uid: "uid-bound", spec: IN_WEST });
const unbound = proxyPod({ name: "unbound", uid: "uid-unbound" });
const ended = proxyPod({ name: "ended", uid: "uid-ended", spec: IN_WEST, status: endedStatus(0) });
const proxies = new Map<string, Stored<Pod>>([bound, unbound, ended].map((proxy) => [proxy.metadata.name, proxy]));
const PODS = { proxy: (name: string) => proxies.get(name), isNamed: true };

describe("the status of a claim on the host", () => {
  const allocation = allocated("gpu-0");

  test("is the member's allocation, reserved for the proxies of the pods that use it there", () => {
    const reservedFor = ["bound", "unbound", "ended", "foreign"].map((name) => consumer(name, `there-${name}`));
    expect(claimStatus(claim(), { allocation, reservedFor, devices: [] }, PODS)).toEqual({
      allocation,
      reservedFor: [consumer("bound", "uid-bound"), consumer("unbound", "uid-unbound")],
      devices: [],
    });
  });

  test("keeps the proxies that the host's controller reserved it for, in their order", () => {
    const reservedFor = [
      consumer("bound", "uid-bound"),
      consumer("bound", "uid-before"),
      consumer("ended", "uid-ended"),
    ];
    const there = { allocation, reservedFor: [consumer("unbound", "there-1")] };
    expect(claimStatus(claim({ status: { allocation, reservedFor } }), there, PODS)).toEqual({
      allocation,
      reservedFor: [consumer("bound", "uid-bound"), consumer("unbound", "uid-unbound")],
    });
  });

  test("keeps the host's form of the allocation of the same devices, which may lack fields", () => {
    const there = { allocation: allocated("gpu-0", { consumedCapacity: { memory: "1Gi" } }) };
    expect(claimStatus(claim({ status: { allocation } }), there, PODS)).toEqual({ allocation });
  });

  test("loses an allocation before it gets another", () => {
    const there = { allocation: allocated("gpu-1") };
    expect(claimStatus(claim({ status: { allocation } }), there, PODS)).toEqual({});
  });

  test("is empty when the member took the devices back, or when no pod names the claim any more", () => {
    const shown = claim({ status: { allocation } });
    expect(claimStatus(shown, {}, PODS)).toEqual({});
    expect(claimStatus(shown, undefined, { ...PODS, isNamed: false })).toEqual({});
  });

  test.each([
    ["while its copy is not known", claim({ status: { allocation } }), undefined],
    ["of a claim that the host's scheduler allocated", claim({ metadata: PROTECTED }), { allocation }],
    ["of a claim that is being deleted", claim({ metadata: { deletionTimestamp: "now" } }), { allocation }],
  ])("stays %s", (_, object, there) => {
    expect(claimStatus(object, there, PODS)).toBeUndefined();
  });
});

const exactly = (fields: object): object => ({ devices: { requests: [{ name: "gpu", exactly: fields }] } });

test.each([
  ["of the host's devices", claim({ metadata: PROTECTED }), "has devices of this cluster"],
  [
    "that asks for admin access",
    claim({ spec: exactly({ adminAccess: true }) }),
    "spec.devices.requests[0].exactly.adminAccess",
  ],
  [
    "whose template does",
    claim({ spec: { spec: exactly({ adminAccess: true }) } }),
    "spec.spec.devices.requests[0].exactly",
  ],
  ["without admin access", claim({ spec: exactly({ adminAccess: false }) }), undefined],
])("a claim %s goes to members only if they may have it", (_, object, words) => {
  const obstacle = claimObstacle(object);
  if (words === undefined) expect(obstacle).toBeUndefined();
  else expect(obstacle).toContain(words);
});

test("a request asks for its DeviceClass, or for one of several", () => {
  const firstAvailable = [
    { name: "large", deviceClassName: "large" },
    { name: "small", deviceClassName: "small" },
  ];
  const spec = { devices: { requests: [{ exactly: { deviceClassName: "gpu" } }, { firstAvailable }] } };
  expect(deviceClassesOf(claim({ spec }))).toEqual([["gpu"], ["large", "small"]]);
  expect(deviceClassesOf(claim({ spec: { spec } }))).toEqual([["gpu"], ["large", "small"]]);
  expect(deviceClassesOf(claim())).toEqual([]);
});

test.each([
  ['device.driver == "gpu.example.com"', "gpu.example.com"],
  ["device.driver=='gpu.example.com' && device.attributes['gpu.example.com'].type == 'gpu'", "gpu.example.com"],
  ["device.driver == 'one.example.com' || device.driver == 'other.example.com'", undefined],
  ["!(device.driver == 'gpu.example.com')", undefined],
  ["device.attributes['gpu.example.com'].type == 'gpu'", undefined],
])("the driver that a DeviceClass selects by %s is %s", (expression, driver) => {
  expect(driverOf(claim({ spec: { selectors: [{ cel: { expression } }] } }))).toBe(driver);
});
