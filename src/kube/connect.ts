import type { ClusterClient } from "./client.ts";
import type { ClusterCredentials } from "./credentials.ts";
import { HttpClient } from "./http-client.ts";
import { type ClientLimits, DEFAULT_LIMITS } from "./limits.ts";
import { type ClientMetrics, Transport } from "./transport.ts";

/** The settings of a cluster's client. */
export interface ConnectOptions {
  /** The cluster's name in errors and metrics. */
  readonly cluster: string;
  readonly credentials: ClusterCredentials;
  readonly limits?: Partial<ClientLimits>;
  readonly userAgent?: string;
  readonly metrics?: ClientMetrics;
  /** Returns the rest of the leader's lease in ms, which limits every write. Undefined: no limit. */
  readonly leaseLeftMs?: () => number | undefined;
  /** The server is under foreign control: responses are validated and limited in size. */
  readonly untrusted?: boolean;
}

/** Creates a client for one cluster. Opens no connection before the first request. */
export function createClusterClient(options: ConnectOptions): ClusterClient {
  const { cluster, credentials, metrics, leaseLeftMs, untrusted, userAgent = "legation" } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  return new HttpClient(new Transport({ cluster, credentials, limits, userAgent, metrics, leaseLeftMs, untrusted }));
}
