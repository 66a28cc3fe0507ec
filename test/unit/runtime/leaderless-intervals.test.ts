import { describe, expect, test } from "vitest";
import type { Lease, Stored } from "../../../src/api/kubernetes.ts";
import {
  addLeaderlessInterval,
  parseLeaderlessIntervals,
  wasLeaderless,
} from "../../../src/runtime/leaderless-intervals.ts";

const NOON = Date.parse("2026-01-01T12:00:00Z");
const MINUTE = 60_000;
const ANNOTATION = "example.dev/leaderless";

function lease(renewedMinutesAgo: number, leaderless?: string): Stored<Lease> {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: "legation-controller",
      uid: "lease-uid",
      resourceVersion: "1",
      ...(leaderless === undefined ? {} : { annotations: { [ANNOTATION]: leaderless } }),
    },
    spec: { renewTime: new Date(NOON - renewedMinutesAgo * MINUTE).toISOString(), leaseDurationSeconds: 60 },
  };
}

/** Returns the annotation that a takeover at `now` writes. */
const noted = (found: Stored<Lease>, now: number): string | undefined =>
  addLeaderlessInterval(found, found.metadata.annotations?.[ANNOTATION], now);
const minutesAgo = (minutes: number): string => new Date(NOON - minutes * MINUTE).toISOString();

test.each([
  ["in the lease", 59, false],
  ["just after it, by a clock that is ahead", 58.5, false],
  ["when nobody led", 30, true],
  ["after the lease was taken over", -1, false],
])("tells an object of a time without a leader: created %s", (_, age, leaderless) => {
  const intervals = parseLeaderlessIntervals(noted(lease(60), NOON));
  expect(wasLeaderless(intervals, minutesAgo(age))).toBe(leaderless);
});

test("adds no interval for an immediate takeover, and keeps earlier ones", () => {
  expect(noted(lease(1.5), NOON)).toBeUndefined();
  const before = noted(lease(60), NOON);
  expect(noted(lease(1.5, before), NOON)).toBe(before);
});

test("keeps the last twenty intervals", () => {
  const first = noted(lease(600), NOON - 500 * MINUTE);
  const intervals = parseLeaderlessIntervals(noted(lease(60, first), NOON));
  expect(wasLeaderless(intervals, minutesAgo(550))).toBe(true);
  expect(wasLeaderless(intervals, minutesAgo(30))).toBe(true);
  expect(wasLeaderless(intervals, minutesAgo(300))).toBe(false);
  let many: string | undefined;
  for (let index = 0; index < 30; index += 1) many = noted(lease(60, many), NOON);
  expect(parseLeaderlessIntervals(many)).toHaveLength(20);
});

describe("the API server's managedFields", () => {
  const written = (renewed: number, told: Stored<Lease>): Stored<Lease> => ({
    ...told,
    metadata: {
      ...told.metadata,
      managedFields: [
        { manager: "legation", time: minutesAgo(renewed), fieldsV1: { "f:spec": { "f:renewTime": {} } } },
        { manager: "kubectl", time: minutesAgo(0), fieldsV1: { "f:metadata": { "f:annotations": {} } } },
      ],
    },
  });

  test("win over the clock of a holder that was set back", () => {
    expect(noted(written(1.5, lease(61.5)), NOON)).toBeUndefined();
  });

  test("win over the clock of a holder that is ahead", () => {
    const intervals = parseLeaderlessIntervals(noted(written(60, lease(-60)), NOON));
    expect(wasLeaderless(intervals, minutesAgo(30))).toBe(true);
  });
});

test.each(["", "yesterday", "2026-01-02T00:00:00Z/2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])(
  "%j is no time",
  (text) => {
    expect(parseLeaderlessIntervals(text)).toEqual([]);
    expect(wasLeaderless(parseLeaderlessIntervals(text), minutesAgo(0))).toBe(false);
  },
);
