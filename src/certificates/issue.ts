import forge from "node-forge";

/** A certificate with its private key, PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** An authority: signs serving certificates, and is what clients trust. */
export type Authority = Certificate;

export interface IssueOptions {
  /** Epoch ms. */
  readonly now: number;
  readonly lifetimeMs: number;
}

// RSA: node-forge signs with nothing else. 2048 bits is what every API server accepts and takes 100 ms to make.
const KEY_BITS = 2048;
// Clocks of the API servers may run behind, and ours ahead: what is not valid yet stops every pod.
const BACKDATE_MS = 24 * 60 * 60_000;

/** Makes a self-signed authority. */
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
  cert.sign(keys.privateKey, forge.md.sha256.create());
  return pem(cert, keys.privateKey);
}

/** Makes a serving certificate for DNS names and IP addresses. */
export async function issueServing(
  authority: Authority,
  hosts: readonly string[],
  options: IssueOptions,
): Promise<Certificate> {
  const issuer = forge.pki.certificateFromPem(authority.cert);
  const keys = await generateKeys();
  const cert = blank(keys.publicKey, options);
  cert.setSubject([{ name: "commonName", value: hosts[0] ?? "legation" }]);
  cert.setIssuer(issuer.subject.attributes);
  // Verifiers look at the whole chain: beyond its authority's end it would only seem to be valid.
  if (cert.validity.notAfter > issuer.validity.notAfter) cert.validity.notAfter = issuer.validity.notAfter;
  cert.setExtensions([
    { name: "basicConstraints", cA: false, critical: true },
    { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
    { name: "extKeyUsage", serverAuth: true },
    { name: "subjectAltName", altNames: hosts.map(altName) },
    // A renewed authority has the same name: this tells verifiers which of them signed.
    { name: "authorityKeyIdentifier", keyIdentifier: issuer.generateSubjectKeyIdentifier().getBytes() },
  ]);
  cert.sign(forge.pki.privateKeyFromPem(authority.key), forge.md.sha256.create());
  return pem(cert, keys.privateKey);
}

/** A request for a certificate, with the private key that it is for; PEM. */
export interface CertificateRequest {
  readonly request: string;
  readonly key: string;
}

/** Asks somebody else for a serving certificate, for DNS names and IP addresses. */
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
  request.sign(keys.privateKey, forge.md.sha256.create());
  return { request: forge.pki.certificationRequestToPem(request), key: forge.pki.privateKeyToPem(keys.privateKey) };
}

function generateKeys(): Promise<forge.pki.rsa.KeyPair> {
  return new Promise((resolve, reject) => {
    forge.pki.rsa.generateKeyPair({ bits: KEY_BITS }, (error, keys) =>
      error === null ? resolve(keys) : reject(error),
    );
  });
}

function blank(publicKey: forge.pki.PublicKey, { now, lifetimeMs }: IssueOptions): forge.pki.Certificate {
  const cert = forge.pki.createCertificate();
  cert.publicKey = publicKey;
  // Positive, and DER in its shortest form: OpenSSL refuses a serial number whose random bytes happen to begin with zeros.
  cert.serialNumber = `01${forge.util.bytesToHex(forge.random.getBytesSync(15))}`;
  cert.validity.notBefore = new Date(now - BACKDATE_MS);
  cert.validity.notAfter = new Date(now + lifetimeMs);
  return cert;
}

function altName(host: string): { type: number; value?: string; ip?: string } {
  // RFC 5280: 2 is dNSName, 7 is iPAddress.
  return /^[\d.]+$/.test(host) || host.includes(":") ? { type: 7, ip: host } : { type: 2, value: host };
}

function pem(cert: forge.pki.Certificate, key: forge.pki.PrivateKey): Certificate {
  return { cert: forge.pki.certificateToPem(cert), key: forge.pki.privateKeyToPem(key) };
}
