import { createServer, type Server } from "node:http";
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { Streams, type StreamTarget } from "../../../src/kubelet/streams.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { anonymous } from "../../support/fault-server/connect.ts";
import { readAll } from "../../support/streams/socket-pair.ts";
import { UpgradeServer } from "../kube/upgrade-server.ts";

const REQUEST = "POST /exec/shop/web/main?command=cat&input=1&output=1 HTTP/1.1\r\n";
const HEADERS = "Host: kubelet\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n";

/** The streams of a virtual node, before a member's API server. */
export class KubeletFront {
  readonly member: UpgradeServer;
  readonly client: ClusterClient;
  readonly clock: FakeClock = new FakeClock();
  readonly streams: Streams = new Streams({ clock: this.clock, log: createLogger({ level: "silent" }) });
  target: StreamTarget;
  readonly front: Server = createServer();
  readonly #dialled: Socket[] = [];

  private constructor(member: UpgradeServer) {
    this.member = member;
    this.client = createClusterClient({ cluster: "west", credentials: anonymous(member.url) });
    this.target = {
      member: { name: "west", client: this.client, probed: { reachable: true } },
      ref: { namespace: "shop", name: "web" },
      proxyUid: "uid-of-web",
      container: "main",
    };
    this.front.on("upgrade", (...asked) => void this.streams.handleUpgrade(...asked, this.target));
  }

  static async start(): Promise<KubeletFront> {
    const kubelet = new KubeletFront(await UpgradeServer.start());
    await new Promise<void>((resolve) => kubelet.front.listen(0, "127.0.0.1", resolve));
    return kubelet;
  }

  /** Requests a stream as a host's API server does. */
  ask(more = "", options: { readonly allowHalfOpen?: boolean } = {}): Socket {
    const { port } = this.front.address() as AddressInfo;
    const socket = connectTcp({ port, host: "127.0.0.1", ...options });
    socket.on("error", () => {});
    socket.write(REQUEST + HEADERS + more);
    this.#dialled.push(socket);
    return socket;
  }

  async close(): Promise<void> {
    for (const socket of this.#dialled.splice(0)) socket.destroy();
    await this.streams.close();
    await this.client.close();
    await new Promise((resolve) => this.front.close(resolve));
    await this.member[Symbol.asyncDispose]();
  }
}

export function next(socket: Socket): Promise<string> {
  return new Promise((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
}

/** Returns status, headers and body of a response that is no upgrade. */
export async function answer(socket: Socket): Promise<{ status: number; head: string; body: string }> {
  const [head = "", body = ""] = String(await readAll(socket)).split("\r\n\r\n");
  return { status: Number(head.split(" ")[1]), head: head.toLowerCase(), body };
}
