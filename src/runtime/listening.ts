import { once } from "node:events";
import type { Server } from "node:net";

/** Resolves to the port once the server listens. Rejects when the port is not available. Later errors go to `onError`. */
export async function listenOn(
  server: Server,
  { host, port, onError }: { readonly host: string; readonly port: number; readonly onError: (error: Error) => void },
): Promise<number> {
  // A callback would stay registered when the port is taken, and callers try many ports.
  server.listen(port, host);
  await once(server, "listening");
  server.on("error", onError);
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}
