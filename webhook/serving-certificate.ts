import { SYSTEM_NAMESPACE } from "../src/api/keys.ts";
import type { Secret, Stored } from "../src/api/kubernetes.ts";
import { type Authority, type Certificate, issueAuthority, issueServing } from "../src/certificates/issue.ts";
import { expiresAt, renewalReason } from "../src/certificates/validity.ts";
import type { ClusterClient } from "../src/kube/client.ts";
import { isKubeError } from "../src/kube/errors.ts";
import { secrets } from "../src/kube/resources.ts";

/** Secret that all replicas of the webhook share. */
export const CERTIFICATE_SECRET = "legation-webhook-certificate";

/** What a replica serves with, and what the API server must trust. */
export interface ServingMaterial {
  readonly certificate: Certificate;
  /** PEM of every authority that a replica may still serve under. */
  readonly caBundle: string;
}

const DAY_MS = 24 * 60 * 60_000;
const AUTHORITY_LIFETIME_MS = 10 * 365 * DAY_MS;
const SERVING_LIFETIME_MS = 90 * DAY_MS;
// Replicas that start together find each other's Secret after one lost race.
const ATTEMPTS = 5;

/**
 * The serving certificate of the Secret, made or renewed when it is due. Replicas share it: whoever writes first wins,
 * and the others read what was written. An authority that is renewed stays in the bundle until it ends.
 */
export async function ensureServingMaterial(
  client: ClusterClient,
  options: { readonly hosts: readonly string[]; readonly now: number; readonly signal?: AbortSignal },
): Promise<ServingMaterial> {
  const request = options.signal === undefined ? {} : { signal: options.signal };
  const ref = { namespace: SYSTEM_NAMESPACE, name: CERTIFICATE_SECRET };
  for (let attempt = 1; ; attempt++) {
    const found = await client.find(secrets, ref, request);
    const material = found === undefined ? undefined : read(found);
    if (material !== undefined && isCurrent(material, options)) return serving(material);
    const renewed = await renew(material, options);
    try {
      const secret = toSecret(renewed, found);
      if (found === undefined) await client.create(secrets, secret, request);
      else await client.replace(secrets, secret, request);
      return serving(renewed);
    } catch (error) {
      if (!isKubeError(error, "AlreadyExists", "Conflict") || attempt === ATTEMPTS) throw error;
    }
  }
}

/** What the Secret holds. */
interface Material {
  readonly authority: Authority;
  readonly certificate: Certificate;
  /** Authorities that were renewed and have not ended, PEM. */
  readonly earlierAuthorities: string;
}

function serving({ authority, certificate, earlierAuthorities }: Material): ServingMaterial {
  return { certificate, caBundle: authority.cert + earlierAuthorities };
}

function isCurrent(
  { authority, certificate }: Material,
  { hosts, now }: { readonly hosts: readonly string[]; readonly now: number },
): boolean {
  if (renewalReason(authority.cert, { now }) !== undefined) return false;
  return renewalReason(certificate.cert, { now, hosts, authority: authority.cert }) === undefined;
}

async function renew(
  previous: Material | undefined,
  { hosts, now }: { readonly hosts: readonly string[]; readonly now: number },
): Promise<Material> {
  const kept =
    previous !== undefined && renewalReason(previous.authority.cert, { now }) === undefined ? previous : undefined;
  const authority =
    kept?.authority ?? (await issueAuthority("legation-webhook-ca", { now, lifetimeMs: AUTHORITY_LIFETIME_MS }));
  const certificate = await issueServing(authority, hosts, { now, lifetimeMs: SERVING_LIFETIME_MS });
  const earlier = previous === undefined ? [] : [previous.authority.cert, ...split(previous.earlierAuthorities)];
  const valid = earlier.filter((cert) => cert !== authority.cert && (expiresAt(cert) ?? 0) > now);
  return { authority, certificate, earlierAuthorities: valid.join("") };
}

const FIELDS = ["tls.crt", "tls.key", "ca.crt", "ca.key"] as const;

function read({ data = {} }: Secret): Material | undefined {
  const [cert, key, caCert, caKey] = FIELDS.map((field) => decode(data[field]));
  if (cert === undefined || key === undefined || caCert === undefined || caKey === undefined) return undefined;
  return {
    certificate: { cert, key },
    authority: { cert: caCert, key: caKey },
    earlierAuthorities: decode(data["ca-earlier.crt"]) ?? "",
  };
}

function toSecret({ authority, certificate, earlierAuthorities }: Material, found: Stored<Secret> | undefined): Secret {
  const data: Record<string, string> = {
    "tls.crt": encode(certificate.cert),
    "tls.key": encode(certificate.key),
    "ca.crt": encode(authority.cert),
    "ca.key": encode(authority.key),
    "ca-earlier.crt": encode(earlierAuthorities),
  };
  if (found !== undefined) return { ...found, data };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      namespace: SYSTEM_NAMESPACE,
      name: CERTIFICATE_SECRET,
      labels: { "app.kubernetes.io/managed-by": "legation" },
    },
    type: "kubernetes.io/tls",
    data,
  };
}

function split(pems: string): string[] {
  return pems.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\s*/g) ?? [];
}

function decode(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text, "base64").toString("utf8");
}

function encode(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}
