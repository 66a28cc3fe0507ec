import { expect, test } from "vitest";
import { storedBuiltIn, storedObject } from "../../../../src/cli/ui/stored-whole.ts";
import { builtInRow } from "../../../../src/cli/ui/whole-rows.ts";
import { JOBS } from "../../../../src/whole/jobs/type.ts";

const metadata = {
  name: "report",
  namespace: "team",
  uid: "uid-1",
  resourceVersion: "7",
  creationTimestamp: "2026-11-27T00:00:00Z",
  labels: { "legation.dev/whole": "true" },
  annotations: {
    "kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0",
    "legation.dev/members": "[]",
    "legation.dev/cluster": "west",
  },
  managedFields: [{ manager: "c2VjcmV0" }],
};

test("keeps no content of a whole object", () => {
  const stored = storedObject({ metadata, data: { password: "c2VjcmV0" } });
  expect(JSON.stringify(stored)).not.toContain("c2VjcmV0");
  expect(stored.metadata).toMatchObject({ name: "report", annotations: { "legation.dev/members": "[]" } });
});

test("keeps of a Job what its row reads, and not its pods' environment", () => {
  const containers = [{ name: "main", env: [{ name: "PASSWORD", value: "c2VjcmV0" }] }];
  const job = {
    metadata,
    spec: { parallelism: 3, completions: 6, template: { spec: { containers } } },
    status: { startTime: "2026-11-27T00:01:00Z", succeeded: 2, active: 1 },
  };
  const stored = storedBuiltIn(JOBS, job);
  expect(JSON.stringify(stored)).not.toContain("c2VjcmV0");
  expect(builtInRow(JOBS, stored)).toEqual(builtInRow(JOBS, job));
  expect(builtInRow(JOBS, stored).members).toMatchObject([{ member: "west", wanted: 6, has: 2 }]);
});
