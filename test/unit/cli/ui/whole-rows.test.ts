import { expect, test } from "vitest";
import { wholeRow } from "../../../../src/cli/ui/whole-rows.ts";
import { JOBS } from "../../../../src/whole/jobs/type.ts";

const OF_JOBS = { type: "jobs", kind: "Job", builtIn: JOBS };

function job(status: NonNullable<Parameters<typeof JOBS.isFinished>[0]["status"]>) {
  const containers = [{ name: "main", env: [{ name: "PASSWORD", value: "c2VjcmV0" }] }];
  return {
    metadata: {
      name: "report",
      namespace: "team",
      uid: "uid-1",
      resourceVersion: "7",
      annotations: {
        "kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0",
        "legation.dev/cluster": "west",
      },
    },
    spec: { parallelism: 3, completions: 6, template: { spec: { containers } } },
    status,
  };
}

test("keeps of a Job its members and their counts, and neither its pods' environment nor other annotations", () => {
  const row = wholeRow(job({ startTime: "2026-11-27T00:01:00Z", succeeded: 2, active: 1 }), OF_JOBS);
  expect(JSON.stringify(row)).not.toContain("c2VjcmV0");
  expect(row).toMatchObject({ name: "report", members: [{ member: "west", tone: "running", done: [2, 6] }] });
});

test("of a Job that has ended waits for nothing, though its member shows it suspended", () => {
  const ofMember = { completions: 6, weight: 1, minReplicas: 0, status: { conditions: [on("Suspended")] } };
  const ended = job({ conditions: [on("Failed")] });
  const annotations = { ...ended.metadata.annotations, "legation.dev/shares": JSON.stringify({ west: ofMember }) };
  const row = wholeRow({ ...ended, metadata: { ...ended.metadata, annotations } }, OF_JOBS);
  expect(row.members).toMatchObject([{ state: "Suspended", tone: "succeeded" }]);
});

function on(type: string): { readonly type: string; readonly status: string } {
  return { type, status: "True" };
}
