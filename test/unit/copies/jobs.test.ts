import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../src/api/kubernetes.ts";
import { failedStatus, isFinished, WHOLE_JOB } from "../../../src/copies/jobs.ts";
import { driftOf, toCopy } from "../../../src/copies/kind.ts";

const HOST = { id: "host-id", name: "host" };
const GENERATED = { "batch.kubernetes.io/controller-uid": "u1", "controller-uid": "u1", "job-name": "sum" };

function job(spec: object = {}, metadata: object = {}): Stored<Job> {
  return {
    metadata: { name: "sum", namespace: "team", uid: "u1", resourceVersion: "1", ...metadata },
    spec: {
      parallelism: 2,
      managedBy: "legation.dev/whole",
      ttlSecondsAfterFinished: 5,
      selector: { matchLabels: { "batch.kubernetes.io/controller-uid": "u1" } },
      template: { metadata: { labels: { app: "sum", ...GENERATED } }, spec: { containers: [{ name: "main" }] } },
      ...spec,
    },
  };
}

/** The copy as the member's API server stores it. */
function stored(source: Stored<Job>, change: object = {}): Stored<Job> {
  const copy = toCopy(WHOLE_JOB, source, HOST);
  const metadata = { ...copy.metadata, name: "sum", uid: "m1", resourceVersion: "7" };
  return { ...copy, metadata, spec: { ...copy.spec, template: copy.spec?.template ?? {}, ...change } };
}

function drift(copy: Stored<Job>, source: Stored<Job>): string {
  const content = ({ spec }: Job): unknown => [spec?.parallelism, spec?.suspend];
  const sameContent = JSON.stringify(content(copy)) === JSON.stringify(content(source));
  return driftOf(WHOLE_JOB, copy, { source, host: HOST, sameContent });
}

describe("the copy of a whole Job", () => {
  test("lacks what the host's API server generated, its manager and its TTL", () => {
    const { spec, metadata } = toCopy(WHOLE_JOB, job({}, { annotations: { "legation.dev/whole": "true" } }), HOST);
    expect(spec).toEqual({
      parallelism: 2,
      template: { metadata: { labels: { app: "sum" } }, spec: { containers: [{ name: "main" }] } },
    });
    expect(metadata?.annotations).not.toHaveProperty("legation.dev/whole");
  });

  test("keeps a selector that its author wrote", () => {
    const selector = { matchLabels: { app: "sum" } };
    const { spec } = toCopy(WHOLE_JOB, job({ manualSelector: true, selector }), HOST);
    expect(spec).toMatchObject({ manualSelector: true, selector, template: { metadata: { labels: GENERATED } } });
  });

  test("is changed when the parallelism differs", () => {
    expect(drift(stored(job()), job())).toBe("none");
    expect(drift(stored(job(), { parallelism: 9 }), job())).toBe("content");
  });

  test("is replaced when an earlier Job had the name", () => {
    expect(drift(stored(job()), job({}, { uid: "u2" }))).toBe("immutable");
  });
});

test("a Job that failed in its member keeps its counters and other conditions", () => {
  const status = {
    startTime: "2026-01-01T00:00:00Z",
    active: 2,
    succeeded: 3,
    conditions: [{ type: "Suspended", status: "False" }],
  };
  const failed = failedStatus(
    { ...job(), status },
    { reason: "DeletedInMember", message: "gone", now: "2026-01-02T00:00:00Z" },
  );
  expect(failed).toMatchObject({ startTime: status.startTime, active: 0, ready: 0, succeeded: 3 });
  expect(failed.conditions?.map(({ type }) => type)).toEqual(["Suspended", "FailureTarget", "Failed"]);
  expect([isFinished({ status }), isFinished({ status: failed })]).toEqual([false, true]);
});
