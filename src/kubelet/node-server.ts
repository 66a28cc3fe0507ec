import { constants } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { type Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { virtualNodeName } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import type { Certificate } from "../certificates/issue.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { closeInTime } from "../runtime/joined-sockets.ts";
import { refuse } from "../runtime/upgrade-answers.ts";
import { KubeletMetrics } from "../telemetry/kubelet.ts";
import type { Logger } from "../telemetry/logger.ts";
import { attributesOf } from "./attributes.ts";
import type { Authentication } from "./authentication.ts";
import type { Authorization } from "./authorization.ts";
import { answerText, serveLog } from "./logs.ts";
import { type Endpoint, endpointOf, metricPathOf } from "./path.ts";
import { type Lookup, lookUp, type PodSource } from "./pod-lookup.ts";
import type { Streams } from "./streams.ts";
import { podsOfNode } from "./usage.ts";
import {
  cadvisorMetrics,
  METRICS_CONTENT_TYPE,
  PROBE_METRICS,
  resourceMetrics,
  statsSummary,
} from "./usage-answers.ts";
import { UsageReader } from "./usage-reader.ts";

export interface NodeServerOptions {
  readonly source: PodSource;
  readonly authentication: Authentication;
  readonly authorization: Authorization;
  readonly streams: Streams;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface TlsMaterial {
  readonly certificate: Certificate;
  /** PEM; undefined accepts no client certificates. */
  readonly clientAuthority: string | undefined;
}

// Longer than Go clients keep idle connections (90 s), because a server that closes first loses requests.
const KEEP_ALIVE_MS = 120_000;
// Shorter than the idle timeout of common load balancers.
const KEEP_ALIVE_DELAY_MS = 30_000;
const MAX_HEADER_BYTES = 2 ** 20;
const HANDSHAKE_MS = 10_000;

interface Refusal {
  readonly status: number;
  readonly text: string;
}

/** The kubelet API of one virtual node. */
export class NodeServer {
  readonly #cluster: string;
  readonly #options: NodeServerOptions;
  readonly #usage: UsageReader;
  readonly #metrics: KubeletMetrics;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Connections during the TLS handshake, by peer. */
  readonly #handshaking = new Map<string, Socket>();
  #takesCertificates: boolean;
  /** Connections whose client certificate was verified against a replaced CA. */
  readonly #stale = new WeakSet<Duplex>();

  constructor(cluster: string, tls: TlsMaterial, options: NodeServerOptions) {
    this.#cluster = cluster;
    this.#options = options;
    this.#takesCertificates = tls.clientAuthority !== undefined;
    const { source, clock, log } = options;
    this.#usage = new UsageReader({ cluster, source, clock, log });
    const node = virtualNodeName(cluster);
    this.#metrics = new KubeletMetrics(node, () => podsOfNode(source.proxiesOn(node)));
    this.#server = createServer({
      ...tlsOptions(tls),
      handshakeTimeout: HANDSHAKE_MS,
      // The URL of an exec holds the whole command. The limit is that of a kubelet (net/http).
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Detects a vanished host, so that a followed log does not stay open forever.
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
    });
    this.#server.on("connection", (socket: Socket) => {
      const peer = peerOf(socket);
      this.#handshaking.set(peer, socket);
      socket.once("close", () => this.#handshaking.delete(peer));
    });
    this.#server.on("secureConnection", (socket: Socket) => {
      this.#handshaking.delete(peerOf(socket));
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("request", (request, response) => {
      response.once("close", this.#begin(request));
      void this.#onRequest(request, response);
    });
    this.#server.on("upgrade", (request, socket, head) => {
      socket.once("close", this.#begin(request));
      void this.#onUpgrade(request, socket, head);
    });
  }

  /** Rejects when the port is not available. */
  async listen(host: string, port: number): Promise<number> {
    // A callback would stay registered when the port is taken, and the caller tries many ports.
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    this.#server.on("error", (error) => this.#options.log.error({ err: error, member: this.#cluster }, "kubelet API"));
    const address = this.#server.address();
    return isInetAddress(address) ? address.port : port;
  }

  /** Throws when `tls` is unusable. */
  renew(tls: TlsMaterial): void {
    this.#server.setSecureContext(tlsOptions(tls));
    this.#takesCertificates = tls.clientAuthority !== undefined;
    for (const socket of this.#sockets) this.#stale.add(socket);
    // Handshakes in progress would verify against the old CA.
    this.#cutHandshakes();
    this.#server.closeIdleConnections();
  }

  /** Closes every connection except upgraded streams, which end by themselves. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    this.#cutHandshakes();
    await closed;
  }

  #cutHandshakes(): void {
    for (const socket of this.#handshaking.values()) socket.destroy();
  }

  #begin(request: IncomingMessage): () => void {
    return this.#metrics.begin(request.method ?? "", metricPathOf(pathOf(request)));
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#stale.has(request.socket)) {
      request.socket.destroy();
      return;
    }
    try {
      const refusal = await this.#refusal(request);
      if (refusal === undefined) await this.#serve(request, response);
      else answerText(response, refusal.status, refusal.text);
    } catch (error) {
      this.#options.log.error({ err: error, member: this.#cluster, url: request.url }, "kubelet request failed");
      if (response.headersSent) response.destroy();
      else answerText(response, 500, "the request failed: see the log of Legation's controller");
    }
  }

  async #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { log, streams, source, clock } = this.#options;
    socket.on("error", () => {});
    try {
      if (this.#stale.has(socket)) {
        socket.destroy();
        return;
      }
      const refusal = await this.#refusal(request);
      if (refusal !== undefined) {
        refuseText(socket, refusal, clock);
        return;
      }
      const endpoint = endpointOf(pathOf(request));
      if (endpoint.kind !== "stream") {
        refuseText(socket, { status: 400, text: `${pathOf(request)} takes no upgrade` }, clock);
        return;
      }
      const { pod, container } = endpoint;
      const found = lookUp(source, this.#cluster, pod, container);
      if (found.problem !== undefined) {
        refuseText(socket, refusalOf(found), clock);
        return;
      }
      const { namespace, name } = pod;
      await streams.handleUpgrade(request, socket, head, {
        member: found.member,
        ref: { namespace, name },
        proxyUid: found.proxyUid,
        ...(container === undefined ? {} : { container }),
      });
    } catch (error) {
      log.error({ err: error, member: this.#cluster, url: request.url }, "kubelet upgrade failed");
      socket.destroy();
    }
  }

  /** Returns undefined when the request is allowed. */
  async #refusal(request: IncomingMessage): Promise<Refusal | undefined> {
    const { authentication, authorization, log } = this.#options;
    try {
      const user = await authentication.userOf(request, this.#takesCertificates);
      if (user === undefined) return { status: 401, text: "Unauthorized" };
      const attributes = attributesOf(request.method ?? "", pathOf(request));
      if (await authorization.allows(user, virtualNodeName(this.#cluster), attributes)) return undefined;
      const { verb, subresources } = attributes;
      const needed = `verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(" ")}]`;
      return { status: 403, text: `Forbidden (user=${user.name}, ${needed})` };
    } catch (error) {
      if (!isKubeError(error)) throw error;
      log.warn({ err: error, member: this.#cluster }, "a caller of the kubelet API could not be checked");
      return { status: 500, text: `the caller could not be checked: ${error.detail}` };
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const endpoint: Endpoint = endpointOf(pathOf(request));
    if (request.method !== "GET" && endpoint.kind !== "stream") {
      answerText(response, 405, "405: Method Not Allowed");
      return;
    }
    switch (endpoint.kind) {
      case "healthz":
        answerText(response, 200, "ok");
        return;
      case "metrics":
        answerMetrics(response, await this.#metrics.text());
        return;
      case "resource":
        answerMetrics(response, resourceMetrics(await this.#usage.read()));
        return;
      case "cadvisor":
        answerMetrics(response, cadvisorMetrics(await this.#usage.read()));
        return;
      case "probes":
        answerMetrics(response, PROBE_METRICS);
        return;
      case "stats":
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify(statsSummary(virtualNodeName(this.#cluster), await this.#usage.read())));
        return;
      case "pods":
        await servePods(response, this.#options.source.proxiesOn(virtualNodeName(this.#cluster)));
        return;
      case "stream":
        answerText(response, 400, "Upgrade request required");
        return;
      case "unknown":
        answerText(response, 404, "404 page not found");
        return;
      case "log": {
        const { pod, container } = endpoint;
        const found = lookUp(this.#options.source, this.#cluster, pod, container);
        if (found.problem !== undefined) {
          const { status, text } = refusalOf(found);
          answerText(response, status, text);
          return;
        }
        await serveLog(request, response, { member: found.member, pod, container }, this.#options.clock);
      }
    }
  }
}

function answerMetrics(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": METRICS_CONTENT_TYPE }).end(text);
}

function tlsOptions({ certificate: { cert, key }, clientAuthority }: TlsMaterial) {
  return {
    cert,
    key,
    // Requested but not required, since other clients have a token.
    requestCert: true,
    rejectUnauthorized: false,
    // An empty list, because an absent one means Node.js' bundled public CAs.
    ca: clientAuthority ?? [],
    minVersion: "TLSv1.2",
    // A resumed session would carry a certificate that was verified against an older CA.
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const;
}

function pathOf({ url = "/" }: IncomingMessage): string {
  return url.split("?", 1)[0] ?? "/";
}

function refusalOf({ problem, message }: Extract<Lookup, { problem: string }>): Refusal {
  // The host's API server shows the message of a 400 and a 500, and its own for other codes.
  const statuses = { notFound: 404, notRunning: 400, unavailable: 500 } as const;
  return { status: statuses[problem], text: message };
}

/** Responds and closes the connection, even when the unauthenticated client keeps its side open. */
function refuseText(socket: Duplex, { status, text }: Refusal, clock: Clock): void {
  refuse(socket, { status, headers: { "content-type": "text/plain; charset=utf-8" }, text });
  closeInTime(socket, clock);
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Streams the pods of a node one by one, because serializing thousands at once would block the event loop. */
async function servePods(response: ServerResponse, pods: readonly Pod[]): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" });
  await pipeline(Readable.from(podList(pods)), response).catch(() => response.destroy());
}

function* podList(pods: readonly Pod[]): Generator<string> {
  yield '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[';
  for (const [index, pod] of pods.entries()) yield `${index === 0 ? "" : ","}${JSON.stringify(pod)}`;
  yield "]}\n";
}

function isInetAddress(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}
