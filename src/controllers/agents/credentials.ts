import { createHash, timingSafeEqual } from "node:crypto";
import { AGENT_KEY_ANNOTATION, AGENT_TOKEN_ANNOTATION, AGENT_TOKEN_EXPIRES_ANNOTATION } from "../../api/keys.ts";
import type { Secret } from "../../api/kubernetes.ts";

/** SHA-256 in hex. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Returns why a token gives no certificate. The agent that used it may use it again: it may have lost the answer. `wall`: epoch ms. */
export function tokenProblem(
  secret: Secret | undefined,
  { token, key }: { readonly token: string; readonly key?: string | undefined },
  wall: number,
): string | undefined {
  const annotations = secret?.metadata?.annotations ?? {};
  const expected = annotations[AGENT_TOKEN_ANNOTATION];
  if (expected === undefined || !isEqual(expected, sha256(token))) return "the token is not valid";
  if (!(Date.parse(annotations[AGENT_TOKEN_EXPIRES_ANNOTATION] ?? "") > wall)) return "the token has expired";
  const usedBy = annotations[AGENT_KEY_ANNOTATION];
  return usedBy === undefined || key === undefined || usedBy === sha256(key)
    ? undefined
    : "another agent has used the token";
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
