import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Certificate, issueSelfSigned } from "../../certificates/issue.ts";
import { Failure } from "../shared/failure.ts";

/** Files of a serving certificate, PEM. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

// Longer than a pod lives between two updates.
const LIFETIME_MS = 400 * 86_400_000;

/** Returns the certificate of the files, or else a self-signed one, which browsers warn of. Rejects with `Failure`. */
export async function servingCertificate(
  files: CertificateFiles | undefined,
  hosts: readonly string[],
): Promise<Certificate> {
  if (files === undefined)
    return issueSelfSigned([...hosts, "localhost"], { now: Date.now(), lifetimeMs: LIFETIME_MS });
  try {
    const [cert, key] = await Promise.all([readFile(files.cert, "utf8"), readFile(files.key, "utf8")]);
    new X509Certificate(cert);
    return { cert, key };
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    const remedy = "name PEM files of a certificate and its key";
    throw new Failure("usage", { object: "--tls-cert-file, --tls-key-file", problem, remedy, cause });
  }
}

/** Returns the SHA-256 fingerprint, as browsers show it. */
export function fingerprintOf({ cert }: Certificate): string {
  return new X509Certificate(cert).fingerprint256;
}
