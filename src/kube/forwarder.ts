import type { Forwarder } from "./client.ts";
import type { ConnectOptions } from "./http-client.ts";
import { forward, forwardUpgrade } from "./internal/forward.ts";
import { Transport } from "./internal/transport.ts";
import { DEFAULT_LIMITS } from "./limits.ts";

/** Creates a forwarder. Opens no connection before the first request. */
export function createForwarder(
  options: Pick<ConnectOptions, "cluster" | "credentials" | "dial" | "limits">,
): Forwarder {
  const { cluster, credentials, dial } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const transport = new Transport({ cluster, credentials, limits, dial, userAgent: "", untrusted: true });
  return {
    forward: (request) => forward(transport, request),
    upgrade: (request, protocol) => forwardUpgrade(transport, request, protocol),
    close: () => transport.close(),
  };
}
