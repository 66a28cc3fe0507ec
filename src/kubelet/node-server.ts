import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { virtualNodeName } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { refuse } from "../runtime/upgrade-answers.ts";
import type { AccessReviews } from "../serving/access-reviews.ts";
import { CertifiedServer, type TlsMaterial } from "../serving/certified-server.ts";
import { KubeletMetrics } from "../telemetry/kubelet.ts";
import type { Logger } from "../telemetry/logger.ts";
import { attributesOf, isAllowed } from "./attributes.ts";
import type { Authentication } from "./authentication.ts";
import { answerText, serveLog } from "./logs.ts";
import { type Endpoint, endpointOf, metricPathOf } from "./path.ts";
import { type Lookup, lookUpPod, type PodSource } from "./pod-lookup.ts";
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
  readonly reviews: AccessReviews;
  readonly streams: Streams;
  readonly clock: Clock;
  readonly log: Logger;
}

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
  readonly #server: CertifiedServer;

  constructor(cluster: string, tls: TlsMaterial, options: NodeServerOptions) {
    this.#cluster = cluster;
    this.#options = options;
    const { source, clock, log } = options;
    this.#usage = new UsageReader({ cluster, source, clock, log });
    const node = virtualNodeName(cluster);
    this.#metrics = new KubeletMetrics(node, () => podsOfNode(source.proxiesOn(node)));
    this.#server = new CertifiedServer(tls, {
      onRequest: (request, response) => {
        response.once("close", this.#begin(request));
        void this.#onRequest(request, response);
      },
      onUpgrade: (request, socket, head) => {
        socket.once("close", this.#begin(request));
        void this.#onUpgrade(request, socket, head);
      },
      onError: (error) => log.error({ err: error, member: cluster }, "kubelet API"),
    });
  }

  listen(host: string, port: number): Promise<number> {
    return this.#server.listen(host, port);
  }

  renew(tls: TlsMaterial): void {
    this.#server.renew(tls);
  }

  /** Closes every connection except upgraded streams, which end by themselves. */
  close(): Promise<void> {
    return this.#server.close();
  }

  #begin(request: IncomingMessage): () => void {
    return this.#metrics.begin(request.method ?? "", metricPathOf(pathOf(request)));
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
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
    try {
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
      const found = await lookUpPod(source, this.#cluster, pod, container);
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
    const { authentication, reviews, log } = this.#options;
    try {
      const user = await authentication.userOf(request, this.#server.takesCertificates);
      if (user === undefined) return { status: 401, text: "Unauthorized" };
      const attributes = attributesOf(request.method ?? "", pathOf(request));
      if (await isAllowed(reviews, user, virtualNodeName(this.#cluster), attributes)) return undefined;
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
    const node = virtualNodeName(this.#cluster);
    switch (endpoint.kind) {
      case "healthz":
        return answerText(response, 200, "ok");
      case "metrics":
        return answerMetrics(response, await this.#metrics.text());
      case "resource":
        return answerMetrics(response, resourceMetrics(await this.#usage.read()));
      case "cadvisor":
        return answerMetrics(response, cadvisorMetrics(await this.#usage.read()));
      case "probes":
        return answerMetrics(response, PROBE_METRICS);
      case "stats":
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify(statsSummary(node, await this.#usage.read())));
        return;
      case "pods":
        return servePods(response, this.#options.source.proxiesOn(node));
      case "stream":
        return answerText(response, 400, "Upgrade request required");
      case "unknown":
        return answerText(response, 404, "404 page not found");
      case "log": {
        const { pod, container } = endpoint;
        const found = await lookUpPod(this.#options.source, this.#cluster, pod, container);
        if (found.problem !== undefined) {
          const { status, text } = refusalOf(found);
          return answerText(response, status, text);
        }
        await serveLog(request, response, { member: found.member, pod, container }, this.#options.clock);
      }
    }
  }
}

function answerMetrics(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": METRICS_CONTENT_TYPE }).end(text);
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
  refuse(socket, { status, headers: { "content-type": "text/plain; charset=utf-8" }, text }, clock);
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
