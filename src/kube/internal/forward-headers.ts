import type { Impersonation } from "../client.ts";
import { headerPairs } from "../raw-headers.ts";

// Hop-by-hop headers (RFC 9110, 7.6.1). Expect is answered by each hop, and Upgrade is sent with the protocol alone.
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
// Credentials of the client for another server, and claims about who it is.
const CREDENTIALS: ReadonlySet<string> = new Set(["authorization", "cookie", "proxy-authorization"]);
const CLAIMS = /^(impersonate|x-remote)-/;
// Browsers send a bearer token as a protocol of a WebSocket (k8s.io/apiserver, pkg/authentication/request/websocket).
const WEBSOCKET_PROTOCOLS = "sec-websocket-protocol";
const BEARER_PROTOCOL = "base64url.bearer.authorization.k8s.io.";

/** Returns the headers of a request as they are sent: the client's, the credentials, and the user that they impersonate. */
export function forwardedHeaders(
  headers: readonly string[],
  impersonation: Impersonation,
  authorization: string | undefined,
): string[] {
  const passed = withoutHopByHop(headers, (name) => CREDENTIALS.has(name) || CLAIMS.test(name));
  const sent = withoutBearerProtocols(passed);
  if (authorization !== undefined) sent.push("authorization", authorization);
  sent.push(...impersonationHeaders(impersonation));
  return sent;
}

function withoutBearerProtocols(headers: readonly string[]): string[] {
  return [...headerPairs(headers)].flatMap(([name, value, spelled]) => {
    if (name !== WEBSOCKET_PROTOCOLS || !value.includes(BEARER_PROTOCOL)) return [spelled, value];
    const protocols = value.split(",").map((protocol) => protocol.trim());
    const kept = protocols.filter((protocol) => !protocol.startsWith(BEARER_PROTOCOL));
    return kept.length === 0 ? [] : [spelled, kept.join(", ")];
  });
}

/** Returns end-to-end headers. `isDropped` names more to leave out, by names in lower case. */
export function withoutHopByHop(
  headers: readonly string[],
  isDropped: (name: string) => boolean = () => false,
): string[] {
  const named = new Set<string>();
  for (const [name, value] of headerPairs(headers)) {
    if (name === "connection") for (const each of value.split(",")) named.add(each.trim().toLowerCase());
  }
  const kept: string[] = [];
  for (const [name, value, spelled] of headerPairs(headers)) {
    if (!HOP_BY_HOP.has(name) && !named.has(name) && !isDropped(name)) kept.push(spelled, value);
  }
  return kept;
}

/** Throws without a user: the API server would then take the request for the credentials' own. */
function impersonationHeaders({ user, uid, groups, extra }: Impersonation): string[] {
  if (user === "") throw new Error("a forwarded request needs a user");
  const headers = ["impersonate-user", encoded(user)];
  if (uid !== undefined) headers.push("impersonate-uid", encoded(uid));
  for (const group of groups) headers.push("impersonate-group", encoded(group));
  for (const [key, values] of Object.entries(extra)) {
    for (const value of values) headers.push(`impersonate-extra-${escaped(key)}`, encoded(value));
  }
  return headers;
}

/** Returns a value as header bytes: UTF-8, each byte as one character. */
function encoded(value: string): string {
  return Buffer.from(value, "utf8").toString("latin1");
}

/** Escapes a key for a header's name, as client-go does (k8s.io/client-go/transport, headerKeyEscape). */
function escaped(key: string): string {
  let name = "";
  for (const byte of Buffer.from(key, "utf8")) {
    const letter = String.fromCharCode(byte);
    name += /[!#$&'*+\-.^_`|~0-9A-Za-z]/.test(letter) ? letter : `%${byte.toString(16).padStart(2, "0").toUpperCase()}`;
  }
  return name;
}
