import { describe, expect, onTestFinished, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { LiveView } from "../../../../src/cli/ui/live-view.ts";
import type { HiddenFromUser, MemberRow } from "../../../../src/cli/ui/model.ts";
import { requireRights } from "../../../../src/cli/ui/required-rights.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { accountInTeam, MEMBERS_TOO } from "../account-in-team.ts";

function runningIn(namespace: string): Stored<Pod> {
  return proxyPod({ name: "web-0", uid: namespace, metadata: { namespace }, spec: { nodeName: "legation-west" } });
}

/** The live view of a user, and what a reader of it was told last. */
async function viewed(namespace: string | undefined, more: readonly string[] = [], isConfined = false) {
  const session = accountInTeam(
    [
      [pods, runningIn("team")],
      [pods, runningIn("other")],
    ],
    more,
  );
  const { client: host } = await session.connect({}, "host");
  const clock = new FakeClock();
  const view = new LiveView({ host, namespace, isConfined, clock });
  onTestFinished(() => view.stop());
  const told: { members?: readonly MemberRow[]; hidden?: HiddenFromUser; problem?: string | undefined } = {};
  view.start();
  view.subscribe({
    onPod: () => {},
    onNews: (message) => {
      if (message.type === "members") told.members = message.members;
      if (message.type === "hidden") told.hidden = message;
      if (message.type === "problem") told.problem = message.message;
    },
  });
  await clock.advance(3_000);
  return { view, told, clock };
}

describe("the live view of a user with rights in one namespace alone", () => {
  test("is complete with that namespace's pods, and says in one line what is hidden", async () => {
    const { view, told } = await viewed("team");
    expect(view.isComplete).toBe(true);
    expect(view.rows()).toMatchObject([{ namespace: "team", name: "web-0", member: "west" }]);
    expect(told.members).toBeUndefined();
    expect(told.problem).toBeUndefined();
    expect(told.hidden).toEqual({
      type: "hidden",
      members: true,
      line:
        "not shown: the members, their share and their state, objects of delegated types, " +
        "which the ClusterRole legation-viewer lets you read",
    });
  });

  test("names the pods of other namespaces as hidden where the user did not choose the namespace", async () => {
    const { told } = await viewed("team", [], true);
    expect(told.hidden?.line).toMatch(/^not shown: pods outside namespace team, the members, .* which the ClusterRole/);
  });

  test("has the members where they may be read", async () => {
    const { view, told } = await viewed("team", MEMBERS_TOO);
    expect(view.isComplete).toBe(true);
    expect(told.members).toMatchObject([{ name: "east" }, { name: "west", pods: { unfinished: 1 } }]);
    expect(told.hidden).toMatchObject({ members: false, line: expect.stringContaining("not shown: objects of") });
  });

  test("cannot be read without a namespace", async () => {
    const { view, told } = await viewed(undefined);
    expect(view.isComplete).toBe(false);
    expect(told.problem).toContain("pods is forbidden");
  });

  test("leaves no timer when it is stopped", async () => {
    const { view, clock } = await viewed("team");
    await view.stop();
    expect(clock.pending).toBe(0);
  });
});

describe("the page", () => {
  const signal = new AbortController().signal;
  const required = async (namespace: string | undefined, more?: readonly string[]): Promise<void> => {
    const { client } = await accountInTeam([], more).connect({}, "host");
    await requireRights(client, namespace, signal);
  };

  test("of one namespace needs rights in that namespace alone", async () => {
    await expect(required("team")).resolves.toBeUndefined();
    await expect(required("other")).rejects.toMatchObject({ remedy: expect.stringContaining("the ClusterRole view") });
  });

  test("of all namespaces needs the viewer role, or is asked for by one namespace", async () => {
    await expect(required(undefined, MEMBERS_TOO)).resolves.toBeUndefined();
    await expect(required(undefined)).rejects.toMatchObject({
      message: expect.stringContaining("with `-n NAMESPACE`, rights in one namespace are enough"),
      remedy: expect.stringContaining("legation-viewer"),
    });
  });
});
