import { beforeEach, expect, test } from "vitest";
import type { Member } from "../../../../src/clusters/member.ts";
import { MemberDevices } from "../../../../src/controllers/following/member-devices.ts";
import type { KubeObject } from "../../../../src/kube/objects.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member, withState } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock, settle } from "../../../support/clock/fake-clock.ts";

function deviceClass(driver: string): object {
  const expression = `device.driver == "${driver}"`;
  return { metadata: { name: driver }, spec: { selectors: [{ cel: { expression } }] } };
}

let changes: number;
let reads: number;
let clock: FakeClock;
let lists: (resource: Resource<KubeObject>) => readonly object[];
let west: Member;
let devices: MemberDevices;

beforeEach(() => {
  clock = new FakeClock();
  [changes, reads] = [0, 0];
  lists = () => [];
  west = member(
    "west",
    fakeClient({
      list: async (resource) => {
        reads += resource.plural === "deviceclasses" ? 1 : 0;
        return { items: [...lists(resource)] };
      },
    }),
  );
  const onRead = (): void => {
    changes += 1;
  };
  const registry = { members: () => [west] };
  devices = new MemberDevices({ registry, clock, log: createLogger({ level: "silent" }), onRead });
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

test("a member is awaited until its devices were read", async () => {
  serve({ slices: 1 });
  devices.start();
  devices.start();
  expect(ask(["gpu"])).toBe("unprepared");
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
  devices.start();
  await settle();
  expect(ask(...requests)).toEqual(answer);
});

test("a member that does not serve the API is refused, and one that refuses to be read is left to its scheduler", async () => {
  lists = () => {
    throw kubeError("NotFound");
  };
  devices.start();
  await settle();
  expect(ask(["gpu"])).toEqual({ refused: "does not serve resource.k8s.io/v1, which ResourceClaim gpu needs" });
  lists = () => {
    throw kubeError("Forbidden");
  };
  await clock.advance(60_000);
  await settle();
  expect(ask(["gpu"])).toBe("prepared");
});

test("members are read once a minute, and pods that wait hear of a driver that was installed", async () => {
  serve({ slices: 0 });
  devices.start();
  await settle();
  serve({ slices: 1 });
  expect([ask(["gpu"]), changes]).toEqual([{ refused: expect.stringContaining("no devices") }, 1]);
  await clock.advance(60_000);
  await settle();
  expect([ask(["gpu"]), changes, reads]).toEqual(["prepared", 2, 2]);
  await clock.advance(60_000);
  await settle();
  expect([changes, reads]).toEqual([2, 3]);
});

test("a member that is refused is read again at once for a pod that comes some seconds later", async () => {
  serve({ slices: 0 });
  devices.start();
  await settle();
  serve({ slices: 1 });
  await clock.advance(4_000);
  ask(["gpu"]);
  await settle();
  expect(reads).toBe(1);
  await clock.advance(1_000);
  ask(["gpu"]);
  ask(["gpu"]);
  await settle();
  expect([ask(["gpu"]), changes, reads]).toEqual(["prepared", 2, 2]);
});

test("a member that is reachable again is read at once, unless it was read before", async () => {
  serve({ slices: 1 });
  withState(west, { reachable: false });
  devices.start();
  await settle();
  withState(west, { reachable: true });
  devices.onConnection(west);
  devices.onConnection(west);
  await settle();
  devices.onConnection(west);
  await settle();
  expect([reads, west.devices.known?.drivers]).toEqual([1, ["gpu"]]);
});

test("what was read is forgotten with the last type that needs it, and classes beyond 200 are not kept", async () => {
  serve({ slices: 1 });
  devices.start();
  await settle();
  devices.stop();
  expect(west.devices.known).toBeUndefined();
  lists = () => Array.from({ length: 201 }, (_, index) => deviceClass(`gpu-${index}`));
  devices.start();
  await settle();
  expect([west.devices.known, ask(["gpu"])]).toEqual([undefined, "prepared"]);
});
