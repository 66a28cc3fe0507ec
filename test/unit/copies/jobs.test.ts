import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../src/api/kubernetes.ts";
import { hasStarted, isFinished, isLost, lostStatus, statusOnHost, WHOLE_JOB } from "../../../src/copies/jobs.ts";
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

  test("has no key of Legation's in its pod template", () => {
    const metadata = {
      labels: { app: "sum", "legation.dev/host": "x" },
      annotations: { a: "b", "legation.dev/owner": "{}" },
    };
    const { spec } = toCopy(WHOLE_JOB, job({ template: { metadata } }), HOST);
    expect(spec?.template.metadata).toEqual({ labels: { app: "sum" }, annotations: { a: "b" } });
  });

  test("is changed when the parallelism differs", () => {
    expect(drift(stored(job()), job())).toBe("none");
    expect(drift(stored(job(), { parallelism: 9 }), job())).toBe("content");
  });

  test("is replaced when an earlier Job had the name", () => {
    expect(drift(stored(job()), job({}, { uid: "u2" }))).toBe("immutable");
  });
});

const AT = "2026-01-01T00:00:00Z";
const LATER = "2026-01-02T00:00:00Z";
const LOST = { reason: "DeletedInMember", message: "gone", now: LATER };
const MET = { type: "SuccessCriteriaMet", status: "True" };

function typesOf({ conditions = [] }: NonNullable<Job["status"]>): string[] {
  return conditions.map(({ type }) => type);
}

describe("a Job whose copy is lost", () => {
  test("fails, and keeps its counters and other conditions", () => {
    const conditions = [{ type: "Suspended", status: "False" }];
    const status = { startTime: AT, active: 2, succeeded: 3, conditions };
    const failed = lostStatus({ ...job(), status }, LOST);
    expect(failed).toMatchObject({ startTime: AT, active: 0, ready: 0, succeeded: 3 });
    expect(typesOf(failed)).toEqual(["Suspended", "FailureTarget", "Failed"]);
    expect([isFinished({ status }), isFinished({ status: failed })]).toEqual([false, true]);
    expect([isLost({ status }), isLost({ status: failed })]).toEqual([false, true]);
  });

  test("is complete when it had met its success criteria", () => {
    const complete = lostStatus({ ...job(), status: { startTime: AT, conditions: [MET] } }, LOST);
    expect(typesOf(complete)).toEqual(["SuccessCriteriaMet", "Complete"]);
    expect(complete.completionTime).toBe(LATER);
  });
});

describe("the status of a copy", () => {
  test.each([
    ["Complete", "SuccessCriteriaMet"],
    ["Failed", "FailureTarget"],
  ])("gets the reason that the host wants before %s", (final, reason) => {
    const conditions = [{ type: final, status: "True", message: "m" }];
    const status = statusOnHost(job(), { startTime: AT, conditions });
    expect(status.conditions).toEqual([{ type: reason, status: "True", message: "m" }, ...conditions]);
    expect(statusOnHost(job(), status)).toEqual(status);
  });

  test("keeps the start time that the host has, unless the Job is suspended", () => {
    const started = { ...job(), status: { startTime: AT } };
    expect(statusOnHost(started, { startTime: LATER })).toEqual({ startTime: AT });
    expect(statusOnHost({ ...job({ suspend: true }), status: { startTime: AT } }, {})).toEqual({});
    expect(statusOnHost(job(), { startTime: LATER })).toEqual({ startTime: LATER });
  });

  test("says that the Job had started, also without a start time", () => {
    expect(hasStarted(job())).toBe(false);
    expect(hasStarted({ status: { succeeded: 1 } })).toBe(true);
    expect(hasStarted({ status: { conditions: [{ type: "Suspended", status: "True" }] } })).toBe(true);
  });
});
