import forge from "node-forge";
import { describe, expect, test } from "vitest";
import { readRequest, requestClient } from "../../../src/certificates/issue.ts";

/** A request with a key of the test's choice, and a signature of zeros. */
function forgedRequest(modulusBits: number, exponentBits: number): string {
  const number = (bits: number): forge.jsbn.BigInteger =>
    new forge.jsbn.BigInteger(`1${"0".repeat(bits / 4 - 2)}1`, 16);
  const request = forge.pki.createCertificationRequest();
  request.publicKey = forge.pki.setRsaPublicKey(number(modulusBits), number(exponentBits));
  request.setSubject([{ name: "commonName", value: "legation-agent" }]);
  const signer = { sign: () => "\u0001".repeat(modulusBits / 8) };
  request.sign(signer as unknown as forge.pki.rsa.PrivateKey, forge.md.sha256.create());
  return forge.pki.certificationRequestToPem(request);
}

describe("reading a certificate request", () => {
  test("returns the public key of a request that its key has signed", async () => {
    const { request } = await requestClient();
    expect(readRequest(request)?.publicKey).toContain("BEGIN PUBLIC KEY");
  });

  test.each([
    ["a key that takes minutes to verify with", 16_384, 8_192],
    ["an exponent that takes seconds to verify with", 4_096, 4_096],
    ["a key that is too short", 512, 16],
  ])("refuses %s at once", (_name, modulusBits, exponentBits) => {
    const request = forgedRequest(modulusBits, exponentBits);
    const { user: before } = process.cpuUsage();
    expect(readRequest(request)).toBeUndefined();
    expect((process.cpuUsage().user - before) / 1_000).toBeLessThan(300);
  });

  test.each([["text"], [""], ["-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"]])(
    "refuses %j",
    (text) => {
      expect(readRequest(text)).toBeUndefined();
    },
  );

  test("refuses a request whose content was changed after it was signed", async () => {
    const parsed = forge.pki.certificationRequestFromPem((await requestClient()).request);
    const other = forge.pki.certificationRequestFromPem((await requestClient()).request);
    parsed.publicKey = other.publicKey;
    const { signature } = parsed;
    parsed.sign({ sign: () => String(signature) } as unknown as forge.pki.rsa.PrivateKey, forge.md.sha256.create());
    expect(readRequest(forge.pki.certificationRequestToPem(parsed))).toBeUndefined();
  });
});
