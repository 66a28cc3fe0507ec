import { expect, test } from "vitest";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { Discovery } from "../../../../src/cli/shared/discovery.ts";
import { removeAndWait } from "../../../../src/cli/uninstall/objects.ts";
import { namespaces } from "../../../../src/kube/resources.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const { signal } = new AbortController();
const namespace: Stored<KubeObject> = { metadata: { name: "legation-system", uid: "u", resourceVersion: "1" } };

/** Returns the reported lines of the removal of a namespace that is found so many times more. */
async function removalOf(foundTimes: number): Promise<readonly string[]> {
  let found = 0;
  const clock = new FakeClock();
  const told: string[] = [];
  const host = fakeClient({
    delete: async () => {},
    find: async () => (++found <= foundTimes ? namespace : undefined),
  });
  const removal = removeAndWait(namespaces, namespace, {
    host,
    discovery: new Discovery(host, signal),
    signal,
    clock,
    report: (line) => told.push(line),
    remains: (what) => told.push(`remains: ${what}`),
  });
  await clock.advance(120_000);
  await removal;
  return told;
}

test("reports an object as removed when it is gone at once", async () => {
  expect(await removalOf(0)).toEqual(["Namespace legation-system removed"]);
});

test("announces an object before it waits for its deletion", async () => {
  expect(await removalOf(3)).toEqual([
    "Namespace legation-system is being deleted; waiting until it is gone",
    "Namespace legation-system removed",
  ]);
});

test("reports an object whose deletion hangs as remaining", async () => {
  expect(await removalOf(Number.POSITIVE_INFINITY)).toEqual([
    "Namespace legation-system is being deleted; waiting until it is gone",
    "remains: Namespace legation-system: it is being deleted, but was not gone after 60 s",
  ]);
});
