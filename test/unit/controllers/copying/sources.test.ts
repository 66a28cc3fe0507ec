import { beforeEach, expect, onTestFinished, test } from "vitest";
import { objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { DependencyController } from "../../../../src/controllers/dependencies/controller.ts";
import type { DependencyObject } from "../../../../src/copies/dependencies.ts";
import { FAMILIES } from "../../../../src/copies/named-by-pods.ts";
import type { WatchOptions } from "../../../../src/kube/client.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { listing } from "../../../support/builders/answers.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";

const KEPT_MS = 5 * 60_000;
let clock: FakeClock;
let proxies: Store<Pod>;
let watched: Set<string>;
let controller: DependencyController<DependencyObject>;
beforeEach(() => {
  clock = new FakeClock();
  proxies = new Store<Pod>();
  proxies.synced = true;
  watched = new Set();
  const host = fakeClient({
    list: listing([]),
    watch: async function* ({ plural }: { plural: string }, { namespace, signal, onOpen }: WatchOptions) {
      const what = `${plural} of ${namespace}`;
      watched.add(what);
      onOpen?.();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      watched.delete(what);
    },
  });
  controller = new DependencyController({
    ...surroundings([], clock),
    family: FAMILIES.dependencies,
    host,
    proxies,
  });
  onTestFinished(() => controller.stop());
});

function proxy(name: string, phase: string): Stored<Pod> {
  const volumes = [{ name: "settings", configMap: { name: "settings" } }];
  const spec = { containers: [], volumes, nodeName: "legation-west", automountServiceAccountToken: false };
  return proxyPod({ name, uid: name, spec, status: { phase } });
}

async function put(object: Stored<Pod>): Promise<void> {
  const previous = proxies.get(objectKey(object.metadata));
  proxies.set(object);
  controller.onProxy(previous === undefined ? { type: "added", object } : { type: "updated", object, previous });
  await clock.advance(10);
}

test("does not read dependencies of finished pods", async () => {
  await put(proxy("done", "Succeeded"));
  await put(proxy("failed", "Failed"));
  expect([...watched]).toEqual([]);
  await put(proxy("runs", "Running"));
  expect([...watched]).toContain("configmaps of team");
});

test("reads dependencies until some minutes after the last pod ended", async () => {
  await put(proxy("first", "Running"));
  await put(proxy("second", "Running"));
  await put(proxy("first", "Succeeded"));
  await clock.advance(2 * KEPT_MS);
  expect([...watched]).toContain("configmaps of team");
  await put(proxy("second", "Failed"));
  await clock.advance(KEPT_MS - 1_000);
  expect([...watched]).toContain("configmaps of team");
  await clock.advance(2_000);
  expect([...watched]).toEqual([]);
  await put(proxy("third", "Pending"));
  expect([...watched]).toContain("configmaps of team");
});
