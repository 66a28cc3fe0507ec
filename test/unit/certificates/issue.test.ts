import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { createServer, type Server } from "node:https";
import { connect } from "node:tls";
import forge from "node-forge";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Authority,
  type Certificate,
  issueAuthority,
  issueSelfSigned,
  issueServing,
} from "../../../src/certificates/issue.ts";
import { expiresAt, hostsOf } from "../../../src/certificates/validity.ts";

const DAY_MS = 24 * 3_600_000;
const now = Date.now();
const hosts = ["legation-webhook.legation-system.svc", "127.0.0.1", "::1"];

let authority: Authority;
let serving: Certificate;

beforeAll(async () => {
  authority = await issueAuthority("test-ca", { now, lifetimeMs: 100 * DAY_MS });
  serving = await issueServing(authority, hosts, { now, lifetimeMs: 90 * DAY_MS });
});

describe("TLS with a certificate of the authority", () => {
  let server: Server;
  beforeAll(async () => {
    server = createServer({ ...serving });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  function handshake(ca: string, servername: string): Promise<string> {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    return new Promise((resolve) => {
      const socket = connect({ host: "127.0.0.1", port, ca, servername }, () => {
        socket.destroy();
        resolve("trusted");
      });
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    });
  }

  test("is trusted by clients that trust the authority", async () => {
    expect(await handshake(authority.cert, "legation-webhook.legation-system.svc")).toBe("trusted");
  });
  test("is trusted with an older authority of the same name in the bundle", async () => {
    const older = await issueAuthority("test-ca", { now, lifetimeMs: DAY_MS });
    expect(await handshake(older.cert + authority.cert, "legation-webhook.legation-system.svc")).toBe("trusted");
  });
  test("is not trusted by clients of another authority of the same name", async () => {
    const other = await issueAuthority("test-ca", { now, lifetimeMs: DAY_MS });
    expect(await handshake(other.cert, "legation-webhook.legation-system.svc")).toMatch(/UNABLE|SELF_SIGNED|SIGNATURE/);
  });
  test("is not trusted under another name", async () => {
    expect(await handshake(authority.cert, "other.svc")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  });
});

test("signs a self-signed certificate with its own key, for its names", async () => {
  const { cert, key } = await issueSelfSigned(hosts, { now, lifetimeMs: DAY_MS });
  const parsed = new X509Certificate(cert);
  expect(parsed.verify(createPublicKey(createPrivateKey(key)))).toBe(true);
  expect(hostsOf(cert)).toEqual(hostsOf(serving.cert));
  expect(parsed.ca).toBe(false);
});

test("issues P-256 keys under an RSA authority, which earlier versions read", () => {
  const [ca, leaf] = [new X509Certificate(authority.cert), new X509Certificate(serving.cert)];
  expect(ca.publicKey.asymmetricKeyType).toBe("rsa");
  expect(leaf.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
  expect(leaf.checkIssued(ca)).toBe(true);
  expect(leaf.verify(ca.publicKey)).toBe(true);
  expect(leaf.checkPrivateKey(createPrivateKey(serving.key))).toBe(true);
});

test("issues under an authority of an earlier version, whose name is encoded in another way", async () => {
  const keys = forge.pki.rsa.generateKeyPair(2048);
  const cert = forge.pki.createCertificate();
  cert.publicKey = keys.publicKey;
  cert.serialNumber = "01";
  cert.validity.notBefore = new Date(now - DAY_MS);
  cert.validity.notAfter = new Date(now + DAY_MS);
  cert.setSubject([{ name: "commonName", value: "legation-hub-ca" }]);
  cert.setIssuer(cert.subject.attributes);
  cert.setExtensions([{ name: "basicConstraints", cA: true, critical: true }, { name: "subjectKeyIdentifier" }]);
  cert.sign(keys.privateKey, forge.md.sha256.create());
  const earlier = { cert: forge.pki.certificateToPem(cert), key: forge.pki.privateKeyToPem(keys.privateKey) };
  const issued = new X509Certificate((await issueServing(earlier, hosts, { now, lifetimeMs: DAY_MS })).cert);
  // OpenSSL compares names and key identifiers.
  expect(issued.checkIssued(new X509Certificate(earlier.cert))).toBe(true);
  const content = (pem: string) => forge.asn1.fromDer(forge.pem.decode(pem)[0]?.body ?? "").value[0];
  const nameAt = (pem: string, index: number) => {
    const whole = content(pem);
    const name = typeof whole === "object" ? whole.value[index] : undefined;
    return typeof name === "object" ? forge.asn1.toDer(name).toHex() : undefined;
  };
  // Go compares the bytes: the issuer's name is the fourth field, and the subject the sixth.
  expect(nameAt(issued.toString(), 3)).toBe(nameAt(earlier.cert, 5));
});

test("issues no certificate beyond its authority's life", async () => {
  const long = await issueServing(authority, ["a"], { now, lifetimeMs: 400 * DAY_MS });
  expect(expiresAt(long.cert)).toBe(expiresAt(authority.cert));
});
