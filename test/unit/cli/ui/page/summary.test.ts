import { describe, expect, test } from "vitest";
import type { MemberRow, PodRow, WarningRow, WholeRow } from "../../../../../src/cli/ui/model.ts";
import {
  byReason,
  memberState,
  ofShown,
  troubled,
  waitingCopies,
  whyOf,
} from "../../../../../src/cli/ui/page/summary.ts";
import { podRow } from "../../../../../src/cli/ui/rows.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { memberRow as member } from "./member-row.ts";

const row = (fields: Partial<PodRow> = {}): PodRow => ({
  ...podRow(proxyPod()),
  namespace: "shop",
  why: undefined,
  state: "waiting",
  ...fields,
});
const MEMBERS = [member("west"), member("east", { ready: "False", reason: "no answer: ECONNREFUSED" })];

test.each<[string, Partial<MemberRow>]>([
  ["not ready", { ready: "Unknown", isCordoned: true }],
  ["cordoned", { isCordoned: true }],
  ["ready", {}],
])("a member is %s", (state, fields) => {
  expect(memberState(member("west", fields))).toBe(state);
});

describe("why a pod does not run", () => {
  test.each<[string, Partial<PodRow>, string | undefined]>([
    ["nothing where nothing is wrong", { state: "running", member: "west" }, undefined],
    [
      "the shortest reason of its members",
      { why: "east: cpu: 4 requested, 2 left; west: cordoned" },
      "west: cordoned, and 1 more",
    ],
    ["its member that is lost", { state: "running", member: "east" }, "east is not ready"],
    ["its own reason once it has failed", { state: "failed", member: "east", why: "exit code 1" }, "exit code 1"],
  ])("is %s", (_, fields, why) => {
    expect(whyOf(row(fields), MEMBERS)).toBe(why);
  });
});

test("groups pods by their reason, the largest group first, with the oldest pod's time", () => {
  const pods = [
    row({ name: "a", why: "cordoned", created: "2026-01-01T00:00:02Z" }),
    row({ name: "b", why: "full", created: "2026-01-01T00:00:09Z" }),
    row({ name: "c", why: "full", created: "2026-01-01T00:00:05Z" }),
    row({ name: "d", state: "running" }),
  ];
  expect(byReason(pods, ["waiting"], MEMBERS).map(({ why, pods: own, since }) => [why, own.length, since])).toEqual([
    ["full", 2, "2026-01-01T00:00:05Z"],
    ["cordoned", 1, "2026-01-01T00:00:02Z"],
  ]);
});

test("lists members with trouble, those not ready first", () => {
  const all = [member("north", { isCordoned: true, reason: "cordoned" }), ...MEMBERS];
  expect(troubled(all).map(({ name }) => name)).toEqual(["east", "north"]);
});

const settings: WholeRow = {
  uid: "1",
  type: "configmaps",
  kind: "ConfigMap",
  namespace: "shop",
  name: "settings",
  isEnding: false,
  members: [
    { member: "west", tone: "running", state: "InStep" },
    { member: "east", tone: "waiting", state: "Waiting" },
  ],
};

test("lists the copies that wait, with the state where no message says why", () => {
  expect(waitingCopies([settings])).toEqual([{ object: settings, member: "east", why: "Waiting" }]);
});

describe("warnings", () => {
  const warning = (kind: string, name: string, namespace = "shop"): WarningRow => ({
    at: "",
    kind,
    namespace,
    name,
    reason: "Failed",
    message: "",
    count: 1,
  });
  const pods = [row({ name: "web-5d-x", workload: "Deployment/web" })];

  test.each([
    ["a pod", warning("Pod", "web-5d-x")],
    ["its workload", warning("Deployment", "web")],
    ["its workload's ReplicaSet", warning("ReplicaSet", "web-5d")],
    ["a whole object", warning("ConfigMap", "settings")],
    ["a member", warning("Cluster", "west", "")],
    ["a virtual node", warning("Node", "legation-west", "")],
  ])("of %s are shown", (_, one) => {
    expect(ofShown([one], pods, [settings])).toEqual([one]);
  });

  test.each([
    ["another pod", warning("Pod", "own")],
    ["a pod of this name elsewhere", warning("Pod", "web-5d-x", "other")],
    ["the host's own node", warning("Node", "node-1", "")],
  ])("of %s are not", (_, one) => {
    expect(ofShown([one], pods, [settings])).toEqual([]);
  });
});
