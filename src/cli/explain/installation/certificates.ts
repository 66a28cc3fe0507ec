import { basename, dirname } from "node:path";
import { secretText, timestamp } from "../../../api/kubernetes.ts";
import { age } from "../../../api/wording.ts";
import { certificatesOf } from "../../../certificates/bundle.ts";
import { expiresAt, renewalReason } from "../../../certificates/validity.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { deployments, secrets } from "../../../kube/resources.ts";
import { readable } from "../../shared/reading.ts";
import { type Finding, fail, forbidden, ok, skip, warn } from "./finding.ts";

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

/** A part of Legation that serves by a certificate. */
interface Server {
  readonly namespace: string;
  /** Undefined where it runs outside the cluster. */
  readonly deployment: string | undefined;
  /** Name of the Secret of the certificate that it makes itself. */
  readonly ownSecret: string;
}

/**
 * Judges the certificate of a server, where it makes its own or its Deployment is given files, and reads the PEM of the authority beside
 * it. `remedy`: the step that has the server make another. Rejects with KubeError.
 */
export async function judgeServed(
  host: ClusterClient,
  what: string,
  { namespace, deployment, ownSecret }: Server,
  { now, remedy, signal }: { readonly now: number; readonly remedy: string; readonly signal: AbortSignal },
): Promise<{ readonly finding: Finding; readonly authority: string | undefined }> {
  const ref = { namespace, name: deployment ?? "" };
  const mounted = deployment === undefined ? undefined : await readable(mountedCertificate(host, ref, signal));
  const files = mounted ?? { secret: ownSecret, certificate: "tls.crt", authority: "ca.crt" };
  const { secret: name } = files;
  const none = skip(`${what}: no Secret has it, as with --tls-cert-file; no other place is known here`);
  if (name === undefined) return { finding: none, authority: undefined };
  const subject = `${what} (Secret ${namespace}/${name})`;
  const read = await readable(host.find(secrets, { namespace, name }, { signal }).then((found) => ({ found })));
  if (read === undefined) return { finding: forbidden(`${subject}: you may not read it`), authority: undefined };
  const [certificate, authority] = [files.certificate, files.authority].map((key) => secretText(read.found, key ?? ""));
  const source = `see what makes Secret ${namespace}/${name}`;
  if (certificate === undefined) {
    return { finding: mounted === undefined ? none : fail(`${subject} is missing`, source), authority };
  }
  // Another issuer's file may hold a chain, whose first certificate the authority has not signed.
  const judged = mounted === undefined ? { now, remedy, ...(authority && { authority }) } : { now, remedy: source };
  return { finding: certificateFinding(subject, certificate, judged), authority };
}

/** The certificate that a Deployment is given as files. */
interface MountedCertificate {
  /** Name of the Secret of the files. Undefined if another volume has them. */
  readonly secret: string | undefined;
  readonly certificate: string;
  /** Key of the authority that the webhook writes into its configurations. Undefined if it writes none. */
  readonly authority: string | undefined;
}

/** Reads where a Deployment's certificate is from. Resolves to undefined if it makes its own. Rejects with KubeError. */
async function mountedCertificate(
  host: ClusterClient,
  ref: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<MountedCertificate | undefined> {
  const pod = (await host.find(deployments, ref, { signal }))?.spec?.template.spec;
  const [container] = pod?.containers ?? [];
  const file = (name: string): string | undefined => container?.env?.find((each) => each.name === name)?.value;
  const certificate = file("LEGATION_TLS_CERT_FILE");
  if (certificate === undefined) return undefined;
  const mount = container?.volumeMounts?.find(({ mountPath }) => mountPath === dirname(certificate));
  const secret = pod?.volumes?.find(({ name }) => name === mount?.name)?.secret;
  const authority = file("LEGATION_CA_BUNDLE_FILE");
  return {
    secret: secret?.items === undefined ? secret?.secretName : undefined,
    certificate: basename(certificate),
    authority: authority === undefined ? undefined : basename(authority),
  };
}
