import { expect, test } from "vitest";
import type { DryRunAnswer } from "../../../../src/cli/plan/dry-run.ts";
import { planText } from "../../../../src/cli/plan/text.ts";
import { recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";
import { deployment, plan, planWith, planWithNamespaces } from "./plan-with.ts";

const { terminal } = recordedSession();

test("formats a table of members, pods that wait with the reason, and guesses", async () => {
  const members = {
    east: { spec: { taints: [{ key: "spot", effect: "NoSchedule" as const }] } },
    west: { status: { allocatable: { cpu: "2", memory: "64Gi", pods: "220" }, nodeKinds: [] } },
  };
  const silent = { ...deployment(1), metadata: { name: "silent" } };
  const wrong = deployment(1, { "legation.dev/clusters": "" });
  expect(planText(await plan(host(members), deployment(4), silent, wrong), terminal).split("\n")).toEqual([
    "Deployment team/web: 2 of 4 pods would wait",
    "  CLUSTER  PODS            WHY NOT MORE",
    "  east     0               the pod does not tolerate its taint spot:NoSchedule",
    "  west     2 (+2 waiting)",
    "  2 pods wait (web-planned-*2, …): NotPlaced",
    "    east: the pod does not tolerate its taint spot:NoSchedule",
    "    west: cpu: 1 requested, 0 left",
    "",
    "Deployment team/silent: not delegated: its pods do not ask for delegation: they run on the host",
    "",
    expect.stringMatching(
      /^Deployment team\/web: would be refused: metadata: annotation legation\.dev\/clusters: names no cluster/,
    ),
    "",
    "guesses, since the host cannot tell:",
    "  west: what its nodes are like, the host is not told: that one of them takes the pod is taken for granted",
  ]);
});

test("lists checks that were not made below the plan", async () => {
  const answer = (): DryRunAnswer<never> => ({ is: "notChecked", why: "you may not create pods" });
  expect(
    planText(await planWith(host({ west: {} }), [deployment(1)], { answer }), terminal)
      .split("\n")
      .slice(-2),
  ).toEqual([
    "not checked:",
    "  defaults, LimitRanges, quotas, Pod Security, policies and webhooks for Deployment team/web: you may not create pods",
  ]);
});

test("formats a workload of one pod in one line", async () => {
  const text = planText(await plan(host({ west: {} }), deployment(1)), terminal);
  expect(text.split("\n")[0]).toBe("Deployment team/web: fits, in west");
});

test("names a refused namespace", async () => {
  const labels = { "legation.dev/delegation": "all" };
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "kube-system", labels } };
  const planned = await planWithNamespaces(host({}), [namespace], async () => ({
    is: "refused",
    message: "label legation.dev/delegation: no",
    ofQuota: false,
  }));
  expect(planText(planned, terminal)).toMatch(/^Namespace kube-system: would be refused: label /);
});

test("names a workload without a new pod", async () => {
  expect(planText(await plan(host({ west: {} }), deployment(0)), terminal)).toBe("Deployment team/web: no pod comes");
});
