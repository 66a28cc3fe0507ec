import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { AccessGate } from "../../../src/access/gate.ts";
import type { FoundMember } from "../../../src/access/members.ts";
import { AccessServer } from "../../../src/access/server.ts";
import { createForwarder } from "../../../src/kube/http-client.ts";
import { credentialsFromKubeconfigText } from "../../../src/kube/kubeconfig.ts";
import { type Clock, realClock } from "../../../src/runtime/clock.ts";
import type { RequestHeaders } from "../../../src/serving/request-headers.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeconfigText } from "../../support/clusters/kubeconfig.ts";
import { Authority, type KeyAndCertificate } from "../../support/clusters/pki.ts";

export const WEST = "/apis/access.legation.dev/v1/clusters/west/proxy";

const HEADERS: RequestHeaders = {
  allowedNames: ["front-proxy-client"],
  user: ["x-remote-user"],
  uid: ["x-remote-uid"],
  group: ["x-remote-group"],
  extraPrefixes: ["x-remote-extra-"],
};

/** The member's API server: what it was asked, and the answer. */
export class FakeMember {
  readonly requests: IncomingMessage[] = [];
  onRequest: (request: IncomingMessage, response: ServerResponse) => void = (request, response) => {
    request.resume();
    response.end("{}");
  };
  onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void = (_request, socket) => socket.end();
  readonly server: Server = createServer({ maxHeaderSize: 2 ** 20 });

  constructor() {
    this.server.maxHeadersCount = 0;
    this.server.on("request", (request, response) => {
      this.requests.push(request);
      this.onRequest(request, response);
    });
    this.server.on("upgrade", (request, socket, head) => {
      this.requests.push(request);
      socket.on("error", () => {});
      this.onUpgrade(request, socket, head);
    });
  }

  async listen(): Promise<string> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
}

export interface RigOptions {
  readonly prefix?: string;
  /** Clock of the server. */
  readonly clock?: Clock;
  readonly mostStrangers?: number;
}

/** The host's authority, the certificate of its API server, and that of the server. */
interface Pki {
  readonly authority: Authority;
  readonly frontProxy: KeyAndCertificate;
  readonly serving: KeyAndCertificate;
}

// Keys take longer than most tests.
let pki: Promise<Pki> | undefined;

async function createPki(): Promise<Pki> {
  const authority = await Authority.create("host");
  const [frontProxy, serving] = await Promise.all([
    authority.issue({ commonName: "front-proxy-client", usage: "clientAuth" }),
    authority.issue({ commonName: "access", usage: "serverAuth", addresses: ["127.0.0.1"] }),
  ]);
  return { authority, frontProxy, serving };
}

/** The server of `legation access` before one member, and what the host says of users. */
export class Rig {
  readonly member: FakeMember = new FakeMember();
  /** Every right that the host was asked for. */
  readonly reviews: object[] = [];
  allowed = true;
  /** Delays the host's answers. */
  deciding: Promise<void> | undefined;
  /** Why the member does not answer, as the controller knows. */
  trouble: string | undefined;
  found: FoundMember | undefined;
  port = 0;
  readonly #authority: Authority;
  readonly #frontProxy: KeyAndCertificate;
  #server: AccessServer | undefined;
  #close: (() => Promise<void>) | undefined;

  private constructor(authority: Authority, frontProxy: KeyAndCertificate) {
    this.#authority = authority;
    this.#frontProxy = frontProxy;
  }

  static async start({ prefix = "legation:", clock = realClock, ...more }: RigOptions = {}): Promise<Rig> {
    pki ??= createPki();
    const { authority, frontProxy, serving } = await pki;
    const rig = new Rig(authority, frontProxy);
    const server = await rig.member.listen();
    const text = kubeconfigText({ name: "west", server, caData: "", user: "own", token: "legation-token" });
    const withoutCa = text.replace(/,\s*"certificate-authority-data": ""/, "");
    const credentials = credentialsFromKubeconfigText(withoutCa, { allowExec: false, env: {} });
    const forwarder = createForwarder({ cluster: "west", credentials, limits: { connectTimeoutMs: 2_000 } });
    const member = { name: "west", prefix, forwarder, trouble: () => rig.trouble };
    const log = createLogger({ level: "silent" });
    const gate = new AccessGate({
      members: { find: () => rig.found ?? { member } },
      requestHeaders: () => HEADERS,
      reviews: {
        allows: async (user, attributes) => {
          rig.reviews.push({ user, attributes });
          await rig.deciding;
          return rig.allowed;
        },
      },
      clock: realClock,
      log,
    });
    const tls = {
      certificate: { cert: serving.certificate, key: serving.key },
      clientAuthority: authority.pem,
    };
    const limits = { ofUser: 3, ofAll: 4 };
    rig.#server = new AccessServer(tls, { gate, notReady: () => undefined, limits, clock, log, ...more });
    rig.port = await rig.#server.listen("127.0.0.1", 0);
    rig.#close = async () => {
      await forwarder.close();
      await rig.#server?.close();
      rig.member.server.closeAllConnections();
      rig.member.server.close();
    };
    return rig;
  }

  get server(): AccessServer {
    if (this.#server === undefined) throw new Error("not started");
    return this.#server;
  }

  get authority(): Authority {
    return this.#authority;
  }

  /** Connects as the host's API server does, or with another certificate. */
  async connect(certificate: KeyAndCertificate | "none" = this.#frontProxy): Promise<TLSSocket> {
    const own = certificate === "none" ? {} : { cert: certificate.certificate, key: certificate.key };
    const options: ConnectionOptions = { host: "127.0.0.1", port: this.port, ca: this.#authority.pem, ...own };
    const socket = connect(options);
    socket.on("error", () => {});
    await once(socket, "secureConnect");
    return socket;
  }

  /** Sends a request, and returns the status of its response. */
  async statusOf(text: string | Buffer, certificate?: KeyAndCertificate | "none"): Promise<number> {
    const answer = await exchange(await this.connect(certificate), text);
    return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
  }

  async close(): Promise<void> {
    await this.#close?.();
  }
}

/** Sends bytes as they are, and returns all that comes back until the end. */
export async function exchange(socket: TLSSocket, sent: string | Buffer): Promise<string> {
  socket.write(sent);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(socket, "close");
  return Buffer.concat(chunks).toString("latin1");
}

/** Returns the text of a request, with more header lines. */
export function requestOf(target: string, lines: readonly string[] = [], method = "GET", user = "alice"): string {
  const own = ["Host: access", `X-Remote-User: ${user}`, "X-Remote-Group: a", "X-Remote-Group: system:masters"];
  return `${[`${method} ${target} HTTP/1.1`, ...own, ...lines].join("\r\n")}\r\n\r\n`;
}
