import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import { EXIT_CODES } from "../../../../src/cli/shared/failure.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { accountInTeam, MEMBERS_TOO } from "../account-in-team.ts";
import { deployment } from "./plan-with.ts";

/** A pod that takes all cores of a member. */
function filling(cluster: string, namespace: string) {
  const containers = [{ name: "main", image: "it", resources: { requests: { cpu: "16" } } }];
  const annotations = { "legation.dev/cluster": cluster };
  const metadata = { namespace, annotations };
  return [
    pods,
    proxyPod({
      name: `fills-${cluster}`,
      uid: cluster,
      metadata,
      spec: { nodeName: `legation-${cluster}`, containers },
    }),
  ] as const;
}

async function planned(more: readonly string[], ...args: string[]) {
  const stdin = Readable.from([JSON.stringify(deployment(2))]);
  const session = accountInTeam([filling("west", "team"), filling("east", "other")], more, { stdin });
  const code = await runProgram(["plan", "-f", "-", ...args], session, "1");
  return { code, out: session.out.join(""), err: session.err.join("") };
}

describe("a plan, to an account with rights in one namespace,", () => {
  test("is refused in one sentence without the right to read members", async () => {
    const { code, out, err } = await planned([]);
    expect([code, out]).toEqual([EXIT_CODES.failure, ""]);
    expect(err).toMatch(/host: you may not list (clusters|nodes), without which no member can be chosen: /);
    expect(err).toContain("have your account bound to the ClusterRole legation-viewer");
  });

  test("counts the pods of that namespace alone, and says so, where it may read members", async () => {
    const { code, out } = await planned(MEMBERS_TOO);
    expect(code).toBe(0);
    expect(out).toContain("Deployment team/web: 2 pods fit");
    expect(out).toMatch(/^ {2}east +2$/m);
    expect(out).toMatch(/^ {2}west +0 +cpu: 1 requested, 0 left/m);
    expect(out.trimEnd().split("\n").at(-1)).toBe(
      "not shown: the room that pods of other namespaces take, PlacementDefaults, DelegatedTypes, which the ClusterRole legation-viewer lets you read",
    );
  });

  test("has the same for scripts, and nothing hidden from those who may read all", async () => {
    const { out } = await planned(MEMBERS_TOO, "-o", "json");
    expect(JSON.parse(out)).toMatchObject({ fits: true, hidden: expect.stringContaining("other namespaces") });
    const all = await planned(
      [...MEMBERS_TOO, "namespaces", "pods", "placementdefaults", "delegatedtypes"],
      "-o",
      "json",
    );
    expect(JSON.parse(all.out)).toMatchObject({ fits: false });
    expect(all.out).not.toContain("hidden");
  });

  test("is refused without the right to read the namespace of its pods", async () => {
    const { code, err } = await planned(MEMBERS_TOO, "-n", "other");
    expect(code).toBe(EXIT_CODES.failure);
    expect(err).toMatch(/you may not get (namespaces other|deployments other\/web)/);
  });
});
