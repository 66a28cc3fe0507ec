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
import { bitString, sequence, TAG } from "./der.ts";
import { BACKDATE_MS } from "./validity.ts";
import {
  authorityKeyIdentifier,
  basicConstraints,
  certificateContent,
  type DistinguishedName,
  distinguishedName,
  extendedKeyUsage,
  extensionRequest,
  KEY_ALGORITHMS,
  keyUsage,
  partsOf,
  requestContent,
  SIGNATURES,
  subjectAltName,
  subjectKeyIdentifier,
  subjectOf,
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
  return await request({ organization, commonName }, [extensionRequest(subjectAltName(hosts))]);
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
    const [content, algorithm, signature] = partsOf(Buffer.from(base64, "base64"));
    if (content === undefined || signature === undefined) return undefined;
    const [, , spki] = partsOf(content.bytes);
    const [keyAlgorithm] = spki === undefined ? [] : partsOf(spki.bytes);
    // No bits of the last byte are unused.
    if (spki === undefined || signature.tag !== TAG.bitString || signature.content[0] !== 0) return undefined;
    const type = KEY_TYPES.find((each) => keyAlgorithm?.bytes.equals(KEY_ALGORITHMS[each]));
    if (type === undefined || algorithm?.bytes.equals(SIGNATURES[type]) !== true) return undefined;
    const key = createPublicKey({ key: spki.bytes, type: "spki", format: "der" });
    const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
    const isUsual = modulusLength >= KEY_BITS && modulusLength <= MOST_KEY_BITS && publicExponent < MOST_EXPONENT;
    if (type === "rsa" && !isUsual) return undefined;
    if (!verify("sha256", content.bytes, key, signature.content.subarray(1))) return undefined;
    return { publicKey: key.export({ type: "spki", format: "pem" }).toString() };
  } catch {
    return undefined;
  }
}

const PEM_REQUEST = /-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----([^-]+)-----END/;
const KEY_TYPES = ["ec", "rsa"] as const;

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

/** Issues a client certificate with a new key. */
export async function issueClientWithKey(
  authority: Authority,
  subject: ClientSubject,
  options: IssueOptions,
): Promise<Certificate> {
  const { publicKey, privateKey } = await generateLeafKeys();
  const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
  return { cert: issueClient(authority, pem, subject, options), key: pemOfKey(privateKey) };
}

/** Signs certificates. */
interface Issuer {
  readonly name: Buffer;
  readonly key: KeyObject;
  /** Its certificates must not claim to be valid for longer than its own. Undefined for a self-signed one. */
  readonly notAfter?: Date;
}

function issuerOf({ cert, key }: Authority): Issuer & { readonly publicKey: Buffer } {
  const parsed = new X509Certificate(cert);
  return { ...subjectOf(parsed.raw), key: createPrivateKey(key), notAfter: parsed.validToDate };
}

/** Returns a certificate (PEM). */
function issue(
  { name: issuer, key, notAfter }: Issuer,
  holder: { readonly subject: Buffer; readonly publicKey: Buffer; readonly extensions: readonly Buffer[] },
  { now, lifetimeMs }: IssueOptions,
): string {
  const signature = SIGNATURES[typeOf(key)];
  const content = certificateContent({
    ...holder,
    // The leading 01 keeps the serial positive and in minimal DER, which OpenSSL requires.
    serial: Buffer.concat([Buffer.of(1), randomBytes(15)]),
    signature,
    issuer,
    notBefore: new Date(now - BACKDATE_MS),
    notAfter: new Date(Math.min(now + lifetimeMs, notAfter?.getTime() ?? Number.POSITIVE_INFINITY)),
  });
  return pemOf("CERTIFICATE", signed(content, key));
}

async function request(subject: DistinguishedName, attributes: readonly Buffer[]): Promise<CertificateRequest> {
  const { publicKey, privateKey } = await generateLeafKeys();
  const content = requestContent(distinguishedName(subject), spkiOf(publicKey), attributes);
  return { request: pemOf("CERTIFICATE REQUEST", signed(content, privateKey)), key: pemOfKey(privateKey) };
}

/** Generates a key of P-256, which every API server accepts, and which signs 20 times as fast as RSA. */
async function generateLeafKeys(): Promise<{ readonly publicKey: KeyObject; readonly privateKey: KeyObject }> {
  return await promisify(generateKeyPair)("ec", { namedCurve: "P-256" });
}

function servingSubject(hosts: readonly string[]): Buffer {
  return distinguishedName({ commonName: hosts[0] ?? "legation" });
}

function servingExtensions(hosts: readonly string[]): Buffer[] {
  return [basicConstraints(false), keyUsage("digitalSignature"), extendedKeyUsage("server"), subjectAltName(hosts)];
}

function signed(content: Buffer, key: KeyObject): Buffer {
  return sequence(content, SIGNATURES[typeOf(key)], bitString(sign("sha256", content, key)));
}

function typeOf({ asymmetricKeyType }: KeyObject): "rsa" | "ec" {
  if (asymmetricKeyType === "rsa" || asymmetricKeyType === "ec") return asymmetricKeyType;
  throw new Error(`a key of type ${asymmetricKeyType} cannot sign certificates here: RSA and P-256 can`);
}

function spkiOf(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: "spki", format: "der" });
}

function pemOfKey(privateKey: KeyObject): string {
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

function pemOf(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}
