import { expect, test } from "vitest";
import type { DevicesStatus } from "../../../src/api/cluster-status.ts";
import { deviceResources } from "../../../src/placement/devices.ts";
import { candidateOf } from "../../../src/placement/member-candidate.ts";
import { rank } from "../../../src/placement/rank.ts";
import { cluster } from "../../support/builders/member.ts";

const devices: DevicesStatus = {
  served: true,
  classes: [
    { name: "gpu", driver: "gpu.example.com", extendedResource: "example.com/gpu" },
    { name: "idle", driver: "idle.example.com", extendedResource: "example.com/idle" },
    { name: "any", extendedResource: "example.com/any" },
  ],
  drivers: ["gpu.example.com"],
};

test.each([
  ["example.com/gpu", true, "a class names it, and its driver has devices"],
  ["deviceclass.resource.kubernetes.io/gpu", true, "it stands for such a class"],
  ["example.com/any", true, "the driver of its class is not known"],
  ["example.com/idle", false, "the driver of its class has no devices"],
  ["example.com/other", false, "no class names it"],
])("%s is a resource of devices: %s, since %s", (resource, isOffered) => {
  expect(deviceResources({}, devices).has(resource)).toBe(isOffered);
  expect(deviceResources({ [resource]: 1 }, devices).has(resource)).toBe(false);
  expect(deviceResources({}, undefined).has(resource)).toBe(false);
});

test("a member whose nodes lack an extended resource has room for it if a DeviceClass offers it", () => {
  const nodes = { cpu: 4, pods: 10 };
  const facts = {
    closed: undefined,
    overdue: false,
    foreign: {},
    nodeTaints: [],
    allocatable: nodes,
    largestNode: nodes,
    used: { "example.com/gpu": 3 },
  };
  const candidates = [
    candidateOf({ ...facts, cluster: cluster("west"), devices }),
    candidateOf({ ...facts, cluster: cluster("east") }),
  ];
  const { fitting, refusals } = rank({ requests: { cpu: 1, pods: 1, "example.com/gpu": 2 }, candidates });
  expect(fitting).toEqual(["west"]);
  expect(refusals).toMatchObject([{ cluster: "east", reason: "TooLarge" }]);
});
