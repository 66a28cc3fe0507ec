import { describe, expect, test } from "vitest";
import { tokenClaims, withToken } from "../../../../src/controllers/member-token/claims.ts";
import { MemberTokenController } from "../../../../src/controllers/member-token/controller.ts";
import { decide } from "../../../../src/controllers/member-token/decide.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../../cli/client.ts";

const day = 24 * 60 * 60_000;
const now = Date.parse("2026-02-03T00:00:00Z");

function token(claims: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "RS256" })}.${part(claims)}.c2lnbmF0dXJl`;
}

function kubeconfig(userToken: string): string {
  return `# the operator's own words\nusers:\n- name: legation\n  user: {token: ${userToken}}\n`;
}

const account = {
  sub: "system:serviceaccount:legation-system:legation-host",
  iat: now / 1000,
  exp: (now + 30 * day) / 1000,
};

describe("the token of a member's kubeconfig", () => {
  test("says whose it is and when it ends", () => {
    expect(tokenClaims(kubeconfig(token(account)))).toEqual({
      namespace: "legation-system",
      name: "legation-host",
      issuedAt: now,
      expiresAt: now + 30 * day,
    });
  });

  test.each([
    ["no YAML", "{"],
    ["a client certificate", "users: [{name: a, user: {client-certificate-data: eA==}}]"],
    ["an opaque token", kubeconfig("abc")],
    ["a token that is no JSON", kubeconfig("a.b.c")],
    ["a person's token", kubeconfig(token({ ...account, sub: "alice" }))],
    ["a token without an end", kubeconfig(token({ sub: account.sub }))],
  ])("is not Legation's to renew when there is %s", (_, text) => {
    expect(tokenClaims(text)).toBeUndefined();
  });

  test("is replaced, and nothing else", () => {
    expect(withToken(kubeconfig(token(account)), "new.to.ken")).toBe(kubeconfig("new.to.ken"));
  });
});

describe("a member's token", () => {
  const claims = { namespace: "legation-system", name: "legation-host", issuedAt: now, expiresAt: now + 30 * day };

  test("is left alone for the first half of its life, and looked at again then", () => {
    expect(decide({ claims, reachable: true }, now + day)).toEqual({
      actions: [],
      outcome: "Valid",
      requeueAt: now + 15 * day,
    });
  });

  test("is renewed in the second half", () => {
    expect(decide({ claims, reachable: true }, now + 15 * day).actions).toEqual([
      { type: "renew", namespace: "legation-system", name: "legation-host" },
    ]);
  });

  test("waits for its member to come back", () => {
    expect(decide({ claims, reachable: false }, now + 16 * day)).toEqual({ actions: [], outcome: "Unreachable" });
  });

  test("is not asked for again and again by a controller whose clock is ahead", () => {
    const hour = { ...claims, expiresAt: now + 3_600_000 };
    const observed = { claims: hour, reachable: true, renewedAt: now };
    expect(decide(observed, now, now + 3_600_000)).toMatchObject({ actions: [], requeueAt: now + 60_000 });
  });

  test("never asks for a timer that Node cannot keep", () => {
    const year = { ...claims, expiresAt: now + 365 * day };
    expect(decide({ claims: year, reachable: true }, now).requeueAt).toBe(now + 20 * day);
  });
});

describe("a renewal", () => {
  /** The patch of a Secret with these annotations, whose token is in the second half of its life. */
  async function renewed(annotations: Record<string, string>): Promise<object | undefined> {
    const text = kubeconfig(token(account));
    const secret = { metadata: { name: "west", resourceVersion: "7", annotations }, data: { kubeconfig: btoa(text) } };
    const status = { token: "new.to.ken", expirationTimestamp: "2026-03-20T00:00:00Z" };
    const client = fakeClient({ createSubresource: async () => ({ status }) });
    let patch: object | undefined;
    const host = fakeClient({
      patch: (async (_resource: unknown, _ref: unknown, { body }: { body: object }) => {
        patch = body;
      }) as never,
    });
    const controller = new MemberTokenController({
      host,
      registry: {
        cluster: () => ({ metadata: { name: "west" }, spec: { credentialsSecret: { name: "west" } } }),
        secret: () => secret,
        member: () => ({ client, probed: { reachable: true } }),
      } as never,
      clock: new FakeClock(now + 16 * day),
      log: createLogger({ level: "silent" }),
    });
    controller.enqueue("west");
    await expect.poll(() => patch).toBeDefined();
    await controller.stop();
    return patch;
  }
  const data = { kubeconfig: btoa(kubeconfig("new.to.ken")) };

  test("says in the Secret that `legation join` made when the new token ends", async () => {
    expect(await renewed({ "legation.dev/token-expires": "2026-03-05T00:00:00Z" })).toEqual({
      metadata: { resourceVersion: "7", annotations: { "legation.dev/token-expires": "2026-03-20T00:00:00Z" } },
      data,
    });
  });

  test("leaves a Secret that somebody keeps himself without that annotation, which would make it Legation's", async () => {
    expect(await renewed({ "example.com/owner": "ops" })).toEqual({ metadata: { resourceVersion: "7" }, data });
  });
});
