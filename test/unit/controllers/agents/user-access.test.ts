import { X509Certificate } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { type Secret, type Stored, secretText } from "../../../../src/api/kubernetes.ts";
import { firstAuthorities, readAuthorities } from "../../../../src/controllers/agents/authority.ts";
import { UserAccess } from "../../../../src/controllers/agents/user-access.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { answerOf, writing } from "../../../support/builders/answers.ts";
import { cluster as clusterOf } from "../../../support/builders/member.ts";
import { accountToken } from "../../../support/builders/token.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const DAY_MS = 24 * 60 * 60_000;
const now = Date.UTC(2026, 0, 1);
const hubSecrets = [
  firstAuthorities("hub.example.org:8132", now),
  firstAuthorities("hub.example.org:8132", now),
] as const;
const HOST = "01234567-89ab";
// Generating keys takes seconds on a busy machine.
const PATIENCE = { timeout: 20_000 };
const OPEN: Partial<Cluster["spec"]> = { agent: {}, access: { prefix: "legation:" } };

/** Returns a token of an account of Legation's namespace, which ends in an hour. */
function tokenOf(account: string, wall = now): string {
  return accountToken(account, { issuedAt: wall, expiresAt: wall + 3_600_000 });
}

const credentialsWith = (token: string): Parameters<UserAccess["store"]>[1] => ({
  server: "https://10.0.0.1:6443",
  token,
  expires: "2026-01-01T01:00:00Z",
  certificateAuthority: "",
});

async function accessOf(spec: Partial<Cluster["spec"]>, { failing = false }: { readonly failing?: boolean } = {}) {
  const clock = new FakeClock(now);
  const stored = new Map<string, Stored<Secret>>();
  const asked: string[] = [];
  const reads: string[] = [];
  const host = fakeClient({
    find: async (_resource: object, { name }: { name: string }) => {
      reads.push(name);
      if (failing) throw new Error("the host does not answer");
      return stored.get(name);
    },
    ...writing(({ namespace, name, body }) => {
      expect(namespace).toBe("legation-access");
      stored.set(name, answerOf<Secret>(body));
    }),
  });
  const cluster = clusterOf("west", { spec });
  let hubSecret = await hubSecrets[0];
  const access = new UserAccess({
    host,
    hostId: HOST,
    registry: { cluster: () => cluster },
    hub: () => {
      const authorities = readAuthorities(hubSecret);
      return authorities === undefined ? undefined : { authorities, address: "10.0.0.1:8132" };
    },
    ask: (name) => asked.push(name),
    clock,
    log: createLogger({ level: "silent" as "error" }),
  });
  onTestFinished(() => access.stop());
  const text = (name: string, key: string): string => secretText(stored.get(name), key) ?? "";
  const replaceAuthority = async (): Promise<void> => {
    hubSecret = await hubSecrets[1];
  };
  return { access, clock, stored, asked, reads, text, replaceAuthority };
}

describe("a token for users' requests to a member with an agent", () => {
  test("is asked for when there is none, and when it has expired", async () => {
    const { access, clock, asked, text } = await accessOf(OPEN);
    access.ensure("west");
    await vi.waitUntil(() => asked.length === 1, PATIENCE);
    await access.store("west", credentialsWith(tokenOf("legation-access-01234567")));
    expect(text("member-west", "kubeconfig")).toContain(tokenOf("legation-access-01234567"));
    access.ensure("west");
    await clock.advance(3_600_000);
    access.ensure("west");
    await vi.waitUntil(() => asked.length === 2, PATIENCE);
  });

  test("is asked for again when another agent has come", async () => {
    const { access, asked } = await accessOf(OPEN);
    await access.store("west", credentialsWith(tokenOf("legation-access-01234567")));
    access.renew("west");
    access.ensure("west");
    await vi.waitUntil(() => asked.length === 1, PATIENCE);
  });

  test("is looked for again once in 30 s while the host does not answer, however often the agent has come", async () => {
    const { access, clock, reads } = await accessOf(OPEN, { failing: true });
    for (let time = 0; time < 3; time += 1) access.ensure("west");
    await vi.waitUntil(() => reads.length === 3, PATIENCE);
    await clock.advance(90_000);
    expect(reads).toHaveLength(6);
  });

  test.each(["legation-host-01234567", "legation-access-fedcba98", "default"])(
    "is not stored when it is of the account %s, with whose rights users would act",
    async (account) => {
      const { access, stored } = await accessOf(OPEN);
      await access.store("west", credentialsWith(tokenOf(account)));
      await access.store("west", credentialsWith("no-token"));
      expect(stored.size).toBe(0);
    },
  );

  test.each([
    ["takes no requests of users", { agent: {} }],
    ["has joined without an agent", { access: { prefix: "" } }],
  ])("is neither asked for nor stored where the member %s", async (reason, spec) => {
    const { access, stored, asked } = await accessOf(spec);
    access.ensure("west");
    await access.store("west", credentialsWith(tokenOf("legation-access-01234567")));
    expect([stored.size, asked, access.refusal("west")]).toEqual([0, [], `Cluster west ${reason}`]);
  });
});

test("the relay's certificate is issued with the hub's authority, renewed in time, and replaced with the authority", async () => {
  const { access, clock, text, replaceAuthority } = await accessOf(OPEN);
  const certificate = (): string => text("hub-relay", "tls.crt");
  const changes = async (before: string): Promise<string> => {
    access.ensure("west");
    await vi.waitUntil(() => certificate() !== before, PATIENCE);
    return certificate();
  };
  const first = await changes("");
  expect(new X509Certificate(first).subject).toContain("CN=legation:access");
  expect(text("hub-relay", "address")).toBe("10.0.0.1:8132");
  await clock.advance(21 * DAY_MS);
  const second = await changes(first);
  await replaceAuthority();
  const third = await changes(second);
  expect(new X509Certificate(third).checkIssued(new X509Certificate(text("hub-relay", "ca.crt")))).toBe(true);
});
