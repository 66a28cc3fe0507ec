import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Probe, type ProbeResult } from "../../../src/clusters/probe.ts";
import type { RawRequest } from "../../../src/kube/client.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { fakeClient } from "../cli/client.ts";

const PERIOD_MS = 10_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a version that changes while the member is never away is seen in minutes; one that cannot be read stays", async () => {
  let version: string | undefined = "v1.30.1";
  const results: ProbeResult[] = [];
  const asked: string[] = [];
  const client = fakeClient({
    raw: async ({ path }: RawRequest) => {
      asked.push(path);
      if (path === "/version" && version === undefined) throw new Error("no answer");
      return { gitVersion: version };
    },
  });
  const probe = new Probe({
    client,
    settings: () => ({ periodMs: PERIOD_MS, timeoutMs: 1_000, failureThreshold: 3 }),
    clock: realClock,
    onResult: (result) => results.push(result),
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
  // One server of several that is being stopped still serves.
  expect(asked[0]).toBe("/readyz?exclude=shutdown");
  probe.stop();
});
