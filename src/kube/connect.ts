import type { ClusterClient } from "./client.ts";
import type { ClusterCredentials } from "./credentials.ts";
import { HttpClient } from "./http-client.ts";
import { type ClientLimits, DEFAULT_LIMITS } from "./limits.ts";
import { type ClientMetrics, Transport } from "./transport.ts";

/** What a client needs to know of its cluster. */
export interface ConnectOptions {
  /** `host`, or the member's name: it stands in errors and metrics. */
  readonly cluster: string;
  readonly credentials: ClusterCredentials;
  readonly limits?: Partial<ClientLimits>;
  readonly userAgent?: string;
  readonly metrics?: ClientMetrics;
  /** How long writes may still be on their way: what is left of the leader's lease. Undefined: as long as they like. */
  readonly leaseLeftMs?: () => number | undefined;
  /** A server in somebody else's hands: what it answers is checked before it is believed, and may only be so large. */
  readonly untrusted?: boolean;
}

/** A client for one cluster. It opens no connection before the first request. */
export function createClusterClient(options: ConnectOptions): ClusterClient {
  const { cluster, credentials, metrics, leaseLeftMs, untrusted, userAgent = "legation" } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  return new HttpClient(new Transport({ cluster, credentials, limits, userAgent, metrics, leaseLeftMs, untrusted }));
}
