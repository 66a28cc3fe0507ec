import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Probe, type ProbeResult } from "../../../src/clusters/probe.ts";
import type { RawRequest } from "../../../src/kube/client.ts";
import { WayPending } from "../../../src/kube/errors.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

const PERIOD_MS = 10_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A probe of a member that answers so. */
function probeOf(
  raw: (request: RawRequest) => Promise<unknown>,
  {
    heardAt = () => Number.NEGATIVE_INFINITY,
    due = () => undefined,
  }: { readonly heardAt?: () => number; readonly due?: (timeoutMs: number) => Promise<void> | undefined } = {},
): {
  readonly probe: Probe;
  readonly results: ProbeResult[];
} {
  const results: ProbeResult[] = [];
  const probe = new Probe({
    client: fakeClient({ raw }),
    settings: () => ({ periodMs: PERIOD_MS, timeoutMs: 1_000, failureThreshold: 3 }),
    clock: realClock,
    heardAt,
    due,
    onResult: (result) => results.push(result),
  });
  return { probe, results };
}

test("reads a changed version within minutes, and keeps an unreadable one", async () => {
  let version: string | undefined = "v1.30.1";
  const asked: string[] = [];
  const { probe, results } = probeOf(async ({ path }) => {
    asked.push(path);
    if (path === "/version" && version === undefined) throw new Error("no answer");
    return { gitVersion: version };
  });
  probe.start();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(results.at(-1)).toEqual({ reachable: true, version: "v1.30.1" });
  version = "v1.31.0";
  await vi.advanceTimersByTimeAsync(300_000);
  expect(results.at(-1)).toEqual({ reachable: true, version: "v1.31.0" });
  version = undefined;
  await vi.advanceTimersByTimeAsync(400_000);
  expect(results.every(({ reachable }) => reachable)).toBe(true);
  expect(results.at(-1)).toEqual({ reachable: true, version: "v1.31.0" });
  // Once at first, and twice since.
  expect(asked.filter((path) => path === "/version")).toHaveLength(4 - 1);
  // A server of several that is being stopped still serves.
  expect(asked[0]).toBe("/readyz?exclude=shutdown");
  probe.stop();
});

/** Returns the reports of a probe whose member answers as `fails` says, after so many milliseconds. */
async function probed(fails: (probes: number) => boolean, afterMs: number): Promise<ProbeResult[]> {
  let probes = 0;
  const { probe, results } = probeOf(async ({ path }) => {
    if (path !== "/version") probes += 1;
    if (fails(probes)) throw new Error("no answer");
    return { gitVersion: "v1.30.1" };
  });
  probe.start();
  await vi.advanceTimersByTimeAsync(afterMs);
  probe.stop();
  return results;
}

test("says what the member answers, without the paths that are read", async () => {
  const { probe, results } = probeOf(() =>
    Promise.reject(kubeError("ServerError", "etcd failed", { verb: "get raw", resource: "/readyz?exclude=shutdown" })),
  );
  probe.start();
  await vi.advanceTimersByTimeAsync(1);
  probe.stop();
  expect(results[0]?.message).toBe("etcd failed");
});

test("counts a member that never answered as unreachable after the failure threshold, a second apart", async () => {
  expect(await probed(() => true, 2_500)).toEqual([
    { reachable: false, undecided: true, message: "no answer" },
    { reachable: false, undecided: true, message: "no answer" },
    { reachable: false, message: "no answer" },
  ]);
  expect(await probed((probes) => probes === 1, 1_500)).toEqual([
    { reachable: false, undecided: true, message: "no answer" },
    { reachable: true, version: "v1.30.1" },
  ]);
});

test("counts no failure while the way to a member that never answered is being made", async () => {
  const pending = kubeError("NotSent", "no agent has connected", { cause: new WayPending() });
  let isPending = true;
  const { probe, results } = probeOf(() => Promise.reject(isPending ? pending : new Error("no answer")));
  probe.start();
  await vi.advanceTimersByTimeAsync(19_500);
  expect(results).toHaveLength(20);
  expect(results.at(-1)).toEqual({ reachable: false, undecided: true, message: "no agent has connected" });
  isPending = false;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(results.at(-1)?.undecided).toBe(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(results.at(-1)).toEqual({ reachable: false, message: "no answer" });
  probe.stop();
});

test("asks no member that sends events, but for once a minute, and one that falls silent within the period", async () => {
  let heardAt = Number.NEGATIVE_INFINITY;
  let probes = 0;
  const { probe } = probeOf(
    async ({ path }) => {
      if (path !== "/version") probes += 1;
      return { gitVersion: "v1.30.1" };
    },
    { heardAt: () => heardAt },
  );
  probe.start();
  for (let second = 0; second < 59; second += 1) {
    await vi.advanceTimersByTimeAsync(1_000);
    heardAt = realClock.now();
  }
  expect(probes).toBe(1);
  await vi.advanceTimersByTimeAsync(PERIOD_MS);
  expect(probes).toBe(2);
  await vi.advanceTimersByTimeAsync(10 * PERIOD_MS);
  expect(probes).toBe(12);
  heardAt = realClock.now();
  probe.hurry();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(probes).toBe(13);
  probe.stop();
});

test("leaves a turn to another request of the member that is due, which fails the probe as its own does", async () => {
  const asked: string[] = [];
  const answers = [() => Promise.resolve(), () => undefined, () => Promise.reject(new Error("no answer"))];
  const { probe, results } = probeOf(
    async ({ path }) => {
      asked.push(path);
      return { gitVersion: "v1.30.1" };
    },
    { due: () => answers.shift()?.() },
  );
  probe.start();
  await vi.advanceTimersByTimeAsync(2 * PERIOD_MS + 1);
  // Until the member has answered once, its own path says what is wrong.
  expect(asked).toEqual(["/readyz?exclude=shutdown", "/version", "/readyz?exclude=shutdown"]);
  expect(answers).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(PERIOD_MS);
  expect(results.map(({ message }) => message)).toEqual([undefined, undefined, undefined, "no answer"]);
  probe.stop();
});
