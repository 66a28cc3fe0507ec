import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../../src/api/kubernetes.ts";
import { copyPatch, driftOf, toCopy } from "../../../../src/copies/kind.ts";
import { takesTemplate, WHOLE_JOB } from "../../../../src/whole/jobs/kind.ts";

const HOST = { id: "host-id", name: "host" };
const GENERATED = { "batch.kubernetes.io/controller-uid": "u1", "controller-uid": "u1", "job-name": "sum" };

const AT = "2026-01-01T00:00:00Z";
const SUSPENDED = { type: "Suspended", status: "True" };

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

  test("is changed when fields of the pod template differ that a suspended Job may change", () => {
    const template = (spec: object): object => ({
      template: { metadata: { labels: GENERATED }, spec: { containers: [{ name: "main", resources: {} }], ...spec } },
    });
    const before = job({ suspend: true, ...template({ tolerations: [{ operator: "Exists" }] }) });
    const limits = [{ name: "main", resources: { limits: { cpu: "1" } } }];
    const source = job({ suspend: true, ...template({ nodeSelector: { zone: "a" }, containers: limits }) });
    const patch = copyPatch(WHOLE_JOB, stored(before), { source, host: HOST, sameContent: false });
    expect(patch.filter((operation) => JSON.stringify(operation).includes("/spec/"))).toEqual([
      { op: "add", path: "/spec/template/spec/nodeSelector", value: { zone: "a" } },
      { op: "add", path: "/spec/template/spec/tolerations", value: null },
      { op: "add", path: "/spec/template/spec/containers/0/resources", value: { limits: { cpu: "1" } } },
    ]);
  });

  test.each<[string, Job, boolean]>([
    ["a suspended Job that has never started", { spec: { suspend: true, template: {} } }, true],
    [
      "a Job that is suspended again",
      { spec: { suspend: true, template: {} }, status: { startTime: AT, conditions: [SUSPENDED] } },
      true,
    ],
    ["a Job whose pods have not ended", { spec: { suspend: true, template: {} }, status: { active: 1 } }, false],
    [
      "a Job that is about to be suspended",
      { spec: { suspend: true, template: {} }, status: { startTime: AT } },
      false,
    ],
    ["a Job that runs", { spec: { template: {} }, status: { startTime: AT } }, false],
  ])("takes another pod template or not: %s", (_, copy, expected) => {
    expect(takesTemplate(copy)).toBe(expected);
  });

  test("is replaced when an earlier Job had the name", () => {
    expect(drift(stored(job()), job({}, { uid: "u2" }))).toBe("immutable");
  });
});
