import { describe, expect, test } from "vitest";
import { issueAuthority, issueSelfSigned, issueServing } from "../../../src/certificates/issue.ts";
import { checkPair } from "../../../src/certificates/pair.ts";
import { DAY_MS } from "../../../src/certificates/validity.ts";

const now = Date.now();
const hosts = ["legation-webhook.legation-system.svc"];
const authority = await issueAuthority("test-ca", { now, lifetimeMs: 100 * DAY_MS });
const serving = await issueServing(authority, hosts, { now, lifetimeMs: 90 * DAY_MS });

describe("a certificate and a private key", () => {
  test("are a pair if the key is the certificate's", () => {
    expect(() => checkPair(authority)).not.toThrow();
    expect(() => checkPair(serving)).not.toThrow();
  });

  test.each([
    ["of its type", async () => (await issueSelfSigned(hosts, { now, lifetimeMs: DAY_MS })).key],
    ["of another type", async () => authority.key],
  ])("are no pair with another key %s", async (_name, create) => {
    const key = await create();
    expect(() => checkPair({ cert: serving.cert, key })).toThrow(/key values mismatch/);
  });
});
