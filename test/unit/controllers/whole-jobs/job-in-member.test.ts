import { expect, test } from "vitest";
import { parsePlacement } from "../../../../src/api/annotations.ts";
import type { Job, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { JobsInMembers } from "../../../../src/controllers/whole-jobs/job-in-member.ts";
import type { Candidate } from "../../../../src/placement/candidate.ts";

const OVERRIDES = '[{"clusterSelector": "gpu", "patch": [{"op": "add", "path": "/spec/nodeSelector", "value": {}}]}]';

function job(annotations: Record<string, string>): Stored<Job> {
  const spec = { template: { spec: { containers: [{ name: "main" }] } } };
  return { metadata: { name: "sum", namespace: "team", uid: "u1", resourceVersion: "1", annotations }, spec };
}

function candidate(labels: Record<string, string>): Candidate {
  return { name: "west", labels, allocatable: {}, largestNode: {}, used: {} };
}

test("a Job is computed once for a member, and anew when its labels change", () => {
  let parsed = 0;
  const inMembers = new JobsInMembers({
    parse: ({ metadata }: Stored<Pod>) => {
      parsed += 1;
      return parsePlacement(metadata.annotations ?? {});
    },
  });
  const one = job({ "legation.dev/overrides": OVERRIDES, "legation.dev/cluster": "west" });
  const west = candidate({});
  const given = inMembers.of(one, west);
  expect(given).toEqual({ state: "present", object: one });
  expect(inMembers.of(one, west)).toBe(given);
  expect(parsed).toBe(1);
  expect(inMembers.of(one, candidate({ zone: "a" }))).toBe(given);
  expect(inMembers.of(one, candidate({ gpu: "yes" }))).toMatchObject({
    object: { spec: { template: { spec: { nodeSelector: {} } } } },
  });
  expect(parsed).toBe(3);
});
