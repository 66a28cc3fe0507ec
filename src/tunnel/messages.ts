import { z } from "zod";
import type { UpgradeOptions } from "../kube/client.ts";
import { statusMessage } from "../kube/json.ts";

/** The messages of hub and agent on the control connection: one JSON object a line. */

/** Protocols in the Upgrade header. */
export const CONTROL_PROTOCOL = "legation-control";
export const STREAM_PROTOCOL = "legation-stream";
export const HOME_PROTOCOL = "legation-home-api";

/** Paths of the hub's API. */
export const CERTIFICATE_PATH = "/agent/v1/certificate";
export const CONTROL_PATH = "/agent/v1/control";
export const STREAM_PATH = "/agent/v1/streams/";
/** Leads to the host's own API server, and names no other target. */
export const HOME_PATH = "/agent/v1/home";

/** Header with the Cluster's name, beside a token. Agents with a certificate have the name in that. */
export const CLUSTER_HEADER = "legation-cluster";

/** Time between two pings of either side, in milliseconds. */
export const PING_MS = 10_000;
/** Silence after which either side takes the other for gone, in milliseconds. */
export const SILENCE_MS = 30_000;

const id: z.ZodType<string> = z.string().regex(/^[0-9a-f]{32}$/);
const pem: z.ZodType<string> = z.string().max(65_536);

interface Ping {
  readonly type: "ping";
}

/** An account in the member: the host's own, or that by which `legation access` acts for users. */
export const TOKEN_ACCOUNTS = ["host", "access"] as const;
export type TokenAccount = (typeof TOKEN_ACCOUNTS)[number];
// An agent or hub of an earlier version knows the host's account alone.
const account = z.enum(TOKEN_ACCOUNTS).default("host");

/** A message of the hub. `dial` names no target, since an agent connects to its own API server only. */
export type HubMessage =
  /** The first message, and whenever `authorities` change: the PEM bundle that the agent trusts from now on. */
  | { readonly type: "welcome"; readonly authorities: string }
  | { readonly type: "dial"; readonly id: string }
  /** Asks for a token of an account. */
  | { readonly type: "credentials"; readonly account: TokenAccount }
  | Ping;

export const hubMessage: z.ZodType<HubMessage> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("welcome"), authorities: pem }),
  z.object({ type: z.literal("dial"), id }),
  z.object({ type: z.literal("credentials"), account }),
  z.object({ type: z.literal("ping") }),
]);

export interface MemberCredentials {
  /** URL of the API server, as the agent names it. The host never connects to it: the name is for certificates. */
  readonly server: string;
  readonly token: string;
  /** RFC 3339. */
  readonly expires: string;
  /** PEM bundle of the member's API server. */
  readonly certificateAuthority: string;
}

/** Facts of an agent, which it tells at each connection. */
export interface AgentFacts {
  /** Version of its program. */
  readonly version: string;
  /** IP address at which pods of its member reach the home API through it. Undefined if it takes no pods. */
  readonly homeAddress?: string | undefined;
}

export type AgentMessage =
  | ({ readonly type: "facts" } & AgentFacts)
  | { readonly type: "refused"; readonly id: string; readonly message: string }
  | { readonly type: "credentials"; readonly account: TokenAccount; readonly credentials: MemberCredentials }
  | Ping;

export const agentMessage: z.ZodType<AgentMessage> = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("facts"),
    version: z.string().regex(/^[\w.+-]{1,64}$/),
    homeAddress: z.union([z.ipv4(), z.ipv6()]).optional(),
  }),
  z.object({ type: z.literal("refused"), id, message: z.string().max(4_096) }),
  z.object({
    type: z.literal("credentials"),
    account,
    credentials: z.object({
      server: z.string().regex(/^https:\/\/[\w.:[\]-]{1,262}$/),
      token: z.string().regex(/^[\w.-]{1,16384}$/),
      expires: z.string().max(64),
      certificateAuthority: pem,
    }),
  }),
  z.object({ type: z.literal("ping") }),
]);

/** A request for a client certificate (PEM). */
export const certificateRequest: z.ZodType<{ readonly request: string }> = z.object({
  request: z.string().min(1).max(16_384),
});

/** An agent's client certificate, and the authorities (PEM) of the hub. */
export interface CertificateAnswer {
  readonly certificate: string;
  readonly authorities: string;
}

export const certificateAnswer: z.ZodType<CertificateAnswer> = z.object({ certificate: pem, authorities: pem });

/** The longest reason that either side is told, or that is taken from an answer that is no Status. */
export const LONGEST_MESSAGE = 1_024;

/** Returns the message of a Status, or the text itself. */
export function messageOf(text: string): string {
  return statusMessage(text) ?? text.slice(0, LONGEST_MESSAGE);
}

/** Returns a request of an agent for a connection of this protocol. */
export function upgradeTo(protocol: string, timeoutMs: number): UpgradeOptions {
  return { method: "GET", query: new URLSearchParams(), protocol, headers: {}, timeoutMs };
}
