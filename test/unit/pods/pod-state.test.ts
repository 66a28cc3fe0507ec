import { expect, test } from "vitest";
import type { PodStatus } from "../../../src/api/kubernetes.ts";
import { deletionAskedAt, deletionGrace, everRan } from "../../../src/pods/pod-state.ts";
import { containerStatus, pod } from "../../support/builders/pod.ts";

const deletionTimestamp = "2026-01-01T00:01:00Z";
const forever = JSON.rawJSON("9223372036854775807") as unknown as number;

test.each<[number | undefined, number | undefined, string | undefined]>([
  [30, 30, "2026-01-01T00:00:30.000Z"],
  [0, 0, "2026-01-01T00:01:00.000Z"],
  [undefined, undefined, "2026-01-01T00:01:00.000Z"],
  // Valid in the API, but beyond any date.
  [forever, Number.MAX_SAFE_INTEGER, undefined],
])(
  "reads the grace period and the request time of a deletion with %s s",
  (deletionGracePeriodSeconds, grace, askedAt) => {
    const graceful = deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds };
    const deleted = pod({ metadata: { deletionTimestamp, ...graceful } });
    expect(deletionGrace(deleted)).toBe(grace);
    expect(deletionAskedAt(deleted)).toBe(askedAt === undefined ? undefined : Date.parse(askedAt));
  },
);

test("finds no requested deletion without a deletion timestamp", () => {
  expect(deletionAskedAt(pod({}))).toBeUndefined();
});

const terminated = { exitCode: 0 };
test.each<[string, boolean, PodStatus]>([
  ["without container statuses", false, { phase: "Pending" }],
  ["that waits", false, { containerStatuses: [containerStatus({ state: { waiting: {} } })] }],
  ["that runs", true, { containerStatuses: [containerStatus({ state: { running: {} } })] }],
  ["one of whose containers has ended", true, { containerStatuses: [containerStatus({ state: { terminated } })] }],
  ["that waits again", true, { containerStatuses: [containerStatus({ lastState: { terminated } })] }],
  ["that was restarted", true, { containerStatuses: [containerStatus({ restartCount: 1 })] }],
  ["whose init container has run", true, { initContainerStatuses: [containerStatus({ state: { terminated } })] }],
  ["that a person debugs", true, { ephemeralContainerStatuses: [containerStatus({ state: { running: {} } })] }],
])("tells whether a pod %s has started: %s", (_, expected, status) => {
  expect(everRan(pod({ status }))).toBe(expected);
});
