import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
  verify,
  X509Certificate,
} from "node:crypto";
import { promisify } from "node:util";
import { CertificationRequest } from "@peculiar/asn1-csr";
import { AsnConvert } from "@peculiar/asn1-schema";
import {
  type Extension,
  Extensions,
  type Name,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
  Certificate as X509,
} from "@peculiar/asn1-x509";
import { BACKDATE_MS } from "./validity.ts";
import {
  authorityKeyIdentifier,
  basicConstraints,
  type DistinguishedName,
  distinguishedName,
  extendedKeyUsage,
  keyUsage,
  requestInfo,
  SIGNATURES,
  subjectAltName,
  subjectKeyIdentifier,
} from "./x509.ts";

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

/** Issues a self-signed CA. Its key is RSA, which earlier versions read, and which costs less to verify than P-256. */
export async function issueAuthority(name: string, options: IssueOptions): Promise<Authority> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: KEY_BITS });
  const spki = spkiOf(publicKey);
  const subject = distinguishedName({ commonName: name });
  const extensions = [basicConstraints(true), keyUsage("authority"), subjectKeyIdentifier(spki)];
  return {
    cert: issue({ name: subject, key: privateKey }, { subject, publicKey: spki, extensions }, options),
    key: pemOfKey(privateKey),
  };
}

/** Issues a self-signed serving certificate, for clients that do not verify it. */
export async function issueSelfSigned(hosts: readonly string[], options: IssueOptions): Promise<Certificate> {
  const { publicKey, privateKey } = await generateLeafKeys();
  const subject = servingSubject(hosts);
  const extensions = servingExtensions(hosts);
  return {
    cert: issue({ name: subject, key: privateKey }, { subject, publicKey: spkiOf(publicKey), extensions }, options),
    key: pemOfKey(privateKey),
  };
}

/** Issues a serving certificate for DNS names and IP addresses. */
export async function issueServing(
  authority: Authority,
  hosts: readonly string[],
  options: IssueOptions,
): Promise<Certificate> {
  const issuer = issuerOf(authority);
  const { publicKey, privateKey } = await generateLeafKeys();
  const extensions = [...servingExtensions(hosts), authorityKeyIdentifier(issuer.publicKey)];
  const cert = issue(issuer, { subject: servingSubject(hosts), publicKey: spkiOf(publicKey), extensions }, options);
  return { cert, key: pemOfKey(privateKey) };
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
  const { commonName, organization } = subject;
  return await request({ organization, commonName }, [subjectAltName(hosts)]);
}

/** Creates a signing request for a client certificate. Its issuer chooses the subject. */
export async function requestClient(): Promise<CertificateRequest> {
  return await request({ commonName: "legation-agent" }, []);
}

// RSA keys of agents of earlier versions. Larger numbers would block the event loop for minutes, when the signature of a
// stranger's request is verified.
const KEY_BITS = 2048;
const MOST_KEY_BITS = 4096;
const MOST_EXPONENT = 2n ** 32n;

/**
 * Returns the public key (PEM) of a signing request. Undefined without a valid signature by that key, or for a key other than
 * P-256 and RSA of usual size.
 */
export function readRequest(request: string): { readonly publicKey: string } | undefined {
  try {
    const [, base64 = ""] = PEM_REQUEST.exec(request) ?? [];
    const bytes = Buffer.from(base64, "base64");
    const parsed = AsnConvert.parse(bytes, CertificationRequest);
    // The library reads BER. Requests have one form, which is DER.
    if (!bytesOf(parsed).equals(bytes)) return undefined;
    const { certificationRequestInfo: info, signatureAlgorithm, signature } = parsed;
    const key = createPublicKey({ key: bytesOf(info.subjectPKInfo), type: "spki", format: "der" });
    if (!isUsual(key) || !signatureAlgorithm.isEqual(SIGNATURES[typeOf(key)])) return undefined;
    if (!verify("sha256", bytesOf(info), key, Buffer.from(signature))) return undefined;
    return { publicKey: key.export({ type: "spki", format: "pem" }).toString() };
  } catch {
    return undefined;
  }
}

const PEM_REQUEST = /-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----([^-]+)-----END/;

function isUsual({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  const { namedCurve, modulusLength = 0, publicExponent = 0n } = asymmetricKeyDetails ?? {};
  if (asymmetricKeyType === "ec") return namedCurve === "prime256v1";
  if (asymmetricKeyType !== "rsa") return false;
  return modulusLength >= KEY_BITS && modulusLength <= MOST_KEY_BITS && publicExponent < MOST_EXPONENT;
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
  { name, uid, join }: ClientSubject,
  options: IssueOptions,
): string {
  const issuer = issuerOf(authority);
  const subject = distinguishedName({ commonName: name, organizationalUnit: uid, organization: join });
  const extensions = [
    basicConstraints(false),
    keyUsage("digitalSignature"),
    extendedKeyUsage("client"),
    authorityKeyIdentifier(issuer.publicKey),
  ];
  return issue(issuer, { subject, publicKey: spkiOf(createPublicKey(publicKey)), extensions }, options);
}

export async function issueClientWithKey(
  authority: Authority,
  subject: ClientSubject,
  options: IssueOptions,
): Promise<Certificate> {
  const { publicKey, privateKey } = await generateLeafKeys();
  const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
  return { cert: issueClient(authority, pem, subject, options), key: pemOfKey(privateKey) };
}

interface Issuer {
  readonly name: Name;
  readonly key: KeyObject;
  /** End of the issuer's own certificate, which those that it signs must not outlive. Undefined for a self-signed one. */
  readonly notAfter?: Date;
}

function issuerOf({ cert, key }: Authority): Issuer & { readonly publicKey: SubjectPublicKeyInfo } {
  const { raw, validToDate } = new X509Certificate(cert);
  const { subject, subjectPublicKeyInfo } = AsnConvert.parse(raw, X509).tbsCertificate;
  return { name: subject, publicKey: subjectPublicKeyInfo, key: createPrivateKey(key), notAfter: validToDate };
}

function issue(
  { name: issuer, key, notAfter }: Issuer,
  holder: {
    readonly subject: Name;
    readonly publicKey: SubjectPublicKeyInfo;
    readonly extensions: readonly Extension[];
  },
  { now, lifetimeMs }: IssueOptions,
): string {
  const signature = SIGNATURES[typeOf(key)];
  // A short life would be over by two thirds when it begins.
  const from = now - Math.min(BACKDATE_MS, lifetimeMs);
  const until = Math.min(now + lifetimeMs, notAfter?.getTime() ?? Number.POSITIVE_INFINITY);
  const content = new TBSCertificate({
    version: Version.v3,
    // The leading 01 keeps the serial positive and in minimal DER, which OpenSSL requires.
    serialNumber: arrayBuffer(Buffer.concat([Buffer.of(1), randomBytes(15)])),
    signature,
    issuer,
    subject: holder.subject,
    subjectPublicKeyInfo: holder.publicKey,
    validity: new Validity({ notBefore: wholeSeconds(from), notAfter: wholeSeconds(until) }),
    extensions: new Extensions([...holder.extensions]),
  });
  const signatureValue = arrayBuffer(sign("sha256", bytesOf(content), key));
  return pemOf("CERTIFICATE", new X509({ tbsCertificate: content, signatureAlgorithm: signature, signatureValue }));
}

async function request(subject: DistinguishedName, extensions: readonly Extension[]): Promise<CertificateRequest> {
  const { publicKey, privateKey } = await generateLeafKeys();
  const info = requestInfo(subject, spkiOf(publicKey), extensions);
  const signed = new CertificationRequest({
    certificationRequestInfo: info,
    signatureAlgorithm: SIGNATURES.ec,
    signature: arrayBuffer(sign("sha256", bytesOf(info), privateKey)),
  });
  return { request: pemOf("CERTIFICATE REQUEST", signed), key: pemOfKey(privateKey) };
}

/** Generates a key of P-256, which every API server accepts, and which signs 20 times as fast as RSA. */
async function generateLeafKeys(): Promise<{ readonly publicKey: KeyObject; readonly privateKey: KeyObject }> {
  return await promisify(generateKeyPair)("ec", { namedCurve: "P-256" });
}

function servingSubject(hosts: readonly string[]): Name {
  return distinguishedName({ commonName: hosts[0] ?? "legation" });
}

function servingExtensions(hosts: readonly string[]): Extension[] {
  return [basicConstraints(false), keyUsage("digitalSignature"), extendedKeyUsage("server"), subjectAltName(hosts)];
}

function typeOf({ asymmetricKeyType }: KeyObject): "rsa" | "ec" {
  if (asymmetricKeyType === "rsa" || asymmetricKeyType === "ec") return asymmetricKeyType;
  throw new Error(`a key of type ${asymmetricKeyType} cannot sign certificates here: RSA and P-256 can`);
}

function spkiOf(publicKey: KeyObject): SubjectPublicKeyInfo {
  return AsnConvert.parse(publicKey.export({ type: "spki", format: "der" }), SubjectPublicKeyInfo);
}

/** RFC 5280 forbids fractions of seconds. */
function wholeSeconds(epochMs: number): Date {
  return new Date(Math.floor(epochMs / 1_000) * 1_000);
}

function bytesOf(value: object): Buffer {
  return Buffer.from(AsnConvert.serialize(value));
}

function arrayBuffer(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

function pemOfKey(privateKey: KeyObject): string {
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function pemOf(label: string, value: object): string {
  const lines =
    bytesOf(value)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}
