import { expiresAt } from "./validity.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----(?:\r?\n)?/g;
// Each CA change leaves one certificate behind. The limit keeps frequent changes from growing the bundle forever.
const MOST_OTHERS = 10;

/** Returns the certificates of a PEM bundle, each with its newline. Drops any other text. */
export function certificatesOf(bundle: string): string[] {
  return (bundle.match(CERTIFICATE) ?? []).map((pem) => (pem.endsWith("\n") ? pem : `${pem}\n`));
}

/** Returns the certificates that have not expired; `now` is epoch ms. */
export function unended(certificates: readonly string[], now: number): string[] {
  return certificates.filter((certificate) => (expiresAt(certificate) ?? 0) > now);
}

/**
 * Adds `own` to the bundle `trusted`, and keeps the newest unexpired others. A bundle that contains `own` keeps its order, so
 * that replicas with different CAs converge after one write each.
 */
export function addToBundle(trusted: string, own: string, now: number): string {
  const ours = certificatesOf(own);
  const found = certificatesOf(trusted);
  const others = unended(found, now)
    .filter((certificate) => !ours.includes(certificate))
    .slice(0, MOST_OTHERS);
  const wanted = [...ours, ...others];
  const complete = ours.every((certificate) => found.includes(certificate));
  return (complete ? found.filter((certificate) => wanted.includes(certificate)) : wanted).join("");
}
