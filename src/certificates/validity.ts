import { X509Certificate } from "node:crypto";

/** Why a certificate must be replaced now; undefined while it is good. */
export type RenewalReason = "unreadable" | "early" | "expiring" | "hosts" | "authority";

/**
 * Whether a serving certificate must be replaced: not valid yet, past two thirds of its life, not for all of these hosts, or
 * not signed by this authority. `now` is epoch ms. One that is not valid for longer than those two thirds stays: who issued
 * it would replace what is issued now at once, by that other clock, and both would do so for ever.
 */
export function renewalReason(
  certificate: string,
  options: { readonly now: number; readonly hosts?: readonly string[]; readonly authority?: string },
): RenewalReason | undefined {
  const parsed = parse(certificate);
  if (parsed === undefined) return "unreadable";
  const from = parsed.validFromDate.getTime();
  const to = parsed.validToDate.getTime();
  // Ours begin a day before they are issued: whoever issued this one had a clock that was further ahead.
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

/** When the certificate ends, epoch ms; undefined when it cannot be read. */
export function expiresAt(certificate: string): number | undefined {
  return parse(certificate)?.validToDate.getTime();
}

/** The DNS names and addresses that a certificate is for; none when it cannot be read. */
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
