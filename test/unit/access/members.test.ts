import { once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import { AccessMembers } from "../../../src/access/members.ts";
import type { Cluster } from "../../../src/api/cluster.ts";
import { memberKubeconfig } from "../../../src/clusters/kubeconfig.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { bearerToken } from "../../support/builders/token.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

const never = new AbortController().signal;

/** Returns a token of the account, which ends in two hours. */
function tokenOf(account: string): string {
  const seconds = Math.floor(Date.now() / 1000);
  return bearerToken({ sub: `system:serviceaccount:${account}`, iat: seconds, exp: seconds + 7200 });
}

interface Scene {
  readonly members: AccessMembers;
  /** Deletes the Cluster. */
  readonly leave: () => void;
  readonly changed: string[];
}

async function membersOf(spec: Partial<Cluster["spec"]>, token: string): Promise<AccessMembers> {
  return (await sceneOf(spec, token)).members;
}

/** Runs with one Cluster, and one kubeconfig for it. */
async function sceneOf(spec: Partial<Cluster["spec"]>, token: string): Promise<Scene> {
  const left = Promise.withResolvers<void>();
  const changed: string[] = [];
  const kubeconfig = memberKubeconfig({ cluster: "west", server: "https://192.0.2.1:6443", token });
  const metadata = { name: "west", uid: "1", resourceVersion: "1" };
  const secret = {
    metadata: { ...metadata, namespace: "legation-access", name: "member-west" },
    data: { kubeconfig: Buffer.from(kubeconfig).toString("base64") },
  };
  const host = fakeClient({
    list: async ({ plural }: { plural: string }) => ({
      items: [plural === "secrets" ? secret : { metadata, spec }],
      resourceVersion: "1",
      size: 0,
    }),
    watch: async function* ({ plural }: { plural: string }, { signal }: { signal: AbortSignal }) {
      const ended = signal.aborted ? Promise.resolve() : once(signal, "abort");
      await (plural === "clusters" ? Promise.race([left.promise, ended]) : ended);
      if (signal.aborted) return;
      yield { type: "DELETED", object: { metadata: { ...metadata, resourceVersion: "2" }, spec }, size: 0 };
      await ended;
    },
  });
  const log = createLogger({ level: "silent" as "error" });
  const members = new AccessMembers({ host, env: {}, clock: realClock, log, onChange: (name) => changed.push(name) });
  onTestFinished(() => members.stop());
  await members.start(never);
  return { members, leave: left.resolve, changed };
}

describe("a member that is open to users", () => {
  const access = { prefix: "legation:" };

  test("is reached by the token of an account that may only impersonate", async () => {
    const members = await membersOf({ access }, tokenOf("legation-system:legation-access-01234567"));
    expect(members.find("west")).toMatchObject({ member: { name: "west", prefix: "legation:" } });
  });

  test.each([
    ["Legation's own account", tokenOf("legation-system:legation-host-01234567")],
    ["an account of another namespace", tokenOf("kube-system:legation-access-01234567")],
    ["a token of no account", "opaque"],
  ])("is never reached by %s, whose rights a request could use", async (_whose, token) => {
    const members = await membersOf({ access }, token);
    expect(members.find("west")).toMatchObject({
      reason: "ServiceUnavailable",
      message: expect.stringContaining("has no token of legation-system/legation-access-"),
    });
  });

  test("is reached by its agent alone where it has one, and says why that is not possible", async () => {
    const members = await membersOf({ access, agent: {} }, tokenOf("legation-system:legation-access-01234567"));
    const impersonation = { user: "alice", groups: [], extra: {} };
    const request = { method: "GET", path: "/version", headers: [], impersonation, signal: never } as const;
    const forwarded = members.find("west").member?.forwarder.forward(request);
    await expect(forwarded).rejects.toThrow("Secret legation-access/hub-relay is missing");
  });

  test("is told of when it leaves, and is there no more", async () => {
    const { members, leave, changed } = await sceneOf({ access }, tokenOf("legation-system:legation-access-01234567"));
    expect([changed.length, members.exists("west")]).toEqual([1, true]);
    leave();
    await expect.poll(() => changed).toEqual(["west", "west"]);
    expect(members.exists("west")).toBe(false);
    expect(members.find("west")).toMatchObject({ reason: "NotFound" });
  });
});
