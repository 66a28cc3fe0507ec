import { describe, expect, test } from "vitest";
import { parsePlacement } from "../../../../src/api/annotations.ts";
import type { Job, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { Candidate } from "../../../../src/placement/candidate.ts";
import { forCopy, JobsInMembers } from "../../../../src/whole/jobs/in-member.ts";

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

describe("a Job whose node selector names a member", () => {
  const inMembers = new JobsInMembers({
    parse: ({ metadata }: Stored<Pod>) => parsePlacement(metadata.annotations ?? {}),
  });
  const selecting = (cluster: string): Stored<Job> => ({
    ...job({ "legation.dev/cluster": "west" }),
    spec: {
      template: {
        spec: { containers: [{ name: "main" }], nodeSelector: { "legation.dev/cluster": cluster, disk: "fast" } },
      },
    },
  });

  test("goes there without that label, which no node has", () => {
    expect(inMembers.of(selecting("west"), candidate({}))).toMatchObject({
      object: { spec: { template: { spec: { nodeSelector: { disk: "fast" } } } } },
    });
  });

  test("changes nothing in another", () => {
    const given = inMembers.of(selecting("east"), candidate({}));
    expect(given).toMatchObject({ state: "unknown", message: expect.stringContaining("legation.dev/cluster") });
  });
});

describe("a Job of a queue of the host", () => {
  const inMembers = new JobsInMembers({
    parse: ({ metadata }: Stored<Pod>) => parsePlacement(metadata.annotations ?? {}),
  });
  const queued = (suspend: boolean, podLabels: Record<string, string>): Stored<Job> => {
    const plain = job({ "legation.dev/cluster": "west" });
    const template = { metadata: { labels: { app: "sum", ...podLabels } }, spec: { containers: [{ name: "main" }] } };
    const labels = { team: "a", "kueue.x-k8s.io/queue-name": "team" };
    return { ...plain, metadata: { ...plain.metadata, labels }, spec: { suspend, template } };
  };
  const PODSET = { "kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/cluster-queue-name": "team" };

  test.each([
    { name: "that is admitted", written: queued(false, PODSET) },
    { name: "that is preempted", written: queued(true, {}) },
  ])("$name has no word of Kueue in its member", ({ written }) => {
    expect(inMembers.of(written, candidate({}))).toMatchObject({
      object: { metadata: { labels: { team: "a" } }, spec: { template: { metadata: { labels: { app: "sum" } } } } },
    });
    expect(JSON.stringify(inMembers.of(written, candidate({})))).not.toContain("kueue");
  });

  test("that only the member's Kueue knows keeps its queue", () => {
    expect(inMembers.of(queued(false, {}), candidate({}))).toMatchObject({
      object: { metadata: { labels: { "kueue.x-k8s.io/queue-name": "team" } } },
    });
  });
});

describe("a Job that is sent to a member with a copy", () => {
  const SUSPENDED = { type: "Suspended", status: "True" };
  const withSelector = (zone: string, suspend: boolean, status: Job["status"] = {}): Stored<Job> => ({
    ...job({ "legation.dev/cluster": "west" }),
    spec: { suspend, template: { spec: { containers: [{ name: "main" }], nodeSelector: { zone } } } },
    status,
  });
  const zoneOf = ({ spec }: Job): unknown => spec?.template.spec?.nodeSelector?.zone;

  test.each<[string, Stored<Job>, Stored<Job>, string]>([
    ["changes the pod template of a suspended copy", withSelector("b", true), withSelector("a", true), "b"],
    ["changes it while it resumes the copy", withSelector("b", false), withSelector("a", true), "b"],
    [
      "leaves it as it is while the copy runs",
      withSelector("b", true),
      withSelector("a", false, { startTime: "2026-01-01T00:00:00Z", active: 1 }),
      "a",
    ],
    [
      "leaves it as it is while the copy's pods end",
      withSelector("b", true),
      withSelector("a", true, { active: 1, conditions: [SUSPENDED] }),
      "a",
    ],
  ])("%s", (_, wanted, copy, zone) => {
    const sent = forCopy(wanted, copy);
    expect([zoneOf(sent), sent.spec?.suspend]).toEqual([zone, wanted.spec?.suspend]);
  });

  test("is the same object while nothing keeps a change back", () => {
    const wanted = withSelector("a", false);
    expect(forCopy(wanted, undefined)).toBe(wanted);
    expect(forCopy(wanted, withSelector("a", false))).toBe(wanted);
  });
});
