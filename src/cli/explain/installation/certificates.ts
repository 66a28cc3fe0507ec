import { timestamp } from "../../../api/kubernetes.ts";
import { age } from "../../../api/wording.ts";
import { certificatesOf } from "../../../certificates/bundle.ts";
import { expiresAt, renewalReason } from "../../../certificates/validity.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

/** Judges a certificate that its keeper renews at two thirds of its life. `now` is epoch ms. */
export function certificateFinding(
  subject: string,
  certificate: string,
  { now, remedy, authority }: { readonly now: number; readonly remedy: string; readonly authority?: string },
): Finding {
  const ends = expiresAt(certificate);
  if (ends === undefined) return fail(`${subject} cannot be read`, remedy);
  if (ends <= now) return fail(`${subject} expired ${age(now - ends)} ago, at ${timestamp(ends)}`, remedy);
  const until = `until ${timestamp(ends)}`;
  const reason = renewalReason(certificate, { now, ...(authority === undefined ? {} : { authority }) });
  if (reason === "early") return fail(`${subject} is not valid yet`, remedy);
  if (reason === "authority") return fail(`${subject} is not signed by the authority beside it`, remedy);
  if (reason === "expiring") return warn(`${subject} is valid ${until}, and should have been renewed by now`, remedy);
  return ok(`${subject} is valid ${until}`);
}

/** Judges a PEM bundle of authorities, of which one must be valid. */
export function authoritiesFinding(
  subject: string,
  bundle: string,
  { now, remedy }: { readonly now: number; readonly remedy: string },
): Finding {
  const certificates = certificatesOf(bundle);
  const ends = certificates.map((certificate) => expiresAt(certificate) ?? 0);
  const last = Math.max(...ends, 0);
  if (last === 0) return fail(`${subject} holds no certificate`, remedy);
  if (last > now && certificates.every((certificate) => renewalReason(certificate, { now }) === "early")) {
    return fail(`${subject} is not valid yet: it was issued by a clock that was ahead`, remedy);
  }
  return last <= now
    ? fail(`${subject} expired at ${timestamp(last)}`, remedy)
    : ok(`${subject} is valid until ${timestamp(last)}`);
}

/** Judges a token that its keeper renews at half of its life. Times are epoch ms. */
export function tokenFinding(
  subject: string,
  { issuedAt, expiresAt: ends }: { readonly issuedAt: number; readonly expiresAt: number },
  { now, remedy }: { readonly now: number; readonly remedy: string },
): Finding {
  if (ends <= now) return fail(`${subject} expired ${age(now - ends)} ago, at ${timestamp(ends)}`, remedy);
  const spent = (now - issuedAt) / (ends - issuedAt);
  return spent > TOKEN_OVERDUE
    ? warn(`${subject} ends at ${timestamp(ends)}, and should have been renewed by now`, remedy)
    : ok(`${subject} is valid until ${timestamp(ends)}`);
}

// Renewal is due at half of a token's life; a member that was away may be late.
const TOKEN_OVERDUE = 0.75;
