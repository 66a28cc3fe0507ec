import { describe, expect, test } from "vitest";
import type { Job } from "../../../../src/api/kubernetes.ts";
import { type JobShare, membersOfJob, sharesOf, sharesRecord } from "../../../../src/whole/jobs/shares.ts";

function job(annotations: Record<string, string>, status?: Job["status"]): Job {
  return { metadata: { name: "sum", annotations }, ...(status === undefined ? {} : { status }) };
}

describe("the record of the shares", () => {
  test("is read as it was written", () => {
    const status = { startTime: "2026-01-01T00:00:00Z", active: 1, conditions: [{ type: "Failed", status: "True" }] };
    const shares: JobShare[] = [
      { member: "west", part: { completions: 6, weight: 2, minReplicas: 0, maxReplicas: 3 }, status },
      { member: "east", part: { completions: 3, weight: 1, minReplicas: 1 } },
    ];
    const recorded = job(sharesRecord(shares));
    expect(sharesOf(recorded)).toEqual(shares);
    expect(membersOfJob(recorded)).toEqual(["west", "east"]);
  });

  test("of a Job in one member is its name alone", () => {
    expect(sharesRecord([{ member: "west" }])).toEqual({ "legation.dev/cluster": "west" });
    expect(sharesOf(job({ "legation.dev/cluster": "west" }, { active: 1 }))).toEqual([
      { member: "west", status: { active: 1 } },
    ]);
    expect(sharesOf(job({}))).toEqual([]);
  });

  test("that is gone is not read: no member gets all of a divided Job", () => {
    expect(sharesOf(job({ "legation.dev/cluster": "west,east" }))).toBeUndefined();
  });

  test.each(["", "[]", '{"west":{}}', '{"west":{"completions":1,"weight":1,"minReplicas":0}}'])(
    "that is damaged is not read: %s",
    (record) => {
      const annotations = { "legation.dev/cluster": "west,east", "legation.dev/shares": record };
      expect(sharesOf(job(annotations))).toBeUndefined();
    },
  );
});
