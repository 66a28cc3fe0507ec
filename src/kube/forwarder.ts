import type { Forwarder } from "./client.ts";
import { forward, forwardUpgrade } from "./internal/forward.ts";
import { type ConnectOptions, Transport } from "./internal/transport.ts";

/** Creates a forwarder. Opens no connection before the first request. */
export function createForwarder(
  options: Pick<ConnectOptions, "cluster" | "credentials" | "dial" | "limits">,
): Forwarder {
  const transport = new Transport({ ...options, untrusted: true });
  return {
    forward: (request) => forward(transport, request),
    upgrade: (request, protocol) => forwardUpgrade(transport, request, protocol),
    close: () => transport.close(),
  };
}
