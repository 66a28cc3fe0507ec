import { expiresAt } from "./validity.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----(?:\r?\n)?/g;
// A change leaves one behind. Whoever changes more often than they end must not make a bundle grow for ever.
const MOST_OTHERS = 10;

/** The certificates of a bundle, PEM, each with the end of its line; what is beside them is left out. */
export function certificatesOf(bundle: string): string[] {
  return (bundle.match(CERTIFICATE) ?? []).map((pem) => (pem.endsWith("\n") ? pem : `${pem}\n`));
}

/** Those that have not ended; `now` is epoch ms. */
export function unended(certificates: readonly string[], now: number): string[] {
  return certificates.filter((certificate) => (expiresAt(certificate) ?? 0) > now);
}

/**
 * The bundle that trusts `own`, and of what `trusted` has beside it the newest that have not ended. One that does already
 * comes back in its order: several who have different ones of their own agree after one write each.
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
