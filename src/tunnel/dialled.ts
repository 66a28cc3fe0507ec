import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Dial } from "../kube/client.ts";
import { WayPending } from "../kube/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { LASTING_SOCKET } from "../runtime/https-listener.ts";
import { joinSockets } from "../runtime/joined-sockets.ts";
import { refuse, statusAnswer, switchProtocols } from "../runtime/upgrade-answers.ts";

/** The one API server that a hub or an agent connects to, and no other address. */
export interface DialTarget {
  readonly host: string;
  readonly port: number;
}

export const DIAL_MS = 10_000;

/** Opens a connection. Rejects with the reason, also when the signal fires. */
export async function dialTcp(target: DialTarget, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ ...target, ...LASTING_SOCKET });
  socket.on("error", () => {});
  try {
    await once(socket, "connect", { signal });
    return socket;
  } catch (error) {
    socket.destroy();
    throw signal.aborted ? new Error("it does not answer") : error;
  }
}

/** Joins a socket, whose client asks for a protocol, to the server that `dial` reaches. TLS between the two is end to end. */
export async function joinDialled(
  socket: Duplex,
  { protocol, dial, clock }: { readonly protocol: string; readonly dial: Dial; readonly clock: Clock },
): Promise<void> {
  const gone = new AbortController();
  const onClose = (): void => gone.abort();
  socket.once("close", onClose);
  try {
    const server = await dial(AbortSignal.any([gone.signal, AbortSignal.timeout(DIAL_MS)]));
    if (socket.destroyed) {
      server.destroy();
      return;
    }
    switchProtocols(socket, { connection: "Upgrade", upgrade: protocol });
    joinSockets(socket, server, clock);
  } catch (error) {
    if (socket.destroyed) return;
    const answer = statusAnswer("ServiceUnavailable", error instanceof Error ? error.message : String(error));
    const pending = error instanceof WayPending ? { "retry-after": "1" } : {};
    refuse(socket, { ...answer, headers: { ...answer.headers, ...pending } }, clock);
  } finally {
    socket.off("close", onClose);
  }
}
