import { describe, expect, test } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import { EXIT_CODES } from "../../../../src/cli/shared/failure.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { accountInTeam } from "../account-in-team.ts";
import { answering, connected, stored } from "../explain/installation/given.ts";
import { recordedSession } from "../session.ts";

describe("the command", () => {
  test.each([
    [["doctor", "--members", "West"], '--members: "West" is no member\'s name'],
    [["doctor", "--timeout", "soon"], '--timeout: "soon" is not a duration'],
  ])("refuses %j", async (args, message) => {
    const session = recordedSession();
    expect(await runProgram(args, session, "1")).toBe(EXIT_CODES.usage);
    expect(session.err.join("")).toContain(message);
  });

  test("suggests the member that was meant", async () => {
    const items = [{ metadata: { name: "west", ...stored } }];
    const client = fakeClient({ ...answering, list: async () => ({ items, resourceVersion: "1", size: 0 }) });
    const session = connected(client);
    expect(await runProgram(["doctor", "--members", "wset"], session, "1")).toBe(EXIT_CODES.usage);
    expect(session.err.join("")).toContain("did you mean west?");
  });

  /** A user with rights in namespace `team` alone. */
  const inTeam = async (...more: string[]) => {
    const { client } = await accountInTeam([], more).connect({}, "host");
    return connected({ ...client, ...answering }, { namespace: "team" });
  };

  test("shows what a user with rights in one namespace may see, one line on the rest, and the role that it needs", async () => {
    const session = await inTeam();
    expect(await runProgram(["doctor"], session, "1")).toBe(EXIT_CODES.failure);
    const lines = session.out.join("").trimEnd().split("\n");
    expect(lines).toContain("  OK    Kubernetes v1.36.3");
    expect(lines).toContain("  OK    namespace team is opted in: annotated");
    expect(lines.filter((line) => /SKIP|FAIL|WARN/.test(line))).toEqual([]);
    expect(lines.at(-1)).toBe(
      "not shown: the members, which the ClusterRole legation-viewer lets you read; " +
        "parts of Installation, Admission webhook, Controller, Agents and access, Delegated types, Namespaces, " +
        "which an administrator's account lets you read",
    );
    expect(session.err.join("")).toContain("doctor: has not seen the members, so it cannot tell that all is well");
    expect(session.err.join("")).toContain("have your account bound to the ClusterRole legation-viewer");
  });

  test("has the same for scripts, to which nothing is healthy that was not seen", async () => {
    const session = await inTeam();
    await runProgram(["doctor", "-o", "json"], session, "1");
    const hidden = expect.stringContaining("not shown: the members");
    expect(JSON.parse(session.out.join(""))).toMatchObject({ healthy: false, counts: { FAIL: 0, SKIP: 0 }, hidden });
  });

  test("names the role that it needs for members that are named", async () => {
    const session = await inTeam();
    expect(await runProgram(["doctor", "--members=west"], session, "1")).toBe(EXIT_CODES.failure);
    expect(session.out.join("")).toContain("have your account bound to the ClusterRole legation-viewer");
  });

  test("finds each part that a user may not see who may see the members", async () => {
    const session = await inTeam("clusters", "nodes", "namespaces");
    await runProgram(["doctor", "-o", "json"], session, "1");
    const { counts, hidden } = JSON.parse(session.out.join(""));
    expect(hidden).toBeUndefined();
    expect(counts.SKIP).toBeGreaterThan(3);
  });
});
