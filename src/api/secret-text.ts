import type { Secret } from "./kubernetes.ts";

/** Returns a key of a Secret as text. Undefined without the Secret or the key. */
export function secretText(secret: Secret | undefined, key: string): string | undefined {
  const encoded = secret?.data?.[key];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}
