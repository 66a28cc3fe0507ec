import { expect, test } from "vitest";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { MemberNodes } from "../../../src/clusters/member-nodes.ts";
import type { WatchEvent, WatchOptions } from "../../../src/kube/client.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { answerOf, listing } from "../../support/builders/answers.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

function node(index: number, cpu: number, version: number): object {
  const status = { allocatable: { cpu: String(cpu) }, conditions: [{ type: "Ready", status: "True" }] };
  return { metadata: { name: `n-${index}`, uid: `u-${index}`, resourceVersion: String(version) }, status };
}

test("sums frequent node changes up once a second, and a single change at once", async () => {
  const clock = new FakeClock();
  let version = 1;
  let changed = 0;
  let next = Promise.withResolvers<object>();
  const client = fakeClient({
    list: listing(Array.from({ length: 200 }, (_, index) => node(index, 1, 1))),
    watch: async function* <T extends KubeObject>(
      _resource: Resource<T>,
      { onOpen, signal }: WatchOptions,
    ): AsyncGenerator<WatchEvent<T>> {
      onOpen?.();
      signal.addEventListener("abort", () => next.reject(signal.reason));
      for (;;) yield { type: "MODIFIED", object: answerOf<T>(await next.promise), size: 1 };
    },
  });
  const nodes = new MemberNodes({
    client,
    budget: new ByteBudget(1e9),
    clock,
    log: createLogger({ level: "silent" }),
    onChange: () => {
      changed += 1;
    },
    onState: () => {},
  });
  async function change(index: number, cpu: number): Promise<void> {
    version += 1;
    const { resolve } = next;
    next = Promise.withResolvers();
    resolve(node(index, cpu, version));
    await clock.advance(0);
  }
  nodes.reflector.start();
  await clock.advance(10_000);
  expect([changed <= 2, nodes.totals.allocatable]).toEqual([true, { cpu: 200 }]);

  changed = 0;
  await change(0, 5);
  expect([changed, nodes.totals.allocatable]).toEqual([1, { cpu: 204 }]);
  for (let index = 1; index < 100; index += 1) {
    await change(index, 2);
    await clock.advance(100);
  }
  await clock.advance(1_000);
  expect(changed).toBeGreaterThan(5);
  expect(changed).toBeLessThanOrEqual(12);
  expect([nodes.totals.allocatable, nodes.totals.largestNode]).toEqual([{ cpu: 303 }, { cpu: 5 }]);
  await nodes.stop();
});
