import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { AgentIdentity } from "./agent-session.ts";

/** The client of a connection to the hub, by its certificate. */
export interface HubClient {
  readonly commonName?: string | undefined;
  readonly agent?: AgentIdentity | undefined;
  /** When its certificate expires; epoch ms. */
  readonly certificateExpires?: number;
  /** Why it is no agent, if it is none. */
  readonly problem: string;
}

/** Reads the certificate of a connection's client. `now`: epoch ms. */
export function clientOf(socket: Duplex, now: number): HubClient {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  if (!(socket instanceof TLSSocket) || certificate === undefined) {
    return { problem: "no client certificate was presented" };
  }
  const certificateExpires = certificate.validToDate.getTime();
  // A resumed TLS session carries the result of its first handshake.
  if (socket.authorized && certificateExpires <= now) return { problem: rejection("CERT_HAS_EXPIRED") };
  if (!socket.authorized) return { problem: rejection(String(socket.authorizationError)) };
  const { CN: commonName, OU: uid, O: join } = attributesOf(certificate.subject);
  const agent = commonName === undefined || uid === undefined ? undefined : { cluster: commonName, uid, join };
  return { commonName, agent, certificateExpires, problem: rejection("it names no Cluster") };
}

/** Returns the attributes of a distinguished name, of which Node.js writes one a line. */
function attributesOf(name: string): { readonly [attribute: string]: string | undefined } {
  return Object.fromEntries([...name.matchAll(/^(\w+)=(.*)$/gm)].map(([, attribute, value]) => [attribute, value]));
}

function rejection(reason: string): string {
  return `the client certificate is not accepted (${reason}); run \`legation join NAME --agent\` again`;
}
