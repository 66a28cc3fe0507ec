import { expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { drainNode } from "../../../../src/cli/unjoin/drain.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { listing } from "../../../support/builders/answers.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const { signal } = new AbortController();
const proxies = (count: number): Stored<Pod>[] =>
  Array.from({ length: count }, (_, index) => ({
    metadata: { name: `web-${index}`, namespace: "shop", uid: String(index), resourceVersion: "1" },
  }));

/** A host whose PodDisruptionBudgets hold up every eviction, and which takes a second to say so. */
function blocking(items: Stored<Pod>[], clock: FakeClock): { readonly host: ClusterClient; evictions: number } {
  const held = {
    evictions: 0,
    host: fakeClient({
      list: listing(items),
      createSubresource: async () => {
        held.evictions += 1;
        await clock.sleep(1000);
        throw kubeError("TooManyRequests", "the budget allows none", { cluster: "host" });
      },
    }),
  };
  return held;
}

test("evicts several pods at once", async () => {
  const clock = new FakeClock();
  const held = blocking(proxies(8), clock);
  const lines: string[] = [];
  const report = (line: string): void => void lines.push(line);
  const drained = drainNode(held.host, "legation-west", { timeoutMs: 1500, force: false, signal, report, clock });
  await clock.advance(1000);
  expect(lines).toEqual(proxies(8).map(({ metadata }) => `shop/${metadata.name} waits: the budget allows none`));
  await clock.advance(10_000);
  expect(await drained).toHaveLength(8);
});

test("times out though evictions of many pods are refused", async () => {
  const clock = new FakeClock();
  const held = blocking(proxies(1000), clock);
  const begun = clock.now();
  let ended: number | undefined;
  const drained = drainNode(held.host, "legation-west", {
    timeoutMs: 10_000,
    force: false,
    signal,
    report: () => {},
    clock,
  }).finally(() => {
    ended = clock.now() - begun;
  });
  await clock.advance(600_000);
  expect(await drained).toHaveLength(1000);
  expect(ended).toBe(10_000);
  expect(held.evictions).toBe(80);
});

/** A drain of two pods, the first of which may not be evicted. */
async function drainPast(code: KubeErrorCode, detail: string): Promise<readonly string[]> {
  const clock = new FakeClock();
  const lines: string[] = [];
  const host = fakeClient({
    list: listing(proxies(2)),
    createSubresource: async (_resource, { name }) => {
      if (name !== "web-0") return {};
      throw kubeError(code, detail, { cluster: "host", resource: "pods/eviction" });
    },
  });
  const report = (line: string): void => void lines.push(line);
  const drained = drainNode(host, "legation-west", { timeoutMs: 3000, force: false, signal, report, clock });
  const advanced = clock.advance(10_000);
  await drained;
  await advanced;
  return lines;
}

test.each([
  ["TooManyRequests", "the budget allows none"],
  ["ServerError", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."],
  [
    "Forbidden",
    'pods "web-0" is forbidden: unable to create new content in namespace shop because it is being terminated',
  ],
] as const)("goes on with other pods after an eviction is refused with %s: %s", async (code, detail) => {
  expect((await drainPast(code, detail)).toSorted()).toEqual([`shop/web-0 waits: ${detail}`, "shop/web-1 evicted"]);
});

test("fails in the API server's words without the right to evict", async () => {
  const detail =
    'pods "web-0" is forbidden: User "jane" cannot create resource "pods/eviction" in API group "" in the namespace "shop"';
  await expect(drainPast("Forbidden", detail)).rejects.toMatchObject({ code: "Forbidden", detail });
});
