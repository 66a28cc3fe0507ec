import { describe, expect, test } from "vitest";
import { bearerToken } from "../../../support/builders/token.ts";
import { ask, base64, OTHER, token } from "./reader.ts";

describe("the credential of a reader of ClusterProfiles", () => {
  test("is its own token for the host, with the time at which that expires", async () => {
    const { out } = await ask({});
    expect(JSON.parse(out)).toEqual({
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token, expirationTimestamp: "2026-02-02T02:40:00.000Z" },
    });
  });

  test("has no time if the token tells none", async () => {
    expect(JSON.parse((await ask({ user: { token: "opaque" } })).out).status).toEqual({ token: "opaque" });
  });

  test.each([10 ** 13, -(10 ** 13)])("has no time if the token tells %d, which is none", async (exp) => {
    const strange = bearerToken({ exp });
    expect(JSON.parse((await ask({ user: { token: strange } })).out).status).toEqual({ token: strange });
  });

  test("is its own client certificate", async () => {
    const key = "-----BEGIN PRIVATE KEY-----\nkey\n-----END PRIVATE KEY-----\n";
    const user = { "client-certificate-data": base64(OTHER), "client-key-data": base64(key) };
    expect(JSON.parse((await ask({ user })).out).status).toEqual({ clientCertificateData: OTHER, clientKeyData: key });
  });
});
