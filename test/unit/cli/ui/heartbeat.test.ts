import { describe, expect, onTestFinished, test } from "vitest";
import { Heartbeat, type Watched } from "../../../../src/cli/ui/heartbeat.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const answer: ClusterClient["list"] = async () => ({ items: [], resourceVersion: "1", size: 0 });
const never = (): Promise<never> => new Promise(() => {});

function started(list: ClusterClient["list"], watched: readonly Watched[] = []) {
  const clock = new FakeClock();
  let probes = 0;
  const host = fakeClient({
    list: (resource, options) => {
      probes += 1;
      return list(resource, options);
    },
  });
  const heartbeat = new Heartbeat({ host, clock, watched });
  heartbeat.start();
  onTestFinished(() => heartbeat.stop());
  return { clock, heartbeat, probes: () => probes };
}

const watch = (lastContactMs: number | undefined, failing?: Watched["failing"]): Watched => ({
  lastContactMs,
  failing,
});

describe("the time since the host's API server was last heard", () => {
  test("is unknown before anything came", () => {
    expect(started(answer).heartbeat.silentMs).toBeUndefined();
  });

  test("starts anew with each answer to the probe, while watches are silent", async () => {
    const { clock, heartbeat, probes } = started(answer, [watch(new FakeClock().now())]);
    await clock.advance(60_000);
    expect(heartbeat.silentMs).toBeLessThanOrEqual(3_000);
    expect(probes()).toBe(20);
  });

  test("needs no probe while watches have events", async () => {
    const clock = new FakeClock();
    const busy: Watched = {
      get lastContactMs() {
        return clock.now();
      },
      failing: undefined,
    };
    let probes = 0;
    const host = fakeClient({
      list: async () => {
        probes += 1;
        return { items: [], resourceVersion: "1", size: 0 };
      },
    });
    const heartbeat = new Heartbeat({ host, clock, watched: [busy] });
    heartbeat.start();
    await clock.advance(30_000);
    heartbeat.stop();
    expect([probes, heartbeat.silentMs]).toEqual([0, 0]);
  });

  test.each([
    ["a frozen host, whose watches only fall silent", never],
    ["a host that refuses connections", () => Promise.reject(kubeError("NotSent"))],
    ["a gateway that has no host behind it", () => Promise.reject(kubeError("ServerError", "no", { status: 502 }))],
  ] satisfies readonly [string, ClusterClient["list"]][])("grows with %s", async (_, list) => {
    const { clock, heartbeat } = started(list, [watch(new FakeClock().now())]);
    await clock.advance(100_000);
    expect(heartbeat.silentMs).toBe(100_000);
  });

  test("starts anew with a refusal, which is a word of the host", async () => {
    const { clock, heartbeat } = started(() => Promise.reject(kubeError("Forbidden", "no", { status: 403 })));
    await clock.advance(30_000);
    expect(heartbeat.silentMs).toBeLessThanOrEqual(3_000);
  });

  test("grows since a watch fails, though the host answers others", async () => {
    const since = new FakeClock().now() + 5_000;
    const { clock, heartbeat } = started(answer, [watch(since), watch(since, { since, reason: "cut" })]);
    await clock.advance(30_000);
    expect(heartbeat.silentMs).toBe(25_000);
  });

  test("does not grow because the user may not watch", async () => {
    const since = new FakeClock().now();
    const { clock, heartbeat } = started(answer, [watch(undefined, { since, reason: "no", code: "Forbidden" })]);
    await clock.advance(30_000);
    expect(heartbeat.silentMs).toBeLessThanOrEqual(3_000);
  });
});
