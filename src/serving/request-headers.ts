import { z } from "zod";
import { headerPairs } from "../kube/raw-headers.ts";
import type { User } from "./access-reviews.ts";

/** The headers in which the host's API server says whom a request is from, and the certificates that may say so. */
export interface RequestHeaders {
  /** Common names of the certificates; empty allows every name. */
  readonly allowedNames: readonly string[];
  /** Names of headers, in lower case. */
  readonly user: readonly string[];
  readonly uid: readonly string[];
  readonly group: readonly string[];
  readonly extraPrefixes: readonly string[];
}

const names = z.string().transform((text, context) => {
  try {
    return z.array(z.string()).parse(JSON.parse(text));
  } catch {
    context.addIssue({ code: "custom", message: "is not a JSON list of strings" });
    return z.NEVER;
  }
});

const published = z.object({
  "requestheader-allowed-names": names,
  "requestheader-username-headers": names,
  // API servers before 1.33 do not publish it.
  "requestheader-uid-headers": names.default([]),
  "requestheader-group-headers": names,
  "requestheader-extra-headers-prefix": names,
});

/** Reads the ConfigMap that every API server publishes. Undefined when the host has no aggregation. */
export function requestHeadersOf(data: Readonly<Record<string, string>>): RequestHeaders | undefined {
  const parsed = published.safeParse(data);
  if (!parsed.success) return undefined;
  const lower = (list: readonly string[]): string[] => list.map((name) => name.toLowerCase());
  return {
    allowedNames: parsed.data["requestheader-allowed-names"],
    user: lower(parsed.data["requestheader-username-headers"]),
    uid: lower(parsed.data["requestheader-uid-headers"]),
    group: lower(parsed.data["requestheader-group-headers"]),
    extraPrefixes: lower(parsed.data["requestheader-extra-headers-prefix"]),
  };
}

/** Reports whether a header of this name, in lower case, says whom a request is from. */
export function isIdentityHeader({ user, uid, group, extraPrefixes }: RequestHeaders, name: string): boolean {
  return (
    [user, uid, group].some((list) => list.includes(name)) || extraPrefixes.some((prefix) => name.startsWith(prefix))
  );
}

/**
 * Returns the user of a request whose client certificate was accepted. `rawHeaders`: names and values in turn, as Node.js has
 * them. Undefined without exactly one name: which of two counts would be a guess.
 */
export function userOf(rawHeaders: readonly string[], headers: RequestHeaders): User | undefined {
  // Bytes of UTF-8, which Node.js reads as Latin-1.
  const entries = [...headerPairs(rawHeaders)].map(
    ([header, value]) => [header, Buffer.from(value, "latin1").toString("utf8")] as const,
  );
  const values = (wanted: readonly string[]): string[] =>
    entries.filter(([header, value]) => wanted.includes(header) && value !== "").map(([, value]) => value);
  const [name, ...otherNames] = values(headers.user);
  const [uid, ...otherUids] = values(headers.uid);
  if (name === undefined || otherNames.length > 0 || otherUids.length > 0) return undefined;
  const extra = new Map<string, string[]>();
  for (const [header, value] of entries) {
    const prefix = headers.extraPrefixes.find((each) => header.startsWith(each));
    if (prefix === undefined) continue;
    const key = unescaped(header.slice(prefix.length));
    extra.set(key, [...(extra.get(key) ?? []), value]);
  }
  return {
    name,
    groups: [...new Set(values(headers.group))],
    ...(uid === undefined ? {} : { uid }),
    ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
}

/** Returns the key that a header's name escapes (k8s.io/apiserver, unescapeExtraKey). */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
