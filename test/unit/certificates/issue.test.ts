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
import { checkPair } from "../../../src/certificates/pair.ts";
import { expiresAt, hostsOf, renewalReason } from "../../../src/certificates/validity.ts";

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

test("issues no certificate beyond its authority's life", async () => {
  const long = await issueServing(authority, ["a"], { now, lifetimeMs: 400 * DAY_MS });
  expect(expiresAt(long.cert)).toBe(expiresAt(authority.cert));
});

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
