import { once } from "node:events";
import { createServer } from "node:net";
import { serveHealth } from "../../telemetry/health.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { Failure } from "./failure.ts";

/** The address of a server, as its flag gives it. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** A problem of an address, and its remedy. */
type Reason = readonly [problem: string, remedy: string];

const NOT_HERE: Reason = [
  "is no address of this machine",
  "write one that `ip address` shows, or :PORT for all of them",
];
const UNKNOWN_NAME: Reason = [
  "is a name that this machine cannot resolve",
  "write an IP address of this machine, or :PORT for all of them",
];

/** Problems of a listening socket by the error code of the kernel or the resolver. */
const REASONS: Readonly<Record<string, Reason>> = {
  EADDRINUSE: [
    "is in use by another process, probably an earlier one of Legation's that still runs",
    "`ss -ltnp 'sport = :PORT'` shows which: stop it, or write another port",
  ],
  EACCES: [
    "is not allowed for this user",
    "write a port from 1024 on, or give the process the capability CAP_NET_BIND_SERVICE",
  ],
  EADDRNOTAVAIL: NOT_HERE,
  EAFNOSUPPORT: NOT_HERE,
  ENOTFOUND: UNKNOWN_NAME,
  EAI_AGAIN: UNKNOWN_NAME,
};

/** Starts a server. Rejects with a usage error if the flag's address is not available. */
export async function listenAt<Server>(
  flag: string,
  address: ListenAddress,
  start: () => Promise<Server>,
): Promise<Server> {
  try {
    return await start();
  } catch (error) {
    throw listenFailure(flag, address, error) ?? error;
  }
}

/** Serves health and metrics at the flag's address. Resolves to undefined without one. */
export async function serveHealthAt(
  flag: string,
  address: ListenAddress | undefined,
  metrics: Metrics,
): Promise<Awaited<ReturnType<typeof serveHealth>> | undefined> {
  if (address === undefined) return undefined;
  return await listenAt(flag, address, () => serveHealth({ ...address, metrics, notReady: () => undefined }));
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
    throw listenFailure(flag, address, error) ?? error;
  }
}

/** Returns the usage error for an error about the address. Undefined for any other error. */
export function listenFailure(flag: string, address: ListenAddress, error: unknown): Failure | undefined {
  if (!(error instanceof Error) || !("syscall" in error) || !("code" in error)) return undefined;
  if (error.syscall !== "listen" && error.syscall !== "getaddrinfo") return undefined;
  const [problem, remedy] = REASONS[String(error.code)] ?? [];
  if (problem === undefined || remedy === undefined) return undefined;
  const { host, port } = address;
  return new Failure("usage", {
    object: flag,
    problem: `${host.includes(":") ? `[${host}]` : host}:${port} ${problem}`,
    // An address that is in use stands with its own port; any port will do for the others.
    remedy: error.code === "EADDRINUSE" ? remedy.replace("PORT", String(port)) : remedy,
    cause: error,
  });
}
