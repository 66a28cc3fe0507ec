import { createHash } from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import {
  bitString,
  der,
  objectIdentifier,
  readAll,
  sequence,
  TAG,
  tagged,
  taggedBytes,
  time,
  type Value,
} from "./der.ts";

/** The parts of certificates and signing requests (RFC 5280, RFC 2986), in DER. */

const ATTRIBUTES = { commonName: "2.5.4.3", organization: "2.5.4.10", organizationalUnit: "2.5.4.11" } as const;

/** A distinguished name, its attributes in order. */
export type DistinguishedName = { readonly [Attribute in keyof typeof ATTRIBUTES]?: string | undefined };

/** Signature algorithms, by the type of the key. */
export const SIGNATURES: Readonly<Record<"rsa" | "ec", Buffer>> = {
  // sha256WithRSAEncryption, whose parameters are NULL (RFC 4055), and ecdsa-with-SHA256, which has none (RFC 5758).
  rsa: sequence(objectIdentifier("1.2.840.113549.1.1.11"), Buffer.of(5, 0)),
  ec: sequence(objectIdentifier("1.2.840.10045.4.3.2")),
};

/** Algorithms of public keys, by their type: RSA, and the curve P-256. */
export const KEY_ALGORITHMS: Readonly<Record<"rsa" | "ec", Buffer>> = {
  rsa: sequence(objectIdentifier("1.2.840.113549.1.1.1"), Buffer.of(5, 0)),
  ec: sequence(objectIdentifier("1.2.840.10045.2.1"), objectIdentifier("1.2.840.10045.3.1.7")),
};

export function distinguishedName(name: DistinguishedName): Buffer {
  const parts = Object.entries(name).flatMap(([attribute, value]) =>
    value === undefined
      ? []
      : der(
          TAG.set,
          sequence(
            objectIdentifier(ATTRIBUTES[attribute as keyof typeof ATTRIBUTES]),
            der(TAG.utf8String, Buffer.from(value)),
          ),
        ),
  );
  return sequence(...parts);
}

/** Key usages: bits of the first byte, and how many of the last bits are unused. */
const KEY_USAGE = {
  digitalSignature: bitString(Buffer.of(0b1000_0000), 7),
  // With keyCertSign and cRLSign.
  authority: bitString(Buffer.of(0b1000_0110), 1),
} as const;

const EXTENDED_KEY_USAGE = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" } as const;

/** Returns the extension that says that the certificate is an authority's, or is not. */
export function basicConstraints(isAuthority: boolean): Buffer {
  return extension("2.5.29.19", sequence(...(isAuthority ? [der(TAG.boolean, Buffer.of(0xff))] : [])), true);
}

export function keyUsage(usage: "digitalSignature" | "authority"): Buffer {
  return extension("2.5.29.15", KEY_USAGE[usage], true);
}

export function extendedKeyUsage(usage: "server" | "client"): Buffer {
  return extension("2.5.29.37", sequence(objectIdentifier(EXTENDED_KEY_USAGE[usage])));
}

/** Returns the extension with the identifier of the own key. */
export function subjectKeyIdentifier(publicKey: Buffer): Buffer {
  return extension("2.5.29.14", der(TAG.octetString, keyIdentifier(publicKey)));
}

/** Returns the extension with the identifier of the issuer's key. */
export function authorityKeyIdentifier(publicKey: Buffer): Buffer {
  return extension("2.5.29.35", sequence(taggedBytes(0, keyIdentifier(publicKey))));
}

/** Returns the extension with DNS names and IP addresses. */
export function subjectAltName(hosts: readonly string[]): Buffer {
  const [dnsName, ipAddress] = [2, 7];
  const names = hosts.map((host) =>
    isIP(host) === 0 ? taggedBytes(dnsName, Buffer.from(host)) : taggedBytes(ipAddress, addressBytes(host)),
  );
  return extension("2.5.29.17", sequence(...names));
}

/** Returns the attribute of a signing request that asks for these extensions. */
export function extensionRequest(...extensions: readonly Buffer[]): Buffer {
  return sequence(objectIdentifier("1.2.840.113549.1.9.14"), der(TAG.set, sequence(...extensions)));
}

/** What a certificate says, without its signature. */
export interface CertificateContent {
  readonly serial: Uint8Array;
  readonly signature: Buffer;
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Buffer;
  readonly extensions: readonly Buffer[];
}

/** Returns the part of a certificate that is signed. */
export function certificateContent(content: CertificateContent): Buffer {
  const { serial, signature, issuer, subject, notBefore, notAfter, publicKey, extensions } = content;
  const version3 = tagged(0, der(TAG.integer, Buffer.of(2)));
  const validity = sequence(time(notBefore), time(notAfter));
  const number = der(TAG.integer, serial);
  return sequence(
    version3,
    number,
    signature,
    issuer,
    validity,
    subject,
    publicKey,
    tagged(3, sequence(...extensions)),
  );
}

/** Returns the part of a signing request that is signed. */
export function requestContent(subject: Buffer, publicKey: Buffer, attributes: readonly Buffer[]): Buffer {
  return sequence(der(TAG.integer, Buffer.of(0)), subject, publicKey, tagged(0, ...attributes));
}

/** Returns the subject of a certificate, and its public key, as they are written there. */
export function subjectOf(certificate: Buffer): { readonly name: Buffer; readonly publicKey: Buffer } {
  const [, , , , , name, publicKey] = partsOf(partsOf(certificate)[0]?.bytes ?? Buffer.alloc(0));
  if (name === undefined || publicKey === undefined) throw new Error("the certificate has no subject");
  return { name: name.bytes, publicKey: publicKey.bytes };
}

/** Returns the parts of the sequence that begins in `bytes`. Throws if there is something else. */
export function partsOf(bytes: Buffer): Value[] {
  const [value, ...others] = readAll(bytes);
  if (value?.tag !== TAG.sequence || others.length > 0) throw new Error("this is no sequence");
  return readAll(value.content);
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  const critical = isCritical ? [der(TAG.boolean, Buffer.of(0xff))] : [];
  return sequence(objectIdentifier(id), ...critical, der(TAG.octetString, value));
}

/** Returns the SHA-1 digest of a public key's bits (RFC 5280, 4.2.1.2), as other authorities do. */
function keyIdentifier(publicKey: Buffer): Buffer {
  const [, bits] = partsOf(publicKey);
  if (bits === undefined) throw new Error("the public key has no bits");
  return createHash("sha1").update(bits.content.subarray(1)).digest();
}

const IPV6_GROUPS = 8;

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  // URLs have IPv6 addresses in one form, without dotted parts.
  const [head = [], tail = []] = new URL(`https://[${address}]`).hostname
    .slice(1, -1)
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(IPV6_GROUPS - head.length - tail.length).fill("0");
  const groups = [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16));
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}
