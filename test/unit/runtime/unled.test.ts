import { describe, expect, test } from "vitest";
import type { Lease, Stored } from "../../../src/api/kubernetes.ts";
import { noteUnled, UNLED_ANNOTATION, unledIn, wasUnled } from "../../../src/runtime/unled.ts";

const NOON = Date.parse("2026-01-01T12:00:00Z");
const MINUTE = 60_000;

function lease(renewedMinutesAgo: number, unled?: string): Stored<Lease> {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: "legation-controller",
      uid: "lease-uid",
      resourceVersion: "1",
      ...(unled === undefined ? {} : { annotations: { [UNLED_ANNOTATION]: unled } }),
    },
    spec: { renewTime: new Date(NOON - renewedMinutesAgo * MINUTE).toISOString(), leaseDurationSeconds: 60 },
  };
}

const minutesAgo = (minutes: number): string => new Date(NOON - minutes * MINUTE).toISOString();

test.each([
  ["in the lease", 59, false],
  ["just after it, by a clock that is ahead", 58.5, false],
  ["when nobody led", 30, true],
  ["after the lease was taken over", -1, false],
])("a delegate that was made %s", (_, age, unled) => {
  const intervals = unledIn(noteUnled(lease(60), NOON));
  expect(wasUnled(intervals, minutesAgo(age))).toBe(unled);
});

test("a leader that follows at once notes nothing, and keeps what was noted", () => {
  expect(noteUnled(lease(1.5), NOON)).toBeUndefined();
  const noted = noteUnled(lease(60), NOON);
  expect(noteUnled(lease(1.5, noted), NOON)).toBe(noted);
});

test("every time without a leader counts, of the last twenty", () => {
  const first = noteUnled(lease(600), NOON - 500 * MINUTE);
  const intervals = unledIn(noteUnled(lease(60, first), NOON));
  expect(wasUnled(intervals, minutesAgo(550))).toBe(true);
  expect(wasUnled(intervals, minutesAgo(30))).toBe(true);
  expect(wasUnled(intervals, minutesAgo(300))).toBe(false);
  let many: string | undefined;
  for (let index = 0; index < 30; index += 1) many = noteUnled(lease(60, many), NOON);
  expect(unledIn(many)).toHaveLength(20);
});

describe("the API server's account of who wrote what, and when,", () => {
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

  test("counts, and not the clock of a holder that was set back", () => {
    expect(noteUnled(written(1.5, lease(61.5)), NOON)).toBeUndefined();
  });

  test("counts, and not the clock of a holder that is ahead", () => {
    const intervals = unledIn(noteUnled(written(60, lease(-60)), NOON));
    expect(wasUnled(intervals, minutesAgo(30))).toBe(true);
  });
});

test.each(["", "yesterday", "2026-01-02T00:00:00Z/2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"])(
  "%j is no time",
  (text) => {
    expect(unledIn(text)).toEqual([]);
    expect(wasUnled(unledIn(text), minutesAgo(0))).toBe(false);
  },
);
