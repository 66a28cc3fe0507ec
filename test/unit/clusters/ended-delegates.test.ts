import { expect, test } from "vitest";
import type { KubeObject, Pod, Stored } from "../../../src/api/kubernetes.ts";
import { DelegateRequests } from "../../../src/clusters/delegate-requests.ts";
import { RecentEnds } from "../../../src/clusters/ended-delegates.ts";
import { MemberDelegates } from "../../../src/clusters/member-delegates.ts";
import type { WatchEvent, WatchOptions } from "../../../src/kube/client.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { answerOf } from "../../support/builders/answers.ts";
import { proxyPod } from "../../support/builders/pod.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { delegateOf } from "../controllers/delegation/world.ts";
import { quietClient } from "../controllers/quiet-client.ts";

test("remembers a namespace with an ended delegate for five seconds", async () => {
  const clock = new FakeClock();
  const ends = new RecentEnds(clock);
  expect(ends.has("team")).toBe(false);
  ends.note("team");
  await clock.advance(3_000);
  ends.note("other");
  expect([ends.has("team"), ends.has("other"), ends.has("third")]).toEqual([true, true, false]);
  await clock.advance(1_999);
  expect(ends.has("team")).toBe(true);
  await clock.advance(1);
  expect([ends.has("team"), ends.has("other")]).toEqual([false, true]);
  ends.note("other");
  expect(ends.size).toBe(1);
  await clock.advance(4_999);
  expect(ends.has("other")).toBe(true);
});

test.each([
  ["is deleted", "DELETED", {}],
  ["has finished", "MODIFIED", { status: { phase: "Succeeded" } }],
] as const)("counts a delegate that %s as ended in its namespace", async (_, type, parts) => {
  const clock = new FakeClock();
  const proxy = proxyPod();
  const delegate = delegateOf(proxy);
  async function* watch<T extends KubeObject>(
    _resource: Resource<T>,
    { signal, onOpen }: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>> {
    onOpen?.();
    await clock.sleep(1_000);
    const object: Stored<Pod> = { ...delegate, ...parts, metadata: { ...delegate.metadata, resourceVersion: "9" } };
    yield { type, object: answerOf<T>(object), size: 1 };
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }
  const nothing = (): void => {};
  const delegates = new MemberDelegates({
    client: quietClient([delegate], { watch }),
    hostId: "host-id",
    requests: new DelegateRequests(),
    budget: new ByteBudget(1e6),
    clock,
    log: createLogger({ level: "silent" }),
    onChange: nothing,
    onEnded: nothing,
    onState: nothing,
  });
  delegates.reflector.start();
  await clock.advance(999);
  expect(delegates.size).toBe(1);
  expect(delegates.endedLately("team")).toBe(false);
  await clock.advance(1);
  expect(delegates.endedLately("team")).toBe(true);
  await delegates.reflector.stop();
});
