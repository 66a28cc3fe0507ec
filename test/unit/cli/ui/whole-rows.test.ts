import { expect, test } from "vitest";
import { builtInRow } from "../../../../src/cli/ui/whole-rows.ts";
import { JOBS } from "../../../../src/whole/jobs/type.ts";

test("keeps of a Job its members and their counts, and neither its pods' environment nor other annotations", () => {
  const containers = [{ name: "main", env: [{ name: "PASSWORD", value: "c2VjcmV0" }] }];
  const job = {
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
    status: { startTime: "2026-11-27T00:01:00Z", succeeded: 2, active: 1 },
  };
  const row = builtInRow(JOBS, job);
  expect(JSON.stringify(row)).not.toContain("c2VjcmV0");
  expect(row).toMatchObject({ name: "report", members: [{ member: "west", wanted: 6, has: 2 }] });
});
