import { expect, test } from "vitest";
import { OVERFLOW_LABEL_VALUE, PREFERENCES_ANNOTATION, PROXY_LABEL } from "../../../../src/api/keys.ts";
import type { Namespace, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { PlacementDefaults } from "../../../../src/api/placement-defaults.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { PLACEMENT_INDEXES } from "../../../../src/scheduling/known-pods.ts";
import { PlacementState } from "../../../../src/scheduling/placement-state.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";

const metadata = { annotations: { [PREFERENCES_ANNOTATION]: "{}" } };
const waiting = { ...metadata, labels: { [PROXY_LABEL]: OVERFLOW_LABEL_VALUE } };
const bound = { schedulerName: "default-scheduler", nodeName: "legation-west" };

test.each<[string, Stored<Pod>, boolean]>([
  ["of proxies is divided", proxyPod({ metadata }), true],
  ["in overflow mode is not", pod({ metadata: waiting }), false],
  ["that has overflowed is not", proxyPod({ metadata, spec: bound }), false],
])("divides a workload with preferences, or not: %s", (_, proxy, divided) => {
  const namespaces = new Store<Namespace>();
  namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1" } });
  const { eligibilities } = new PlacementState({
    classes: undefined,
    registry: { members: () => [], member: () => undefined, unconnected: () => [] },
    namespaces,
    defaults: new Store<PlacementDefaults>(),
    proxies: new Store<Pod>(PLACEMENT_INDEXES),
    homeApi: () => ({ state: "unknown", message: "" }),
    clock: { now: () => 0 },
  });
  expect(eligibilities.sharing(proxy) !== undefined).toBe(divided);
});
