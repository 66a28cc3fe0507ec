import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { AgentIdentity } from "./agent-session.ts";

/** Returns the agent that a verified client certificate names. */
export function agentOf({ socket }: IncomingMessage): AgentIdentity | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const { CN: cluster, OU: uid, O: join } = socket.getPeerCertificate().subject ?? {};
  if (typeof cluster !== "string" || typeof uid !== "string") return undefined;
  return { cluster, uid, join: typeof join === "string" ? join : undefined };
}

/** Returns why a connection's client certificate names no agent. */
export function certificateProblem({ socket }: IncomingMessage): string {
  if (!(socket instanceof TLSSocket) || socket.getPeerX509Certificate() === undefined)
    return "no client certificate was presented";
  const { authorizationError } = socket;
  return `the client certificate is not accepted (${authorizationError ?? "it names no Cluster"}); run \`legation join NAME --agent\` again`;
}

/** Returns when the client certificate of a connection expires; epoch ms. */
export function expiryOf(socket: Duplex): number | undefined {
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  return certificate?.validToDate.getTime();
}
