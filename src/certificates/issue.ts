import { constants, createPrivateKey, generateKeyPair, privateEncrypt } from "node:crypto";
import { promisify } from "node:util";
import forge from "node-forge";
import { BACKDATE_MS } from "./validity.ts";

/** A certificate and its private key, PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A CA: signs serving certificates, and clients trust it. */
export type Authority = Certificate;

export interface IssueOptions {
  /** Epoch ms. */
  readonly now: number;
  readonly lifetimeMs: number;
}

// node-forge supports only RSA. Every API server accepts 2048 bits, which take 100 ms to generate.
const KEY_BITS = 2048;
// The DER prefix of a signed SHA-256 digest (RFC 8017, section 9.2).
const SHA256_DIGEST_INFO = Buffer.from("3031300d060960864801650304020105000420", "hex");

/** Issues a self-signed CA. */
export async function issueAuthority(name: string, options: IssueOptions): Promise<Authority> {
  const keys = await generateKeys();
  const cert = blank(keys.publicKey, options);
  const subject = [{ name: "commonName", value: name }];
  cert.setSubject(subject);
  cert.setIssuer(subject);
  cert.setExtensions([
    { name: "basicConstraints", cA: true, critical: true },
    { name: "keyUsage", keyCertSign: true, cRLSign: true, digitalSignature: true, critical: true },
    { name: "subjectKeyIdentifier" },
  ]);
  sign(cert, keys.privateKey);
  return pem(cert, keys.privateKey);
}

/** Issues a self-signed serving certificate, for clients that do not verify it. */
export async function issueSelfSigned(hosts: readonly string[], options: IssueOptions): Promise<Certificate> {
  const keys = await generateKeys();
  const cert = blank(keys.publicKey, options);
  const subject = subjectOf(hosts);
  cert.setSubject(subject);
  cert.setIssuer(subject);
  cert.setExtensions(servingExtensions(hosts));
  sign(cert, keys.privateKey);
  return pem(cert, keys.privateKey);
}

/** Issues a serving certificate for DNS names and IP addresses. */
export async function issueServing(
  authority: Authority,
  hosts: readonly string[],
  options: IssueOptions,
): Promise<Certificate> {
  const issuer = forge.pki.certificateFromPem(authority.cert);
  const keys = await generateKeys();
  const cert = blank(keys.publicKey, options);
  cert.setSubject(subjectOf(hosts));
  cert.setIssuer(issuer.subject.attributes);
  // A certificate is not valid beyond its CA's expiry, so it must not claim to be.
  if (cert.validity.notAfter > issuer.validity.notAfter) cert.validity.notAfter = issuer.validity.notAfter;
  cert.setExtensions([
    ...servingExtensions(hosts),
    // A renewed CA has the same name; the key identifier tells verifiers which one signed.
    { name: "authorityKeyIdentifier", keyIdentifier: issuer.generateSubjectKeyIdentifier().getBytes() },
  ]);
  sign(cert, authority.key);
  return pem(cert, keys.privateKey);
}

/** A certificate signing request and its private key, PEM. */
export interface CertificateRequest {
  readonly request: string;
  readonly key: string;
}

/** Creates a signing request for a serving certificate, for DNS names and IP addresses. */
export async function requestServing(
  subject: { readonly commonName: string; readonly organization: string },
  hosts: readonly string[],
): Promise<CertificateRequest> {
  const keys = await generateKeys();
  const request = forge.pki.createCertificationRequest();
  request.publicKey = keys.publicKey;
  request.setSubject([
    { name: "organizationName", value: subject.organization },
    { name: "commonName", value: subject.commonName },
  ]);
  const names = { name: "subjectAltName", altNames: hosts.map(altName) };
  request.setAttributes([{ name: "extensionRequest", extensions: [names] }]);
  sign(request, keys.privateKey);
  return { request: forge.pki.certificationRequestToPem(request), key: keys.privateKey };
}

/** Creates a signing request for a client certificate. Its issuer chooses the subject. */
export async function requestClient(): Promise<CertificateRequest> {
  const keys = await generateKeys();
  return { request: clientRequest(keys), key: keys.privateKey };
}

// Larger numbers would block the event loop for minutes, when the signature of a stranger's request is verified.
const MOST_KEY_BITS = 4096;
const MOST_EXPONENT_BITS = 32;

/**
 * Returns the public key (PEM) of a signing request. Undefined without a valid signature by that key, or for a key of unusual
 * size.
 */
export function readRequest(request: string): { readonly publicKey: string } | undefined {
  try {
    const parsed = forge.pki.certificationRequestFromPem(request);
    if (parsed.publicKey === null || !("n" in parsed.publicKey)) return undefined;
    const { n, e } = parsed.publicKey;
    const isUsual = n.bitLength() >= KEY_BITS && n.bitLength() <= MOST_KEY_BITS && e.bitLength() <= MOST_EXPONENT_BITS;
    if (!isUsual || !parsed.verify()) return undefined;
    return { publicKey: forge.pki.publicKeyToPem(parsed.publicKey) };
  } catch {
    return undefined;
  }
}

/** The subject of a client certificate: a name, the uid of the object with the name, and the join of that object. */
export interface ClientSubject {
  readonly name: string;
  readonly uid: string;
  readonly join?: string | undefined;
}

/** Issues a client certificate for a public key (PEM). */
export function issueClient(
  authority: Authority,
  publicKey: string,
  subject: ClientSubject,
  options: IssueOptions,
): string {
  return clientCertificate(authority, forge.pki.publicKeyFromPem(publicKey), subject, options);
}

/** Issues a client certificate with a new key. */
export async function issueClientWithKey(
  authority: Authority,
  subject: ClientSubject,
  options: IssueOptions,
): Promise<Certificate> {
  const { publicKey, privateKey } = await generateKeys();
  return { cert: clientCertificate(authority, publicKey, subject, options), key: privateKey };
}

function clientCertificate(
  authority: Authority,
  publicKey: forge.pki.PublicKey,
  subject: ClientSubject,
  options: IssueOptions,
): string {
  const issuer = forge.pki.certificateFromPem(authority.cert);
  const cert = blank(publicKey, options);
  cert.setSubject([
    { name: "commonName", value: subject.name },
    { name: "organizationalUnitName", value: subject.uid },
    ...(subject.join === undefined ? [] : [{ name: "organizationName", value: subject.join }]),
  ]);
  cert.setIssuer(issuer.subject.attributes);
  cert.setExtensions([
    { name: "basicConstraints", cA: false, critical: true },
    { name: "keyUsage", digitalSignature: true, critical: true },
    { name: "extKeyUsage", clientAuth: true },
    { name: "authorityKeyIdentifier", keyIdentifier: issuer.generateSubjectKeyIdentifier().getBytes() },
  ]);
  sign(cert, authority.key);
  return forge.pki.certificateToPem(cert);
}

interface Keys {
  readonly publicKey: forge.pki.PublicKey;
  /** PEM. */
  readonly privateKey: string;
}

async function generateKeys(): Promise<Keys> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)("rsa", {
    modulusLength: KEY_BITS,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  return { publicKey: forge.pki.publicKeyFromPem(publicKey), privateKey };
}

/** A structure that is signed over its own DER bytes. */
interface Signable {
  sign(key: forge.pki.PrivateKey, digest: forge.md.MessageDigest): void;
}

/** Signs with OpenSSL, because node-forge would block the event loop for tens of milliseconds. */
function sign(target: Signable, keyPem: string): void {
  const key = createPrivateKey(keyPem);
  const signer = {
    sign: (digest: forge.md.MessageDigest) => {
      const info = Buffer.concat([SHA256_DIGEST_INFO, Buffer.from(digest.digest().getBytes(), "latin1")]);
      return privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, info).toString("latin1");
    },
  };
  target.sign(signer as forge.pki.rsa.PrivateKey, forge.md.sha256.create());
}

function clientRequest({ publicKey, privateKey }: Keys): string {
  const request = forge.pki.createCertificationRequest();
  request.publicKey = publicKey;
  request.setSubject([{ name: "commonName", value: "legation-agent" }]);
  sign(request, privateKey);
  return forge.pki.certificationRequestToPem(request);
}

function subjectOf(hosts: readonly string[]): forge.pki.CertificateField[] {
  return [{ name: "commonName", value: hosts[0] ?? "legation" }];
}

function servingExtensions(hosts: readonly string[]): object[] {
  return [
    { name: "basicConstraints", cA: false, critical: true },
    { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
    { name: "extKeyUsage", serverAuth: true },
    { name: "subjectAltName", altNames: hosts.map(altName) },
  ];
}

function blank(publicKey: forge.pki.PublicKey, { now, lifetimeMs }: IssueOptions): forge.pki.Certificate {
  const cert = forge.pki.createCertificate();
  cert.publicKey = publicKey;
  // The leading 01 keeps the serial positive and in minimal DER, which OpenSSL requires.
  cert.serialNumber = `01${forge.util.bytesToHex(forge.random.getBytesSync(15))}`;
  cert.validity.notBefore = new Date(now - BACKDATE_MS);
  cert.validity.notAfter = new Date(now + lifetimeMs);
  return cert;
}

function altName(host: string): { type: number; value?: string; ip?: string } {
  // RFC 5280: 2 is dNSName, 7 is iPAddress.
  return /^[\d.]+$/.test(host) || host.includes(":") ? { type: 7, ip: host } : { type: 2, value: host };
}

function pem(cert: forge.pki.Certificate, key: string): Certificate {
  return { cert: forge.pki.certificateToPem(cert), key };
}
