import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Certificate, issueSelfSigned } from "../../certificates/issue.ts";
import { checkPair } from "../../certificates/pair.ts";
import { renewalReason } from "../../certificates/validity.ts";
import { Failure } from "../shared/failure.ts";

/** Files of a serving certificate, PEM. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

// Browsers are asked to trust it again after two thirds of this time.
const LIFETIME_MS = 400 * 86_400_000;

/** Returns the certificate of the files, or else a self-signed one, which browsers warn of. Rejects with `Failure`. */
export async function servingCertificate(
  files: CertificateFiles | undefined,
  hosts: readonly string[],
  now: number,
): Promise<Certificate> {
  if (files === undefined) return issueSelfSigned([...hosts, "localhost"], { now, lifetimeMs: LIFETIME_MS });
  try {
    const [cert, key] = await Promise.all([readFile(files.cert, "utf8"), readFile(files.key, "utf8")]);
    // The files of a Secret may be of two versions while it is swapped.
    checkPair({ cert, key });
    return { cert, key };
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    const remedy = "name PEM files of a certificate and its key";
    throw new Failure("usage", { object: "--tls-cert-file, --tls-key-file", problem, remedy, cause });
  }
}

/** Returns the certificate to serve in place of `served`. Undefined: it stays. Rejects with `Failure`. */
export async function nextCertificate(
  served: Certificate,
  files: CertificateFiles | undefined,
  { hosts, now }: { readonly hosts: readonly string[]; readonly now: number },
): Promise<Certificate | undefined> {
  if (files === undefined && renewalReason(served.cert, { now }) === undefined) return undefined;
  const next = await servingCertificate(files, hosts, now);
  return next.cert === served.cert && next.key === served.key ? undefined : next;
}

/** Returns the SHA-256 fingerprint, as browsers show it. */
export function fingerprintOf({ cert }: Certificate): string {
  return new X509Certificate(cert).fingerprint256;
}
