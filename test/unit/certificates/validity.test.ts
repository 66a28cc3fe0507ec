import { describe, expect, test } from "vitest";
import { issueAuthority, issueServing } from "../../../src/certificates/issue.ts";
import { DAY_MS, expiresAt, hostsOf, issuedAt, renewalReason } from "../../../src/certificates/validity.ts";

const now = Date.now();
const hosts = ["legation-webhook.legation-system.svc", "127.0.0.1", "::1"];
const authority = await issueAuthority("test-ca", { now, lifetimeMs: 100 * DAY_MS });
const serving = await issueServing(authority, hosts, { now, lifetimeMs: 90 * DAY_MS });

describe("the renewal of a certificate", () => {
  const at = (days: number, options: object = {}) =>
    renewalReason(serving.cert, { now: now + days * DAY_MS, ...options });
  test("is due after two thirds of its life", () => {
    expect(at(49)).toBeUndefined();
    expect(at(51)).toBe("expiring");
  });
  test("is due if the certificate is valid only from later on, beyond the backdating of thirty days", () => {
    expect(at(-29.9)).toBeUndefined();
    expect(at(-30.1)).toBe("early");
    expect(at(-109)).toBe("early");
  });
  test("is not due if its issuer would replace each new one, without end", () => {
    expect(at(-111)).toBeUndefined();
  });
  test("is due if a name or an address is missing", () => {
    expect(at(0, { hosts })).toBeUndefined();
    expect(at(0, { hosts: [...hosts, "other.svc"] })).toBe("hosts");
    expect(at(0, { hosts: ["10.0.0.1"] })).toBe("hosts");
  });
  test("is due if another authority signed it", async () => {
    const other = await issueAuthority("test-ca", { now, lifetimeMs: DAY_MS });
    expect(at(0, { authority: authority.cert })).toBeUndefined();
    expect(at(0, { authority: other.cert })).toBe("authority");
    expect(at(0, { authority: "nonsense" })).toBe("authority");
  });
  test("is due if it cannot be parsed", () => {
    expect(renewalReason("nonsense", { now })).toBe("unreadable");
    expect(expiresAt("nonsense")).toBeUndefined();
  });
});

test("names the holder of a certificate", () => {
  expect(hostsOf(serving.cert)).toEqual([hosts[0], hosts[1], "0:0:0:0:0:0:0:1"]);
  expect(hostsOf(authority.cert)).toEqual([]);
  expect(hostsOf("nonsense")).toEqual([]);
});

test("knows when a certificate was issued, whatever its backdating", () => {
  expect(Math.abs((issuedAt(serving.cert) ?? 0) - now)).toBeLessThan(1_000);
  expect(issuedAt("nonsense")).toBeUndefined();
});
