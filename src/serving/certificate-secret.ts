import { INSTALLED_LABELS } from "../api/keys.ts";
import { type Secret, secretData, secretText } from "../api/kubernetes.ts";
import { certificatesOf, unended } from "../certificates/bundle.ts";
import { type Authority, type Certificate, issueAuthority, issueServing } from "../certificates/issue.ts";
import { DAY_MS, hostsOf, renewalReason } from "../certificates/validity.ts";
import type { ClusterClient } from "../kube/client.ts";
import { secrets } from "../kube/resources.ts";
import { retryOnConflict } from "../kube/retry.ts";

/** The Secret that all replicas of a server share. */
export interface CertificateSecret {
  readonly namespace: string;
  readonly name: string;
  /** Name of the authority that signs the certificate. */
  readonly authority: string;
}

export interface OwnMaterial {
  readonly authority: Authority;
  readonly certificate: Certificate;
  /** Earlier authorities that have not expired, PEM: replicas may still serve under them. */
  readonly earlierAuthorities: string;
}

export interface OwnCertificateOptions {
  readonly secret: CertificateSecret;
  readonly hosts: readonly string[];
  /** Epoch ms. */
  readonly now: number;
  /** The served certificate: restored if the Secret is gone, since API servers trust it. */
  readonly served: OwnMaterial | undefined;
  readonly signal: AbortSignal;
}

const AUTHORITY_LIFETIME_MS = 10 * 365 * DAY_MS;
const SERVING_LIFETIME_MS = 90 * DAY_MS;

/**
 * Returns the certificate of the Secret, issued or renewed when due. The first writer wins, others read it. A Secret
 * without a part gets a new authority. Rejects with KubeError.
 */
export function ensureOwnMaterial(client: ClusterClient, options: OwnCertificateOptions): Promise<OwnMaterial> {
  const { signal, served, secret } = options;
  const ref = { namespace: secret.namespace, name: secret.name };
  return retryOnConflict(async () => {
    const found = await client.find(secrets, ref, { signal });
    const stored = found === undefined ? undefined : read(found);
    if (stored !== undefined && isCurrent(stored, options)) return stored;
    const isMissing = found === undefined;
    const keepsAuthority = isMissing || stored !== undefined;
    const putBack = isMissing && served !== undefined && isCurrent(served, options);
    const wanted = putBack ? served : await renew(stored ?? served, { ...options, keepsAuthority });
    if (found === undefined) await client.create(secrets, toSecret(ref, wanted), { signal });
    else await client.replace(secrets, { ...found, data: dataOf(wanted) }, { signal });
    return wanted;
  });
}

/** Returns all authorities that API servers must trust, PEM. */
export function caBundleOf({ authority, earlierAuthorities }: OwnMaterial): string {
  return authority.cert + earlierAuthorities;
}

interface Requirements {
  readonly secret: CertificateSecret;
  readonly hosts: readonly string[];
  readonly now: number;
}

function isCurrent({ authority, certificate }: OwnMaterial, { hosts, now }: Omit<Requirements, "secret">): boolean {
  if (renewalReason(authority.cert, { now }) !== undefined) return false;
  return renewalReason(certificate.cert, { now, hosts, authority: authority.cert }) === undefined;
}

async function renew(
  previous: OwnMaterial | undefined,
  { secret, hosts, now, keepsAuthority }: Requirements & { readonly keepsAuthority: boolean },
): Promise<OwnMaterial> {
  const kept = keepsAuthority ? previous?.authority : undefined;
  const isGood = kept !== undefined && renewalReason(kept.cert, { now }) === undefined;
  const authority = isGood ? kept : await issueAuthority(secret.authority, { now, lifetimeMs: AUTHORITY_LIFETIME_MS });
  // Keeps names of other replicas: dropping them would renew against each other for ever.
  const all = new Set([...hosts, ...(previous === undefined ? [] : hostsOf(previous.certificate.cert))]);
  const certificate = await issueServing(authority, [...all], { now, lifetimeMs: SERVING_LIFETIME_MS });
  const earlier =
    previous === undefined ? [] : [previous.authority.cert, ...certificatesOf(previous.earlierAuthorities)];
  const others = unended(earlier, now).filter((cert) => cert !== authority.cert);
  return { authority, certificate, earlierAuthorities: others.join("") };
}

const FIELDS = ["tls.crt", "tls.key", "ca.crt", "ca.key"] as const;

function read(secret: Secret): OwnMaterial | undefined {
  const [cert, key, caCert, caKey] = FIELDS.map((field) => secretText(secret, field));
  if (cert === undefined || key === undefined || caCert === undefined || caKey === undefined) return undefined;
  return {
    certificate: { cert, key },
    authority: { cert: caCert, key: caKey },
    earlierAuthorities: secretText(secret, "ca-earlier.crt") ?? "",
  };
}

function dataOf({ authority, certificate, earlierAuthorities }: OwnMaterial): Record<string, string> {
  return secretData({
    "tls.crt": certificate.cert,
    "tls.key": certificate.key,
    "ca.crt": authority.cert,
    "ca.key": authority.key,
    "ca-earlier.crt": earlierAuthorities,
  });
}

function toSecret(ref: Pick<CertificateSecret, "namespace" | "name">, material: OwnMaterial): Secret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...ref, labels: { ...INSTALLED_LABELS } },
    type: "kubernetes.io/tls",
    data: dataOf(material),
  };
}
