import { generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import forge from "node-forge";

/** PEM of a certificate and its private key. */
export interface KeyAndCertificate {
  readonly key: string;
  readonly certificate: string;
}

/** The purpose of a certificate. */
export interface Subject {
  readonly commonName: string;
  readonly organization?: string;
  readonly usage: "serverAuth" | "clientAuth";
  readonly dnsNames?: readonly string[];
  readonly addresses?: readonly string[];
}

const newKeyPair = promisify(generateKeyPair);
const DNS_NAME = 2;
const IP_ADDRESS = 7;

async function newRsaKey(): Promise<{ publicKey: string; privateKey: string }> {
  return await newKeyPair("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
}

/** PEM of a new P-256 key pair, as service account tokens are signed with. */
export async function newServiceAccountKey(): Promise<{ publicKey: string; privateKey: string }> {
  return await newKeyPair("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "sec1", format: "pem" },
  });
}

function blankCertificate(publicKey: string): forge.pki.Certificate {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(publicKey);
  // Positive, and DER in its shortest form: Go refuses a serial number whose random bytes happen to begin with zeros.
  certificate.serialNumber = `01${forge.util.bytesToHex(forge.random.getBytesSync(15))}`;
  // The clocks of test machines differ and jump.
  certificate.validity.notBefore = new Date(Date.now() - 24 * 60 * 60 * 1000);
  certificate.validity.notAfter = new Date(Date.now() + 30 * 24 * 60 * 60 * 1000);
  return certificate;
}

// forge ends lines with CR LF, which survives neither kubectl's nor the API server's copies.
function pemOf(certificate: forge.pki.Certificate): string {
  return forge.pki.certificateToPem(certificate).replaceAll("\r\n", "\n");
}

/** A certificate authority for one test cluster. */
export class Authority {
  readonly #certificate: forge.pki.Certificate;
  readonly #privateKey: forge.pki.rsa.PrivateKey;

  /** Opens an authority by its PEM and that of its key. */
  static from({ certificate, key }: KeyAndCertificate): Authority {
    return new Authority(forge.pki.certificateFromPem(certificate), forge.pki.privateKeyFromPem(key));
  }

  private constructor(certificate: forge.pki.Certificate, privateKey: forge.pki.rsa.PrivateKey) {
    this.#certificate = certificate;
    this.#privateKey = privateKey;
  }

  static async create(commonName: string): Promise<Authority> {
    const keys = await newRsaKey();
    const privateKey = forge.pki.privateKeyFromPem(keys.privateKey);
    const certificate = blankCertificate(keys.publicKey);
    const names = [{ name: "commonName", value: commonName }];
    certificate.setSubject(names);
    certificate.setIssuer(names);
    certificate.setExtensions([
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, digitalSignature: true, critical: true },
      { name: "subjectKeyIdentifier" },
    ]);
    certificate.sign(privateKey, forge.md.sha256.create());
    return new Authority(certificate, privateKey);
  }

  /** PEM of the authority's own certificate. */
  get pem(): string {
    return pemOf(this.#certificate);
  }

  /** PEM of its private key. */
  get key(): string {
    return forge.pki.privateKeyToPem(this.#privateKey).replaceAll("\r\n", "\n");
  }

  async issue(subject: Subject): Promise<KeyAndCertificate> {
    const keys = await newRsaKey();
    const certificate = blankCertificate(keys.publicKey);
    certificate.setSubject([
      { name: "commonName", value: subject.commonName },
      ...(subject.organization === undefined ? [] : [{ name: "organizationName", value: subject.organization }]),
    ]);
    certificate.setIssuer(this.#certificate.subject.attributes);
    const altNames = [
      ...(subject.dnsNames ?? []).map((value) => ({ type: DNS_NAME, value })),
      ...(subject.addresses ?? []).map((ip) => ({ type: IP_ADDRESS, ip })),
    ];
    certificate.setExtensions([
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
      { name: "extKeyUsage", [subject.usage]: true },
      ...(altNames.length === 0 ? [] : [{ name: "subjectAltName", altNames }]),
    ]);
    certificate.sign(this.#privateKey, forge.md.sha256.create());
    return { key: keys.privateKey, certificate: pemOf(certificate) };
  }
}
