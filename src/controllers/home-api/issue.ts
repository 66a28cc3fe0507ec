import { z } from "zod";
import { HOME_API_LABEL, HOME_API_LABEL_VALUE, RENEW_AT_ANNOTATION } from "../../api/keys.ts";
import { type Pod, type Secret, type Stored, secretData } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { serviceAccounts } from "../../kube/resources.ts";
import { type HostIdentity, marksOf } from "../../pods/delegate.ts";
import { apiSecretName, CA_KEY, type WantedToken, wantedTokens } from "../../pods/home-api.ts";

const answer = z.object({
  spec: z.object({ expirationSeconds: z.number() }),
  status: z.object({ token: z.string(), expirationTimestamp: z.iso.datetime() }),
});

// An authority without tokens does not expire.
const AUTHORITY_LIFETIME_MS = 24 * 60 * 60_000;

export interface Issued {
  readonly data: Record<string, string>;
  /** Expiry of the first token by the host's clock; epoch ms. */
  readonly expiresAt: number;
  readonly lifetimeMs: number;
}

/** The API server binds the tokens to the pod, and accepts none after it. `now` is epoch ms. */
export async function issueTokens(
  host: ClusterClient,
  proxy: Stored<Pod>,
  authority: string | undefined,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<Issued> {
  const issued = await Promise.all(
    wantedTokens(proxy).map(async (wanted) => ({
      key: wanted.key,
      ...(await requestToken(host, proxy, wanted, signal)),
    })),
  );
  const ends = issued.map(({ expirationTimestamp }) => Date.parse(expirationTimestamp));
  const lifetimes = issued.map(({ expirationSeconds }) => expirationSeconds * 1000);
  return {
    data: secretData({
      ...(authority === undefined ? {} : { [CA_KEY]: authority }),
      ...Object.fromEntries(issued.map(({ key, token }) => [key, token])),
    }),
    expiresAt: issued.length === 0 ? now + AUTHORITY_LIFETIME_MS : Math.min(...ends),
    lifetimeMs: issued.length === 0 ? AUTHORITY_LIFETIME_MS : Math.min(...lifetimes),
  };
}

async function requestToken(
  host: ClusterClient,
  { metadata: { namespace = "", name, uid }, spec }: Stored<Pod>,
  { audience, expirationSeconds }: WantedToken,
  signal: AbortSignal,
): Promise<{ readonly token: string; readonly expirationTimestamp: string; readonly expirationSeconds: number }> {
  const body = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: {
      audiences: audience === undefined ? [] : [audience],
      expirationSeconds,
      boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
    },
  };
  const ref = { namespace, name: spec?.serviceAccountName ?? "default" };
  const { spec: given, status } = answer.parse(
    await host.createSubresource(serviceAccounts, ref, "token", body, { signal }),
  );
  return { ...status, expirationSeconds: given.expirationSeconds };
}

export function apiSecret(
  proxy: Stored<Pod>,
  host: HostIdentity,
  { delegateUid, data, renewAt }: { readonly delegateUid: string; readonly renewAt: string } & Pick<Issued, "data">,
): Secret {
  const { namespace = "", name, uid } = proxy.metadata;
  const marks = marksOf({ namespace, name, uid }, host);
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: apiSecretName(uid),
      namespace,
      labels: { ...marks.labels, [HOME_API_LABEL]: HOME_API_LABEL_VALUE },
      annotations: { ...marks.annotations, [RENEW_AT_ANNOTATION]: renewAt },
      // The member's garbage collector deletes the Secret with the delegate.
      ownerReferences: [{ apiVersion: "v1", kind: "Pod", name, uid: delegateUid }],
    },
    type: "Opaque",
    data,
  };
}
