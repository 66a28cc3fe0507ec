import { once } from "node:events";
import type { Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { expect, onTestFinished, vi } from "vitest";
import type { RequestIdentity } from "../../../src/kube/credentials.ts";
import { CONTROL_PATH, CONTROL_PROTOCOL, STREAM_PATH, STREAM_PROTOCOL } from "../../../src/tunnel/messages.ts";
import { type HubRig, hubAuthority } from "../../support/tunnel/rig.ts";

export const west = { cluster: "west", uid: "1" };
export const east = { cluster: "east", uid: "2" };

/** A connection to the hub that the test speaks on, instead of an agent. */
export class HandMadeAgent {
  readonly socket: TLSSocket;
  readonly #lines: string[] = [];
  #text = "";

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("data", (bytes: Buffer) => {
      this.#text += bytes.toString("utf8");
      const lines = this.#text.split("\n");
      this.#text = lines.pop() ?? "";
      this.#lines.push(...lines.filter((line) => line.startsWith("{")));
    });
  }

  /** Sends an upgrade request. Resolves to the connection, and the hub's answer up to the end of its head or body. */
  static async upgrade(
    { port }: Pick<HubRig, "port">,
    path: string,
    protocol: string,
    identity: Partial<RequestIdentity> & { readonly allowHalfOpen?: boolean } = {},
  ): Promise<{ readonly status: number; readonly text: string; readonly agent: HandMadeAgent }> {
    const socket = connect({ host: "127.0.0.1", port, ca: (await hubAuthority).cert, ...identity });
    socket.on("error", () => {});
    onTestFinished(() => {
      socket.destroy();
    });
    await once(socket, "secureConnect");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`);
    const [bytes] = (await once(socket, "data")) as [Buffer];
    const text = bytes.toString("utf8");
    const agent = new HandMadeAgent(socket);
    const end = text.indexOf("\r\n\r\n") + 4;
    if (end < bytes.length) socket.emit("data", bytes.subarray(end));
    return { status: Number(text.split(" ")[1]), text, agent };
  }

  /** Resolves to the ids that the hub asked for, once there are as many. */
  async dialled(count: number): Promise<string[]> {
    return await vi.waitFor(() => {
      const ids = this.#lines.flatMap((line) => (JSON.parse(line) as { id?: string }).id ?? []);
      expect(ids).toHaveLength(count);
      return ids;
    });
  }

  send(message: object): void {
    this.socket.write(`${JSON.stringify(message)}\n`);
  }
}

export async function control(rig: HubRig, identity: RequestIdentity): Promise<HandMadeAgent> {
  const { status, agent } = await HandMadeAgent.upgrade(rig, CONTROL_PATH, CONTROL_PROTOCOL, identity);
  expect(status).toBe(101);
  return agent;
}

export const stream = (rig: HubRig, id: string, identity: RequestIdentity): ReturnType<typeof HandMadeAgent.upgrade> =>
  HandMadeAgent.upgrade(rig, `${STREAM_PATH}${id}`, STREAM_PROTOCOL, identity);

export const never: AbortSignal = new AbortController().signal;

/** Opens a connection over TLS that the test writes on. */
export async function connection({ port }: HubRig, identity: Partial<RequestIdentity> = {}): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, ca: (await hubAuthority).cert, ...identity });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

/** Resolves once the connection is closed. */
export async function closed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.closed) await once(socket, "close");
}
