import { X509Certificate } from "node:crypto";

export const DAY_MS: number = 24 * 60 * 60_000;
/**
 * How much earlier than its issue a certificate is valid at most, in milliseconds. Tolerates clocks behind the issuer's, such as the
 * issuer's own once it is right again: an agent, for one, cannot ask for another certificate with one that is not valid yet.
 */
export const BACKDATE_MS: number = 30 * DAY_MS;

export type RenewalReason = "unreadable" | "early" | "expiring" | "hosts" | "authority";

/**
 * Returns why a serving certificate must be replaced: not valid yet, past two thirds of its life, not for all of these hosts,
 * or not signed by this CA. Undefined when it is good. `now` is epoch ms. A certificate that starts further in the future than
 * two thirds of its life stays: its issuer's clock would make both sides replace each other's certificates forever.
 */
export function renewalReason(
  certificate: string,
  options: { readonly now: number; readonly hosts?: readonly string[]; readonly authority?: string },
): RenewalReason | undefined {
  const parsed = parse(certificate);
  if (parsed === undefined) return "unreadable";
  const from = parsed.validFromDate.getTime();
  const to = parsed.validToDate.getTime();
  // Certificates are backdated, so the issuer's clock was further ahead than that.
  const renewedAfter = ((to - from) * 2) / 3;
  if (options.now < from && options.now > from - renewedAfter) return "early";
  if (options.now >= from + renewedAfter) return "expiring";
  const missing = options.hosts?.find((host) => !covers(parsed, host));
  if (missing !== undefined) return "hosts";
  if (options.authority !== undefined) {
    const authority = parse(options.authority);
    if (authority === undefined || !parsed.verify(authority.publicKey)) return "authority";
  }
  return undefined;
}

/** Returns when the certificate expires; epoch ms. Undefined when it cannot be read. */
export function expiresAt(certificate: string): number | undefined {
  return parse(certificate)?.validToDate.getTime();
}

/** Returns when this project issued the certificate, whose life is longer than its backdating; epoch ms. Undefined when it cannot be read. */
export function issuedAt(certificate: string): number | undefined {
  const from = parse(certificate)?.validFromDate.getTime();
  return from === undefined ? undefined : from + BACKDATE_MS;
}

/** Returns the DNS names and addresses of a certificate; none when it cannot be read. */
export function hostsOf(certificate: string): string[] {
  const names = parse(certificate)?.subjectAltName?.split(", ") ?? [];
  return names.flatMap((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1] ?? []);
}

function covers(certificate: X509Certificate, host: string): boolean {
  const address = /^[\d.]+$/.test(host) || host.includes(":");
  return (address ? certificate.checkIP(host) : certificate.checkHost(host, { wildcards: false })) !== undefined;
}

function parse(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
