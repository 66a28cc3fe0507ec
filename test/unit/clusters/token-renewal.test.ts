import { describe, expect, onTestFinished, test } from "vitest";
import { type Secret, secretText } from "../../../src/api/kubernetes.ts";
import { memberKubeconfig } from "../../../src/clusters/kubeconfig.ts";
import { type RenewedToken, TokenRenewal } from "../../../src/clusters/token-renewal.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { answerOf } from "../../support/builders/answers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { accountToken } from "../../support/builders/token.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const now = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const OURS = { "legation.dev/token-expires": "2026-01-01T02:00:00Z" };

function tokenFrom(wall: number): string {
  return accountToken("legation-access-01234567", { issuedAt: wall, expiresAt: wall + 2 * HOUR_MS });
}

function renewalOf(store: () => Promise<void> = async () => {}) {
  const clock = new FakeClock(now);
  const written: RenewedToken[] = [];
  const kubeconfig = memberKubeconfig({ cluster: "west", server: "https://192.0.2.1", token: tokenFrom(now) });
  let secret = answerOf<Secret>({
    metadata: { namespace: "legation-access", name: "member-west", resourceVersion: "7", annotations: OURS },
    data: { kubeconfig: Buffer.from(kubeconfig).toString("base64") },
  });
  let requests = 0;
  let closed = 0;
  const renewal = new TokenRenewal({
    name: "test-token",
    find: () => ({
      secret,
      key: "kubeconfig",
      connect: () => ({
        client: fakeClient({
          createSubresource: async (_resource, { namespace, name }, subresource) => {
            requests += 1;
            expect([namespace, name, subresource]).toEqual(["legation-system", "legation-access-01234567", "token"]);
            return { status: { token: tokenFrom(clock.wall()), expirationTimestamp: "2026-01-01T03:00:00Z" } };
          },
        }),
        close: async () => {
          closed += 1;
        },
      }),
    }),
    store: async (renewed) => {
      await store();
      written.push(renewed);
      secret = { ...renewed.secret, data: { ...renewed.secret.data, ...renewed.data } };
    },
    clock,
    log: createLogger({ level: "silent" as "error" }),
  });
  onTestFinished(() => renewal.stop());
  return { renewal, clock, written, requests: () => requests, closed: () => closed };
}

describe("the token by which users act in a member", () => {
  test("is renewed by itself at half of its life, and again", async () => {
    const { renewal, clock, written, closed } = renewalOf();
    renewal.note("west");
    await clock.advance(HOUR_MS - 1_000);
    expect(written).toHaveLength(0);
    await clock.advance(2_000);
    expect(secretText(written[0], "kubeconfig")).toContain(tokenFrom(now + HOUR_MS));
    expect(written[0]?.secret.metadata.resourceVersion).toBe("7");
    expect(written[0]?.annotations).toEqual({ "legation.dev/token-expires": "2026-01-01T03:00:00Z" });
    expect(closed()).toBe(1);
    renewal.note("west");
    await clock.advance(HOUR_MS + 2_000);
    expect(written).toHaveLength(2);
  });

  test("is left to the other replica that was faster", async () => {
    const { renewal, clock, written, requests } = renewalOf(async () => {
      throw kubeError("Conflict");
    });
    renewal.note("west");
    await clock.advance(HOUR_MS + 10_000);
    expect([written.length, requests()]).toEqual([0, 1]);
  });
});
