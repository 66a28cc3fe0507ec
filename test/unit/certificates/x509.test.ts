import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { CertificationRequest } from "@peculiar/asn1-csr";
import { AsnConvert } from "@peculiar/asn1-schema";
import { SubjectPublicKeyInfo } from "@peculiar/asn1-x509";
import fc from "fast-check";
import forge from "node-forge";
import { describe, expect, test } from "vitest";
import { readRequest, requestClient } from "../../../src/certificates/issue.ts";
import { requestInfo, SIGNATURES } from "../../../src/certificates/x509.ts";

function pemOf(bytes: Buffer): string {
  return `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
}

function bytesOf(pem: string): Buffer {
  return Buffer.from(pem.replaceAll(/-----.*-----/g, ""), "base64");
}

/** A request of an agent of an earlier version, whose key was RSA. */
function earlierRequest(): string {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const request = forge.pki.createCertificationRequest();
  request.publicKey = forge.pki.publicKeyFromPem(publicKey);
  request.setSubject([{ name: "commonName", value: "legation-agent" }]);
  request.sign(forge.pki.privateKeyFromPem(privateKey), forge.md.sha256.create());
  return forge.pki.certificationRequestToPem(request);
}

/** A request with an RSA key of the test's choice, and a signature of ones. */
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

/** A request for one key, signed by another or the same. */
function requestOf(publicKey: KeyObject, privateKey: KeyObject): string {
  const spki = AsnConvert.parse(publicKey.export({ type: "spki", format: "der" }), SubjectPublicKeyInfo);
  const info = requestInfo({ commonName: "legation-agent" }, spki, []);
  const signature = new Uint8Array(sign("sha256", Buffer.from(AsnConvert.serialize(info)), privateKey)).buffer;
  const request = { certificationRequestInfo: info, signatureAlgorithm: SIGNATURES.ec, signature };
  return pemOf(Buffer.from(AsnConvert.serialize(new CertificationRequest(request))));
}

describe("reading a certificate request", () => {
  test.each([
    ["ec", async () => (await requestClient()).request],
    ["rsa", async () => earlierRequest()],
  ])("returns the public key (%s) of a request that its key has signed", async (type, create) => {
    const { publicKey = "" } = readRequest(await create()) ?? {};
    expect(createPublicKey(publicKey).asymmetricKeyType).toBe(type);
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

  test.each(["P-384", "secp256k1"])("refuses a key of the curve %s", (namedCurve) => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve });
    expect(readRequest(requestOf(publicKey, privateKey))).toBeUndefined();
  });

  test.each([["text"], [""], ["-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"]])(
    "refuses %j",
    (text) => {
      expect(readRequest(text)).toBeUndefined();
    },
  );

  test("returns the key of a request that its key has signed, whoever made it", () => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    expect(readRequest(requestOf(publicKey, privateKey))).toBeDefined();
  });

  test("refuses a request that another key has signed", () => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    expect(readRequest(requestOf(publicKey, privateKey))).toBeUndefined();
  });

  test.each([
    ["P-256", async () => (await requestClient()).request],
    ["RSA", async () => earlierRequest()],
  ])("refuses a request (%s) of which any byte was changed or is missing", async (_name, create) => {
    const bytes = bytesOf(await create());
    const byte = fc.integer({ min: 1, max: 255 });
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), byte, (at, change) => {
        const changed = Buffer.from(bytes);
        changed.writeUInt8(changed.readUInt8(at) ^ change, at);
        expect(readRequest(pemOf(changed))).toBeUndefined();
        expect(readRequest(pemOf(bytes.subarray(0, at)))).toBeUndefined();
      }),
    );
  });

  test("refuses any other bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(readRequest(pemOf(Buffer.from(bytes)))).toBeUndefined();
      }),
    );
  });
});
