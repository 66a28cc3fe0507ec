import type { Secret } from "./kubernetes.ts";

/** What a Secret has under a key, as text; undefined when there is no such Secret or key. */
export function secretText(secret: Secret | undefined, key: string): string | undefined {
  const encoded = secret?.data?.[key];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}
