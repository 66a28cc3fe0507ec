import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Secret } from "../../../src/api/kubernetes.ts";
import { renewMemberTokens } from "../../../src/clusters/member-tokens.ts";
import { decide } from "../../../src/clusters/token-renewal.ts";
import type { ControllerEvents } from "../../../src/controllers/events.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { tokenClaims, withToken } from "../../../src/kube/service-account-token.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { answerOf, writing } from "../../support/builders/answers.ts";
import { cluster, member } from "../../support/builders/member.ts";
import { bearerToken } from "../../support/builders/token.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const day = 24 * 60 * 60_000;
const now = Date.parse("2026-02-03T00:00:00Z");

function kubeconfig(userToken: string): string {
  return `# the operator's own words\nusers:\n- name: legation\n  user: {token: ${userToken}}\n`;
}

const account = {
  sub: "system:serviceaccount:legation-system:legation-host",
  iat: now / 1000,
  exp: (now + 30 * day) / 1000,
};

describe("the token of a member's kubeconfig", () => {
  test("has its account and expiration read", () => {
    expect(tokenClaims(kubeconfig(bearerToken(account)))).toEqual({
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
    ["a person's token", kubeconfig(bearerToken({ ...account, sub: "alice" }))],
    ["a node's token", kubeconfig(bearerToken({ ...account, sub: "system:node:worker:1" }))],
    ["a token beside another user's", `${kubeconfig(bearerToken(account))}- name: other\n  user: {token: abc}\n`],
    ["a token without an end", kubeconfig(bearerToken({ sub: account.sub }))],
  ])("is not renewed if the kubeconfig has %s", (_, text) => {
    expect(tokenClaims(text)).toBeUndefined();
  });

  test("is read without a warning, which would quote it", () => {
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
    onTestFinished(() => warned.mockRestore());
    const text = kubeconfig(`!unknown ${bearerToken(account)}`);
    expect(tokenClaims(text)).toMatchObject({ name: "legation-host" });
    expect(warned).not.toHaveBeenCalled();
  });

  test("is replaced alone", () => {
    expect(withToken(kubeconfig(bearerToken(account)), "new.to.ken")).toBe(kubeconfig("new.to.ken"));
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

  test("waits for its member to return", () => {
    expect(decide({ claims, reachable: false }, now + 16 * day)).toEqual({ actions: [], outcome: "Unreachable" });
  });

  test("is not requested repeatedly by a controller whose clock is ahead", () => {
    const hour = { ...claims, expiresAt: now + 3_600_000 };
    const observed = { claims: hour, reachable: true, renewedAt: now };
    expect(decide(observed, now, now + 3_600_000)).toMatchObject({ actions: [], requeueAt: now + 60_000 });
  });
});

describe("a renewal", () => {
  /**
   * Returns the patch of a Secret with these annotations and a token in the second half of its life, the requested lifetime
   * of the new token, and the number of requests after two more events.
   */
  async function renewed(annotations: Record<string, string>, next = "new.to.ken") {
    const text = kubeconfig(bearerToken(account));
    const secret = answerOf<Secret>({
      metadata: { name: "west", resourceVersion: "7", annotations },
      data: { kubeconfig: btoa(text) },
    });
    const status = { token: next, expirationTimestamp: "2026-03-20T00:00:00Z" };
    const asked: unknown[] = [];
    const createSubresource: ClusterClient["createSubresource"] = async (_resource, _ref, _name, body) => {
      asked.push("spec" in body ? body.spec : undefined);
      return { status };
    };
    const client = fakeClient({ createSubresource });
    let patch: Partial<Secret> | undefined;
    const host = fakeClient(
      writing(({ body }) => {
        patch = body;
        Object.assign(secret, { data: patch.data });
      }),
    );
    const clock = new FakeClock(now + 16 * day);
    const events = new Events<ControllerEvents>();
    const controller = renewMemberTokens({
      host,
      events,
      registry: {
        cluster: () => cluster("west"),
        secret: () => secret,
        member: () => member("west", client, { probed: { reachable: true } }),
      },
      clock,
      log: createLogger({ level: "silent" }),
    });
    events.emit("cluster", "west");
    for (let told = 0; told < 3; told += 1) {
      await clock.advance(1_000);
      events.emit("cluster", "west");
    }
    await controller.stop();
    return { patch, asked };
  }
  const data = { kubeconfig: btoa(kubeconfig("new.to.ken")) };

  test("records the new expiration in the Secret that `legation join` made", async () => {
    const { patch } = await renewed({ "legation.dev/token-expires": "2026-03-05T00:00:00Z" });
    expect(patch).toEqual({
      metadata: { resourceVersion: "7", annotations: { "legation.dev/token-expires": "2026-03-20T00:00:00Z" } },
      data,
    });
  });

  test("leaves the operator's own Secret without that annotation, which would make it Legation's", async () => {
    const { patch } = await renewed({ "example.com/owner": "ops" });
    expect(patch).toEqual({ metadata: { resourceVersion: "7" }, data });
  });

  test("asks for a month, and not again at once when the new token seems as old as the one before", async () => {
    const { asked } = await renewed({}, bearerToken({ ...account, iat: account.iat + 1 }));
    expect(asked).toEqual([{ expirationSeconds: 30 * 24 * 3600 }]);
  });
});
