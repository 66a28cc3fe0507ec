import { describe, expect, test } from "vitest";
import { jobRows } from "../../../../src/cli/ui/job-rows.ts";
import type { JobRow, PodRow } from "../../../../src/cli/ui/model.ts";
import { jobWorkloads, podWorkloads } from "../../../../src/cli/ui/page/workload-rows.ts";
import { podRow } from "../../../../src/cli/ui/rows.ts";
import type { CronJob, Job, Stored } from "../../../../src/kube/objects.ts";
import { proxyPod } from "../../../support/builders/pod.ts";

const metadata = { namespace: "shop", uid: "1", resourceVersion: "1" };
const delegated = { metadata: { annotations: { "legation.dev/delegate": "true" } } };
const job = (name: string, type: string | undefined, fields: object = {}): Stored<Job> => ({
  metadata: { ...metadata, name, ...fields },
  spec: { completions: 2, template: {} },
  status: { succeeded: 2, ...(type === undefined ? {} : { conditions: [{ type, status: "True" }] }) },
});
const nightly: Stored<CronJob> = {
  metadata: { ...metadata, name: "nightly" },
  spec: { schedule: "0 3 * * *", jobTemplate: { spec: { template: delegated } } },
  status: { lastScheduleTime: "2026-01-01T03:00:00Z" },
};

test("rows are of Jobs that have ended, with their CronJob, and of CronJobs with their last run", () => {
  const owner = { apiVersion: "batch/v1", kind: "CronJob", name: "nightly", uid: "2", controller: true };
  const rows = jobRows(
    [job("a", "Complete", { ownerReferences: [owner] }), job("b", "Failed"), job("c", undefined)],
    [nightly],
  );
  expect(rows).toMatchObject([
    { kind: "Job", name: "a", cronJob: "nightly", state: "Complete: 2 of 2 succeeded", asks: false },
    { kind: "Job", name: "b", state: "Failed: 2 of 2 succeeded" },
    { kind: "CronJob", name: "nightly", state: "runs at 0 3 * * *, last 2026-01-01T03:00:00Z", asks: true },
  ]);
});

describe("workloads", () => {
  const row = (kind: "Job" | "CronJob", name: string, fields: Partial<JobRow> = {}): JobRow => ({
    kind,
    namespace: "shop",
    name,
    asks: false,
    state: "s",
    ...fields,
  });
  const pod = (name: string, state: PodRow["state"], workload: string): PodRow => ({
    ...podRow(proxyPod()),
    uid: name,
    name,
    namespace: "shop",
    state,
    workload,
    member: "west",
    why: undefined,
  });

  test("show a Job whose pods have all succeeded as finished", () => {
    const [found] = podWorkloads([pod("a", "succeeded", "Job/import"), pod("b", "succeeded", "Job/import")]);
    expect(found).toMatchObject({ kind: "Job", name: "import", total: 2, why: "finished" });
    expect(found?.places.get("west")).toMatchObject({ text: "2", tone: "succeeded" });
  });

  test("count no succeeded pods where others are left", () => {
    const [found] = podWorkloads([pod("a", "succeeded", "Job/import"), pod("b", "running", "Job/import")]);
    expect(found).toMatchObject({ total: 1, why: undefined });
  });

  test("have delegated Jobs without pods, and the CronJobs of delegated Jobs, once each", () => {
    const known = podWorkloads([pod("a", "succeeded", "Job/seen")]);
    const rows = [
      row("Job", "seen", { cronJob: "cron" }),
      row("Job", "asks", { asks: true }),
      row("Job", "own"),
      row("CronJob", "cron"),
      row("CronJob", "own-cron"),
    ];
    expect(jobWorkloads(rows, known).map(({ kind, name }) => `${kind}/${name}`)).toEqual(["Job/asks", "CronJob/cron"]);
  });
});
