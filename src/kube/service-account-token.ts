import { parse } from "yaml";
import { z } from "zod";
import type { ClusterClient } from "./client.ts";
import { jsonOrNothing } from "./json.ts";
import type { ObjectRef, TokenClaims } from "./objects.ts";
import { serviceAccounts } from "./resources.ts";

const kubeconfig = z.looseObject({
  users: z.tuple([z.looseObject({ user: z.looseObject({ token: z.string() }) })]),
});
const claims = z.looseObject({ sub: z.string(), iat: z.number(), exp: z.number() });

/** Returns undefined for a kubeconfig without exactly one token. The signature is not checked. */
export function tokenClaims(text: string): TokenClaims | undefined {
  const token = readToken(text);
  const payload = token?.split(".")[1];
  if (payload === undefined) return undefined;
  const parsed = claims.safeParse(jsonOrNothing(Buffer.from(payload, "base64url").toString("utf8")));
  if (!parsed.success) return undefined;
  const { sub, iat, exp } = parsed.data;
  const [system, kind, namespace, name] = sub.split(":");
  if (system !== "system" || kind !== "serviceaccount" || namespace === undefined || name === undefined)
    return undefined;
  return { namespace, name, issuedAt: iat * 1000, expiresAt: exp * 1000 };
}

export function withToken(text: string, token: string): string {
  const earlier = readToken(text);
  // The token occurs once, so the rest of the operator's text stays.
  return earlier === undefined ? text : text.replaceAll(earlier, token);
}

// Thirty days, the usual maximum of API servers, which may grant less.
const TOKEN_SECONDS = 720 * 3600;

const tokenAnswer = z.looseObject({ status: z.looseObject({ token: z.string(), expirationTimestamp: z.string() }) });

/** `expires` is in RFC 3339. */
export async function requestToken(
  member: ClusterClient,
  account: ObjectRef,
  signal: AbortSignal,
): Promise<{ readonly token: string; readonly expires: string }> {
  const spec = { expirationSeconds: TOKEN_SECONDS };
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
  const answer = await member.createSubresource(serviceAccounts, account, "token", body, { signal });
  const { token, expirationTimestamp } = tokenAnswer.parse(answer).status;
  return { token, expires: expirationTimestamp };
}

function readToken(text: string): string | undefined {
  let value: unknown;
  try {
    // Warnings would quote the text, which holds a secret.
    value = parse(text, { logLevel: "error" });
  } catch {
    return undefined;
  }
  const parsed = kubeconfig.safeParse(value);
  return parsed.success ? parsed.data.users[0].user.token : undefined;
}
