import type { Cluster } from "../../api/cluster.ts";
import { joinCommandOf } from "../../api/join-command.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { secrets } from "../../kube/resources.ts";
import { readable } from "../shared/reading.ts";
import type { Trouble } from "./model.ts";

/** A member's credentials on the host, as far as the metadata of their Secret tells. */
export interface MemberCredentials {
  /** Name of the Secret, in Legation's namespace. */
  readonly secret: string;
  /** `renewed`: Legation records when the token ends. `awaited`: the agent brings them. `hidden`: the user may not read the Secret. */
  readonly state: "renewed" | "unrecorded" | "awaited" | "missing" | "hidden";
  /** When the token ends; RFC 3339. */
  readonly expires?: string;
  /** When the Secret got this token; RFC 3339. */
  readonly since?: string;
}

// API servers grant no token for less than ten minutes.
const LEAST_LIFE_MS = 60_000;

/** Reads what the host records of a member's credentials, and never these themselves. Rejects with KubeError. */
export async function readCredentials(
  host: ClusterClient,
  cluster: Stored<Cluster>,
  signal: AbortSignal,
): Promise<MemberCredentials> {
  const { name } = cluster.spec.credentialsSecret;
  const options = { namespace: SYSTEM_NAMESPACE, fieldSelector: `metadata.name=${name}`, metadataOnly: true, signal };
  const found = await readable(host.list(secrets, options));
  return found === undefined ? { secret: name, state: "hidden" } : credentialsOf(cluster, found.items[0]);
}

/** Returns what the metadata of a Secret tells of a member's credentials. */
export function credentialsOf(cluster: Stored<Cluster>, found: Stored<KubeObject> | undefined): MemberCredentials {
  const { agent, credentialsSecret } = cluster.spec;
  const secret = credentialsSecret.name;
  if (found === undefined) return { secret, state: "missing" };
  const expires = found.metadata.annotations?.[TOKEN_EXPIRES_ANNOTATION] ?? "";
  if (Number.isNaN(Date.parse(expires))) return { secret, state: "unrecorded" };
  // Who writes a token writes this annotation with it.
  const writers = (found.metadata.managedFields ?? []).filter(({ fieldsV1 }) =>
    JSON.stringify(fieldsV1 ?? {}).includes(TOKEN_EXPIRES_ANNOTATION),
  );
  const since = writers
    .flatMap(({ time }) => time ?? [])
    .sort()
    .at(-1);
  // A join with an agent records its own time, until the agent brings a token.
  const isAwaited = agent !== undefined && Date.parse(expires) - Date.parse(since ?? "") < LEAST_LIFE_MS;
  if (isAwaited) return { secret, state: "awaited" };
  return { secret, state: "renewed", expires, ...(since === undefined ? {} : { since }) };
}

/**
 * Returns the troubles of a member whose token, or whose agent's certificate, has ended: an agent gets no other certificate by one that
 * has. `now`: epoch ms.
 */
export function credentialsTroubles(cluster: Stored<Cluster>, { expires }: MemberCredentials, now: number): Trouble[] {
  const { name } = cluster.metadata;
  const { agent } = cluster.spec;
  const join = `\`${joinCommandOf(cluster)}\``;
  const ended = [
    {
      since: agent && cluster.status?.agent?.certificateExpires,
      what: `the certificate of the agent of ${name} has ended, so the agent cannot connect`,
      remedy: `${join} lets it have another`,
    },
    {
      since: expires,
      what: `this cluster's token for ${name} has ended`,
      remedy: agent === undefined ? `${join} makes another` : "its agent brings another when it connects",
    },
  ];
  return ended.flatMap(({ since = "", ...said }) => (Date.parse(since) <= now ? [{ ...said, since }] : []));
}
