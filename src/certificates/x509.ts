import { createHash } from "node:crypto";
import { isIP, isIPv6 } from "node:net";
import { CertificationRequestInfo } from "@peculiar/asn1-csr";
import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import {
  AlgorithmIdentifier,
  Attribute,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  type SubjectPublicKeyInfo,
} from "@peculiar/asn1-x509";

/** The parts of certificates and signing requests (RFC 5280, RFC 2986) that are in use here. */

const ATTRIBUTES = { commonName: "2.5.4.3", organization: "2.5.4.10", organizationalUnit: "2.5.4.11" } as const;
const EXTENSION_REQUEST = "1.2.840.113549.1.9.14";

/** A distinguished name, its attributes in order. */
export type DistinguishedName = { readonly [Attribute in keyof typeof ATTRIBUTES]?: string | undefined };

/** Signature algorithms with SHA-256, by the type of the key. */
export const SIGNATURES: Readonly<Record<"rsa" | "ec", AlgorithmIdentifier>> = {
  // RSA has parameters, which are NULL (RFC 4055); ECDSA has none (RFC 5758).
  rsa: new AlgorithmIdentifier({ algorithm: "1.2.840.113549.1.1.11", parameters: null }),
  ec: new AlgorithmIdentifier({ algorithm: "1.2.840.10045.4.3.2" }),
};

export function distinguishedName(name: DistinguishedName): Name {
  const attributes: [keyof typeof ATTRIBUTES, string | undefined][] = [
    ["commonName", name.commonName],
    ["organizationalUnit", name.organizationalUnit],
    ["organization", name.organization],
  ];
  return new Name(
    attributes.flatMap(([attribute, utf8String]) => {
      if (utf8String === undefined) return [];
      const value = new AttributeValue({ utf8String });
      return [new RelativeDistinguishedName([new AttributeTypeAndValue({ type: ATTRIBUTES[attribute], value })])];
    }),
  );
}

const KEY_USAGES = {
  digitalSignature: KeyUsageFlags.digitalSignature,
  authority: KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign,
} as const;
const EXTENDED_KEY_USAGES = { server: id_kp_serverAuth, client: id_kp_clientAuth } as const;

/** Returns the extension that says that the certificate is an authority's, or is not. */
export function basicConstraints(cA: boolean): Extension {
  return extension(id_ce_basicConstraints, new BasicConstraints({ cA }), true);
}

export function keyUsage(usage: "digitalSignature" | "authority"): Extension {
  return extension(id_ce_keyUsage, new KeyUsage(KEY_USAGES[usage]), true);
}

export function extendedKeyUsage(usage: "server" | "client"): Extension {
  return extension(id_ce_extKeyUsage, new ExtendedKeyUsage([EXTENDED_KEY_USAGES[usage]]));
}

/** Returns the extension with the identifier of the own key. */
export function subjectKeyIdentifier(key: SubjectPublicKeyInfo): Extension {
  return extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdentifier(key)));
}

export function authorityKeyIdentifier(key: SubjectPublicKeyInfo): Extension {
  const identifier = new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(keyIdentifier(key)) });
  return extension(id_ce_authorityKeyIdentifier, identifier);
}

/** Returns the extension with DNS names and IP addresses. */
export function subjectAltName(hosts: readonly string[]): Extension {
  const names = hosts.map((host) => {
    if (isIP(host) === 0) return new GeneralName({ dNSName: host });
    // URLs have IPv6 addresses without dotted parts, which the library does not read.
    const iPAddress = isIPv6(host) ? new URL(`https://[${host}]`).hostname.slice(1, -1) : host;
    return new GeneralName({ iPAddress });
  });
  return extension(id_ce_subjectAltName, new SubjectAlternativeName(names));
}

/** Returns the part of a signing request that is signed. */
export function requestInfo(
  subject: DistinguishedName,
  subjectPKInfo: SubjectPublicKeyInfo,
  extensions: readonly Extension[],
): CertificationRequestInfo {
  const info = new CertificationRequestInfo({ subject: distinguishedName(subject), subjectPKInfo });
  if (extensions.length > 0) {
    const values = [AsnConvert.serialize(new Extensions([...extensions]))];
    info.attributes.push(new Attribute({ type: EXTENSION_REQUEST, values }));
  }
  return info;
}

function extension(extnID: string, value: object, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

/** Returns the SHA-1 digest of a public key's bits (RFC 5280, 4.2.1.2), as other authorities do. */
function keyIdentifier({ subjectPublicKey }: SubjectPublicKeyInfo): Buffer {
  return createHash("sha1").update(Buffer.from(subjectPublicKey)).digest();
}
