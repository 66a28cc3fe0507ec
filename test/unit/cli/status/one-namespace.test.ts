import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { KubeObject } from "../../../../src/api/kubernetes.ts";
import { delegatedTypes, resourceOfType } from "../../../../src/api/resources.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { EXIT_CODES } from "../../../../src/cli/shared/failure.ts";
import { deployments, pods } from "../../../../src/kube/resources.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { replicated, template } from "../../../support/builders/workload.ts";
import { accountInTeam, MEMBERS_TOO } from "../account-in-team.ts";

const SINCE = "2026-01-02T00:00:00Z";
const type = {
  metadata: { name: "widgets.example.com" },
  spec: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" },
} satisfies DelegatedType;
const members = [
  { member: "east", state: "Refused", message: "no such type", since: SINCE },
  { member: "west", state: "InStep", generation: 3, since: SINCE },
];
const widget: KubeObject = {
  metadata: {
    name: "one",
    namespace: "team",
    generation: 3,
    labels: { "legation.dev/whole": "true" },
    annotations: { "legation.dev/members": JSON.stringify(members) },
  },
};
const given = [
  [delegatedTypes, type],
  [resourceOfType(type), widget],
] as const;

const lines = (out: readonly string[]): string[] => out.join("").trimEnd().split("\n");

const web = proxyPod({ name: "web", metadata: { namespace: "team" }, spec: { nodeName: "legation-east" } });
const elsewhere = proxyPod({ name: "api", metadata: { namespace: "other" }, spec: { nodeName: "legation-west" } });
const bothPods = [
  [pods, web],
  [pods, elsewhere],
] as const;

describe("to an account with rights in one namespace alone", () => {
  const MAY_READ = ", which the ClusterRole legation-viewer lets you read";

  test.each([
    ["status", [], "the members and their state, pods of other namespaces"],
    ["status -A", ["-A"], "pods of other namespaces"],
  ])("%s shows what its own namespace has in members", async (_name, args, hidden) => {
    const session = accountInTeam([...bothPods, ...given]);
    expect(await runProgram(["status", ...args], session, "1")).toBe(0);
    expect(lines(session.out)).toEqual([
      "Namespace team: 1 delegated pod",
      "POD  READY  STATUS   CLUSTER  NODE  AGE",
      expect.stringMatching(/^web +0\/1 +Pending +east +- /),
      `not shown: objects of delegated types, ${hidden}${MAY_READ}`,
    ]);
  });

  test("a member shows the pods of its own namespace there", async () => {
    for (const [member, pod] of [
      ["east", [expect.stringContaining("POD "), expect.stringMatching(/^web /)]],
      ["west", []],
    ] as const) {
      const session = accountInTeam(bothPods);
      expect(await runProgram(["status", member], session, "1")).toBe(0);
      expect(lines(session.out)).toEqual([
        `Namespace team in ${member}: ${pod.length === 0 ? 0 : 1} delegated pod${pod.length === 0 ? "s" : ""}`,
        ...pod,
        `not shown: objects of delegated types, the member and its state, pods of other namespaces${MAY_READ}`,
      ]);
    }
  });

  test.each([
    ["status", [], "west  True"],
    ["status west", ["west"], "pods of this cluster there: none"],
  ])("%s shows members that it may read, with the pods of its own namespace", async (_name, args, shown) => {
    const session = accountInTeam(bothPods, ["clusters"]);
    expect(await runProgram(["status", ...args], session, "1")).toBe(0);
    expect(session.out.join("")).toContain(shown);
    expect(lines(session.out).at(-1)).toBe(`not shown: virtual nodes, pods of other namespaces${MAY_READ}`);
  });

  test.each([[["-o", "json"]], [["-A", "-o", "json"]], [["west", "-o", "json"]]])(
    "status %j has what is hidden",
    async (args) => {
      const session = accountInTeam(bothPods);
      expect(await runProgram(["status", ...args], session, "1")).toBe(0);
      expect(JSON.parse(session.out.join("")).hidden).toContain("pods of other namespaces");
    },
  );
});

describe("a whole object, to an account with rights in its namespace alone,", () => {
  test.each(["widget/one", "widgets.example.com/one"])("named as %s, shows what members have of it", async (named) => {
    const session = accountInTeam(given);
    expect(await runProgram(["status", named], session, "1")).toBe(0);
    expect(lines(session.out)).toEqual([
      "Widget team/one: whole, in step in 1 of 2 members, generation 3",
      "CLUSTER  STATE    GENERATION  HEALTH  SINCE  WHY",
      expect.stringMatching(/^east +Refused +- +- +\S+ +no such type$/),
      expect.stringMatching(/^west +InStep +3 +- +\S+$/),
      "not shown: the members, their share and their state, its DelegatedType, which the ClusterRole legation-viewer lets you read",
    ]);
  });

  test("without a member says nothing of members that it cannot know", async () => {
    const { annotations: _, ...metadata } = widget.metadata ?? {};
    const session = accountInTeam([given[0], [resourceOfType(type), { metadata }]]);
    expect(await runProgram(["status", "widget/one", "-o", "json"], session, "1")).toBe(0);
    const document = JSON.parse(session.out.join(""));
    expect(document).toMatchObject({ members: [], troubles: [], hidden: expect.stringContaining("the members") });
    expect(document.notPlaced).toBeUndefined();
  });

  test("has the state of its members where these may be read", async () => {
    const session = accountInTeam(given, [...MEMBERS_TOO, "delegatedtypes", "placementdefaults"]);
    expect(await runProgram(["status", "widget/one", "-o", "json"], session, "1")).toBe(0);
    expect(JSON.parse(session.out.join("")).hidden).toBeUndefined();
  });

  test("of a type that the host does not serve is refused with the type that was meant", async () => {
    const session = accountInTeam(given);
    expect(await runProgram(["status", "wigdet/one"], session, "1")).toBe(EXIT_CODES.usage);
    expect(session.err.join("")).toContain("the API server serves no such type");
    expect(session.err.join("")).toContain("did you mean widget?");
  });
});

test("a workload has its division where the members may be read, and the pods of one namespace", async () => {
  const asking = template({}, { "legation.dev/delegate": "true" });
  const web = replicated("Deployment", 1, { template: asking });
  const own = { ...web, metadata: { ...web.metadata, name: "web", namespace: "team" } };
  const full = proxyPod({ name: "full", metadata: { namespace: "team" }, spec: { nodeName: "legation-east" } });
  const session = accountInTeam(
    [
      [deployments, own],
      [pods, full],
    ],
    MEMBERS_TOO,
  );
  expect(await runProgram(["status", "deployment/web"], session, "1")).toBe(0);
  expect(lines(session.out)).toContainEqual(expect.stringContaining("one more pod would go to"));
  expect(lines(session.out).at(-1)).toBe(
    "not shown: the room that pods of other namespaces take, PlacementDefaults, which the ClusterRole legation-viewer lets you read",
  );
});
