import { expect, test } from "vitest";
import { podsWanted, runsOf } from "../../../../src/cli/explain/read-workload.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { cronJob, job, replicated } from "../../../support/builders/workload.ts";

const PARALLEL = { parallelism: 2, completions: 6 };

function written(object: object, status: object = {}): WrittenObject {
  return { apiVersion: "", kind: "", metadata: {}, ...object, status };
}

const ended = (type: string, status = "True"): object => ({ conditions: [{ type, status }] });

test.each<[string, object, object, number]>([
  ["as many as run at once", PARALLEL, {}, 2],
  ["those that are left", PARALLEL, { succeeded: 5 }, 1],
  ["none while it is suspended", { ...PARALLEL, suspend: true }, {}, 0],
  ["as many again when that has ended", { ...PARALLEL, suspend: false }, ended("Suspended", "False"), 2],
  ["none when it has failed", PARALLEL, ended("Failed"), 0],
  ["none when it is about to fail", PARALLEL, ended("FailureTarget"), 0],
  ["none when it is complete", PARALLEL, ended("Complete"), 0],
])("wants of a Job's pods %s", (_, spec, status, wanted) => {
  expect(podsWanted(written(job(spec, {}), status), "Job", [])).toBe(wanted);
});

test("wants the pods of a CronJob's active Jobs", () => {
  const cron = cronJob(PARALLEL, {});
  expect(runsOf(written(cron))).toEqual([]);
  expect(runsOf(written(cron, { active: [{ name: "web-1" }, { name: "web-2" }] }))).toEqual(["web-1", "web-2"]);
  expect(podsWanted(written(cron), "CronJob", [])).toBe(0);
  const runs = [written(job(PARALLEL, {})), written(job(PARALLEL, {}), { succeeded: 5 })];
  expect(podsWanted(written(cron), "CronJob", runs)).toBe(3);
});

test("wants the replicas of any other workload", () => {
  expect(podsWanted(written(replicated("Deployment", 4)), "Deployment", [])).toBe(4);
});
