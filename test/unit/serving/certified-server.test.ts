import { createServer } from "node:https";
import { expect, test, vi } from "vitest";
import { CertifiedServer } from "../../../src/serving/certified-server.ts";
import { Authority } from "../../support/clusters/pki.ts";

vi.mock("node:https", async (original) => {
  const https = await original<typeof import("node:https")>();
  return { ...https, createServer: vi.fn(https.createServer) };
});

test("bounds the time for the headers of a request, also where its body may take any time", async () => {
  const authority = await Authority.create("host");
  const { certificate: cert, key } = await authority.issue({ commonName: "access", usage: "serverAuth" });
  const callbacks = { onRequest: () => {}, onUpgrade: () => {}, onError: () => {} };
  new CertifiedServer(
    { certificate: { cert, key }, clientAuthority: undefined },
    { ...callbacks, requestTimeoutMs: 0 },
  );
  const server = vi.mocked(createServer).mock.results[0]?.value;
  expect(server?.requestTimeout).toBe(0);
  // Unused connections count, too, which Go clients keep for 90 s.
  expect(server?.headersTimeout).toBeGreaterThan(90_000);
});
