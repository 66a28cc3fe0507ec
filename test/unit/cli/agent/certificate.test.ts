import { createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Authority, issueAuthority, issueClient, readRequest } from "../../../../src/certificates/issue.ts";
import { type AgentSecret, type AgentState, ensureCertificate } from "../../../../src/cli/agent/state.ts";
import type { RawRequest } from "../../../../src/kube/client.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const DAY_MS = 24 * 60 * 60_000;
const now = Date.now();
const never = new AbortController().signal;
const west = { name: "west", uid: "1" };
const authority: Promise<Authority> = issueAuthority("hub", { now, lifetimeMs: 100 * DAY_MS });

/** The state of an agent of an earlier version, whose key is RSA, and a hub that issues what it asks for. */
async function earlierAgent(ageDays: number) {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const ca = await authority;
  const issued = { now: now - ageDays * DAY_MS, lifetimeMs: 90 * DAY_MS };
  let current = { cert: issueClient(ca, publicKey, west, issued), key: privateKey } as AgentSecret;
  const state = {
    get current() {
      return current;
    },
    store: async (changes: Partial<AgentSecret>) => {
      const request = changes.request === "" ? undefined : (changes.request ?? current.request);
      current = { ...current, ...changes, request };
    },
  } as unknown as AgentState;
  const hub = fakeClient({
    raw: async ({ body }: RawRequest) => {
      const { publicKey: asked = "" } = readRequest((body as { request: string }).request) ?? {};
      return {
        certificate: issueClient(ca, asked, west, { now, lifetimeMs: 90 * DAY_MS }),
        authorities: ca.cert,
      };
    },
  });
  return { state, hub };
}

describe("the certificate of an agent with an RSA key", () => {
  test("is kept for two thirds of its life", async () => {
    const { state, hub } = await earlierAgent(10);
    const { cert } = state.current;
    await ensureCertificate(state, hub, { now, signal: never });
    expect(state.current.cert).toBe(cert);
  });

  test("is then renewed with a P-256 key", async () => {
    const { state, hub } = await earlierAgent(70);
    await ensureCertificate(state, hub, { now, signal: never });
    const { cert = "", key = "" } = state.current;
    const { publicKey, validFromDate } = new X509Certificate(cert);
    expect(publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
    expect(publicKey.equals(createPublicKey(key))).toBe(true);
    expect(validFromDate.getTime()).toBeGreaterThan(now - 31 * DAY_MS);
  });
});
