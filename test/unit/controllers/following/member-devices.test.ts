import { beforeEach, expect, test } from "vitest";
import { MemberDevices } from "../../../../src/controllers/following/member-devices.ts";
import type { KubeObject } from "../../../../src/kube/objects.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock, settle } from "../../../support/clock/fake-clock.ts";

function deviceClass(driver: string): object {
  const expression = `device.driver == "${driver}"`;
  return { metadata: { name: driver }, spec: { selectors: [{ cel: { expression } }] } };
}

let clock: FakeClock;
let changes: number;
let reads: number;
let lists: (resource: Resource<KubeObject>) => readonly object[];
let devices: MemberDevices;
const client = fakeClient({
  list: async (resource) => {
    reads += resource.plural === "deviceclasses" ? 1 : 0;
    return { items: [...lists(resource)] };
  },
});
const west = member("west", client);

beforeEach(() => {
  clock = new FakeClock();
  changes = 0;
  reads = 0;
  lists = () => [];
  const onChange = (): void => {
    changes += 1;
  };
  devices = new MemberDevices({ clock, log: createLogger({ level: "silent" }), onChange });
  return () => devices.stop();
});

function ask(...requests: readonly string[][]): unknown {
  return devices.preparationFor(west, "ResourceClaim gpu", requests);
}

/** Serves a DeviceClass `gpu` of a driver that has devices, or none. */
function serve({ slices }: { readonly slices: number }): void {
  lists = ({ plural }) =>
    plural === "deviceclasses" ? [deviceClass("gpu")] : Array.from({ length: slices }, () => ({}));
}

test("a member is awaited until its devices were read, once for all pods", async () => {
  serve({ slices: 1 });
  expect([ask(["gpu"]), ask(["gpu"])]).toEqual(["unprepared", "unprepared"]);
  await settle();
  expect([ask(["gpu"]), changes, reads]).toEqual(["prepared", 1, 1]);
});

test.each([
  ["every request has a class with devices, or one of several", 1, [["gpu"], ["tpu", "gpu"]], "prepared"],
  ["a class is not there", 1, [["tpu"]], { refused: "has no DeviceClass tpu, which ResourceClaim gpu asks for" }],
  [
    "the driver of a class has no devices",
    0,
    [["gpu"]],
    { refused: "has no devices of driver gpu, which ResourceClaim gpu asks for by DeviceClass gpu" },
  ],
])("a member's answer when %s", async (_, slices, requests, answer) => {
  serve({ slices });
  ask(...requests);
  await settle();
  expect(ask(...requests)).toEqual(answer);
});

test("a member that does not serve the API is refused, and one that refuses to be read is left to its scheduler", async () => {
  lists = () => {
    throw kubeError("NotFound");
  };
  ask(["gpu"]);
  await settle();
  expect(ask(["gpu"])).toEqual({ refused: "does not serve resource.k8s.io/v1, which ResourceClaim gpu needs" });
  lists = () => {
    throw kubeError("Forbidden");
  };
  await clock.advance(60_000);
  ask(["gpu"]);
  await settle();
  expect(ask(["gpu"])).toBe("prepared");
});

test("pods that wait hear of a driver that was installed within a minute, and a member is not read without them", async () => {
  serve({ slices: 0 });
  ask(["gpu"]);
  await settle();
  serve({ slices: 1 });
  expect([ask(["gpu"]), changes]).toEqual([{ refused: expect.stringContaining("no devices") }, 1]);
  await clock.advance(60_000);
  expect([changes, reads]).toEqual([2, 1]);
  ask(["gpu"]);
  await settle();
  expect([ask(["gpu"]), changes, reads]).toEqual(["prepared", 3, 2]);
  await clock.advance(600_000);
  expect(reads).toBe(2);
});
