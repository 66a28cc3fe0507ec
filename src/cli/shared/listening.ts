import { once } from "node:events";
import { createServer } from "node:net";
import type { HealthEndpoint } from "../../telemetry/health.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { Failure } from "./failure.ts";

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Starts a server. Rejects with a usage error if the flag's address is not available. */
export async function listenAt<Server>(flag: string, start: () => Promise<Server>): Promise<Server> {
  try {
    return await start();
  } catch (error) {
    throw listenFailure(flag, error) ?? error;
  }
}

/** Serves health and metrics at the flag's address. Resolves to undefined without one. */
export async function serveHealthAt(
  flag: string,
  address: ListenAddress | undefined,
  metrics: Metrics,
  notReady: () => string | undefined = () => undefined,
): Promise<HealthEndpoint | undefined> {
  if (address === undefined) return undefined;
  // An ES import of node:http loads Node's fetch and WebSocket too, which takes 3 MB.
  const { serveHealth } = await import("../../telemetry/health.ts");
  return await listenAt(flag, () => serveHealth({ ...address, metrics, notReady }));
}

/** Rejects with a usage error if the flag's address is not available. A port in use is no error: the next ones are tried. */
export async function checkPorts(flag: string, address: ListenAddress): Promise<void> {
  const server = createServer();
  try {
    server.listen(address.port, address.host);
    await once(server, "listening");
    server.close();
    await once(server, "close");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return;
    throw listenFailure(flag, error) ?? error;
  }
}

/** Returns the usage error for an error about the address, whose message names it. Undefined for any other error. */
export function listenFailure(flag: string, error: unknown): Failure | undefined {
  if (!(error instanceof Error) || !("syscall" in error)) return undefined;
  if (error.syscall !== "listen" && error.syscall !== "getaddrinfo") return undefined;
  return new Failure("usage", {
    object: flag,
    problem: error.message,
    remedy:
      "write a free port and an address of this machine, or :PORT for all its addresses; `ss -ltnp` shows who listens",
    cause: error,
  });
}
