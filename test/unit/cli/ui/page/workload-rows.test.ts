import { expect, test } from "vitest";
import type { PodRow } from "../../../../../src/cli/ui/model.ts";
import {
  jobWorkloads,
  PodWorkloads,
  podWorkloads,
  wholeWorkload,
} from "../../../../../src/cli/ui/page/workload-rows.ts";
import { podRow } from "../../../../../src/cli/ui/rows.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";

const pod = (uid: string, fields: Partial<PodRow>): PodRow => {
  return { ...podRow(proxyPod({ uid })), namespace: "shop", workload: "Deployment/web", ...fields };
};

test("a workload has its pods by member, and the shortest reason of those that do not run", () => {
  const [web, ...others] = podWorkloads([
    pod("a", { member: "west", state: "running", why: undefined }),
    pod("b", { member: "west", state: "ending", why: undefined }),
    pod("c", { member: undefined, state: "waiting", why: "east: full; west: cpu: 8 requested, 4 left" }),
    pod("d", { member: "east", state: "succeeded" }),
  ]);
  expect(others).toEqual([]);
  expect(web).toMatchObject({ key: "shop/Deployment/web", total: 3, waiting: 1, leaving: 1 });
  expect(web?.why).toBe("east: full, and 1 more");
  expect([...(web?.places ?? [])].map(([member, { text, tone }]) => [member, text, tone])).toEqual([
    ["west", "1/2", "starting"],
  ]);
});

test("a workload whose pods have all succeeded is finished, with its pods", () => {
  const [row] = podWorkloads([pod("a", { member: "west", state: "succeeded" })]);
  expect(row).toMatchObject({ total: 1, why: "finished" });
});

test("workloads whose pods change are those of the pods there are, and others keep their rows", () => {
  const workloads = new PodWorkloads();
  const [a, b] = [pod("a", { state: "waiting" }), pod("b", { workload: "Deployment/api" })];
  for (const one of [a, b]) workloads.set(undefined, one);
  const [api] = workloads.list();
  const moved = pod("a", { state: "running", member: "west", workload: "Job/web" });
  workloads.set(a, moved);
  expect(workloads.list()).toEqual(podWorkloads([b, moved]));
  expect(workloads.list()[0]).toBe(api);
  workloads.set(moved, undefined);
  expect(workloads.list()).toEqual([api]);
});

test("a finished Job is shown if its author asks for delegation, and its CronJob with it", () => {
  const job = { namespace: "shop", state: "Complete: 1 succeeded" } as const;
  const rows = [
    { ...job, kind: "Job", name: "report-1", asks: true, cronJob: "report" },
    { ...job, kind: "CronJob", name: "report", asks: false },
    { ...job, kind: "Job", name: "own", asks: false },
  ] as const;
  expect(jobWorkloads(rows, []).map(({ key }) => key)).toEqual(["shop/Job/report-1", "shop/CronJob/report"]);
});

test("a whole object has a state for each member, and one of a Job its completions", () => {
  const whole = { uid: "1", type: "jobs", kind: "Job", namespace: "shop", name: "sum", isEnding: false };
  const row = wholeWorkload({
    ...whole,
    members: [{ member: "west", tone: "running", state: "Running", done: [1, 4] }],
  });
  expect(row).toMatchObject({ isWhole: true, total: 1, waiting: 0, link: "#/objects/jobs/shop/sum" });
  expect(row.places.get("west")).toMatchObject({ text: "1/4", part: 0.25 });
  expect(wholeWorkload({ ...whole, members: [] }).waiting).toBe(1);
  expect(wholeWorkload({ ...whole, members: [], isEnding: true }).waiting).toBe(0);
});
