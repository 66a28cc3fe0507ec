import { describe, expect, test } from "vitest";
import { tokenClaims, withToken } from "../../../../src/controllers/member-token/claims.ts";
import { decide } from "../../../../src/controllers/member-token/decide.ts";

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
