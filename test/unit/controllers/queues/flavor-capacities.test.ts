import { expect, test } from "vitest";
import type { KubeNode, KubeObject, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { ResourceFlavor } from "../../../../src/api/kueue.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { FlavorCapacities } from "../../../../src/controllers/queues/flavor-capacities.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { cluster, member } from "../../../support/builders/member.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const NODE: Stored<KubeNode> = {
  metadata: { name: "node-1", uid: "node-1", resourceVersion: "1" },
  status: { allocatable: { cpu: "10" }, conditions: [{ type: "Ready", status: "True" }] },
};

function syncedStore<T extends KubeObject>(objects: readonly Stored<T>[] = []): Store<T> {
  const store = new Store<T>();
  for (const object of objects) store.set(object);
  store.synced = true;
  return store;
}

test("nodes count for a flavor that some user names, and no longer than it does", async () => {
  const clock = new FakeClock();
  const flavor = (name: string): Stored<ResourceFlavor> => ({
    metadata: { name, uid: name, resourceVersion: "1" },
    spec: { nodeLabels: { "legation.dev/cluster": "west" } },
  });
  const west = member("west", undefined, {
    ...{ syncing: false, nodesRead: true, probed: { reachable: true }, virtualNode: { cordoned: false, taints: [] } },
    nodes: [NODE],
    foreignByNode: () => ({ on: () => ({}) }),
  });
  const capacities = new FlavorCapacities({
    flavors: { store: syncedStore<ResourceFlavor>([flavor("first"), flavor("second")]), start: () => {} },
    registry: { clusters: () => [cluster("west")], members: () => [west], unconnected: () => [] },
    proxies: Object.assign(syncedStore<Pod>(), { byIndex: () => [] }),
    wholeInMember: () => [],
    events: new Events<ControllerEvents>(),
    clock,
  });
  let named = ["second"];
  let told = 0;
  capacities.onChange(
    () => {
      told += 1;
    },
    () => named,
  );
  const free = (): unknown => [...(capacities.current() ?? [])].map(([name, sum]) => [name, sum.free]);
  expect(free()).toEqual([["second", { cpu: 10 }]]);
  named = ["first", "second"];
  capacities.changed();
  await clock.advance(1_000);
  expect(told).toBe(1);
  expect(free()).toEqual([
    ["first", { cpu: 10 }],
    ["second", {}],
  ]);
  capacities.stop();
});
