import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, PassThrough } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { UpgradeAnswer } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { type Clock, every, type Timer } from "../runtime/clock.ts";
import { type PlainAnswer, refuse, statusAnswer } from "../runtime/upgrade-answers.ts";
import { CertifiedServer, type TlsMaterial } from "../serving/certified-server.ts";
import { GracefulShutdown } from "../serving/graceful-shutdown.ts";
import { type StreamRequest, UpgradedStreams } from "../serving/upgraded-streams.ts";
import type { AccessMetrics } from "../telemetry/access.ts";
import type { Logger } from "../telemetry/logger.ts";
import {
  failed,
  headerNames,
  safeHeaders,
  safeUpgrade,
  send,
  slashedPath,
  tooMany,
  unsafeResponse,
} from "./answers.ts";
import { DISCOVERY } from "./discovery.ts";
import type { AccessGate, AdmittedRequest } from "./gate.ts";
import { InFlight, type InFlightLimits } from "./in-flight.ts";
import type { AccessMember } from "./members.ts";
import { isClusterPath } from "./path.ts";

export interface AccessServerOptions {
  readonly gate: AccessGate;
  /** Returns why `/readyz` must fail. */
  readonly notReady: () => string | undefined;
  /** Default: those for one process in the cluster. */
  readonly limits?: InFlightLimits;
  /** Most connections without a certificate. Default: above the connections that API servers open at the same moment. */
  readonly mostStrangers?: number;
  readonly metrics?: AccessMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

const STOPPING = "legation access is stopping: try again";
const PROTOCOLS = /^(websocket|spdy\/3\.1)$/i;
// Other requests that are in flight at the end get this long; watches and streams begin anew elsewhere.
const LAST_REQUESTS_MS = 10_000;
// Kubelets' probes, connections of the host's API servers during the handshake, and strangers.
const MOST_STRANGERS = 3_000;
// A member that is known not to answer is waited for this long, since it may be back.
const TROUBLED_MS = 10_000;

/** The aggregated API: answers discovery itself, and passes every other request on to the member that its path names. */
export class AccessServer {
  readonly #options: AccessServerOptions;
  readonly #server: CertifiedServer;
  readonly #streams: UpgradedStreams;
  readonly #shutdown: GracefulShutdown;
  readonly #inFlight: InFlight;
  /** Requests in flight that are no watches. */
  readonly #ending = new Set<Promise<void>>();

  constructor(tls: TlsMaterial, options: AccessServerOptions) {
    this.#options = options;
    const { clock, log, limits, mostStrangers = MOST_STRANGERS } = options;
    this.#streams = new UpgradedStreams({ clock, stopping: STOPPING });
    this.#shutdown = new GracefulShutdown(clock);
    this.#inFlight = new InFlight(limits);
    this.#server = new CertifiedServer(tls, {
      onRequest: (request, response) => void this.#onRequest(request, response),
      onUpgrade: (request, socket, head) => void this.#onUpgrade(request, socket, head),
      onError: (error) => log.error({ err: error }, "access server"),
      // A body may be of any size, and its sender of any speed.
      requestTimeoutMs: 0,
      mostStrangers,
    });
  }

  listen(host: string, port: number): Promise<number> {
    return this.#server.listen(host, port);
  }

  renew(tls: TlsMaterial): void {
    this.#server.renew(tls);
  }

  /** Answers until no request comes any more, lets those in flight end for a while, and cuts watches and streams. */
  async close(): Promise<void> {
    await this.#shutdown.begin();
    const listening = this.#server.stopListening();
    const late = Promise.withResolvers<void>();
    const timer = this.#options.clock.after(LAST_REQUESTS_MS, late.resolve);
    await Promise.race([late.promise, Promise.allSettled(this.#ending)]);
    timer.cancel();
    await Promise.all([this.#streams.close(), this.#server.close(), listening]);
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#shutdown.requested();
    try {
      const admitted = await this.#admit(request, response);
      // The client is gone: its end would not be told again.
      if (response.destroyed) return;
      const cluster = "member" in admitted ? admitted.member.name : "";
      response.once("close", () => this.#options.metrics?.count(cluster, response.statusCode));
      if ("status" in admitted) this.#send(response, admitted);
      else {
        const forwarded = this.#forward(request, response, admitted);
        await (isWatch(admitted.request.path) ? forwarded : this.#noteEnd(forwarded));
      }
    } catch (error) {
      this.#options.log.error({ err: error, url: request.url }, "request failed");
      if (response.headersSent) response.destroy();
      else this.#send(response, statusAnswer("InternalError", "the request failed: see the log of legation access"));
    }
  }

  async #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { clock, log } = this.#options;
    this.#shutdown.requested();
    try {
      const problem = upgradeProblem(request);
      const admitted = problem === undefined ? await this.#admit(request, socket) : statusAnswer("BadRequest", problem);
      if (socket.destroyed) return;
      if ("status" in admitted) {
        this.#options.metrics?.count("", admitted.status);
        refuse(socket, admitted, clock);
        return;
      }
      const { name } = admitted.member;
      const ask: StreamRequest["ask"] = (signal) => this.#upgrade(request, socket, admitted, signal);
      await this.#streams.open({ socket, head, member: name, log: log.child({ member: name }), ask });
    } catch (error) {
      log.error({ err: error, url: request.url }, "upgrade failed");
      socket.destroy();
    }
  }

  /** Decides about a request, which counts as in flight until `until` is closed. */
  async #admit(request: IncomingMessage, until: Duplex | ServerResponse): Promise<AdmittedRequest | PlainAnswer> {
    const { url = "" } = request;
    const [path = ""] = url.split("?", 1);
    if (HEALTH.has(path)) return this.#health(path);
    const user = this.#options.gate.user(request);
    if (user === undefined) return statusAnswer("Unauthorized", "Unauthorized");
    const document = DISCOVERY.get(path.replace(/\/$/, ""));
    if (document !== undefined) return { status: 200, headers: JSON_TYPE, text: JSON.stringify(document) };
    if (!isClusterPath(url)) return statusAnswer("NotFound", "the server could not find the requested resource");
    // Begins before the host is asked for the user's rights, so that a flood of one user delays no answer for others.
    const end = this.#inFlight.begin(user.name);
    if (end === undefined) return tooMany();
    until.once("close", end);
    return this.#options.gate.admit(request, user);
  }

  #health(path: string): PlainAnswer {
    const reason =
      path === "/livez" ? undefined : this.#shutdown.leaving ? "it is about to end" : this.#options.notReady();
    return {
      status: reason === undefined ? 200 : 503,
      headers: { "content-type": "text/plain" },
      text: reason ?? "ok",
    };
  }

  async #forward(request: IncomingMessage, response: ServerResponse, admitted: AdmittedRequest): Promise<void> {
    const { member, request: asked } = admitted;
    const counted = this.#options.metrics?.begin(member.name);
    const abort = new AbortController();
    response.once("close", () => {
      abort.abort();
      counted?.ended();
    });
    const body = bodyOf(request);
    const sent = { ...asked, signal: abort.signal, ...(body === undefined ? {} : { body }) };
    const trouble = this.#onTrouble(member, abort);
    try {
      const first = await member.forwarder.forward(sent);
      // The host's API server passes no redirect on. A body has been sent, and cannot be sent again.
      const mayRepeat = isRead(asked) && body === undefined;
      const slashed = mayRepeat ? slashedPath(asked.path, first.status, first.headers) : undefined;
      if (slashed !== undefined) first.body.destroy();
      const answer = slashed === undefined ? first : await member.forwarder.forward({ ...sent, path: slashed });
      trouble.cancel();
      counted?.responded();
      const refusal = unsafeResponse(member.name, answer.status, headerNames(answer.headers));
      if (refusal !== undefined) {
        answer.body.destroy();
        this.#send(response, refusal);
        return;
      }
      response.writeHead(answer.status, [
        ...safeHeaders(answer.headers),
        ...(this.#shutdown.leaving ? ["connection", "close"] : []),
      ]);
      // A watch without events, or a log without lines, has begun.
      response.flushHeaders();
      await pipeline(answer.body, response).catch(() => {
        // Either side is gone, and the other one was cut with it.
      });
      // A member that answers early reads no more of the body; the rest must not block the connection.
      if (!request.complete) request.resume();
    } catch (error) {
      if (!isKubeError(error)) throw error;
      if (!response.destroyed) this.#send(response, failed(error, member.name, member.trouble()));
    } finally {
      trouble.cancel();
    }
  }

  async #upgrade(
    request: IncomingMessage,
    socket: Duplex,
    admitted: AdmittedRequest,
    signal: AbortSignal,
  ): Promise<UpgradeAnswer> {
    const { member, request: asked } = admitted;
    const count = (answer: UpgradeAnswer): UpgradeAnswer => {
      this.#options.metrics?.count(member.name, answer.socket === undefined ? answer.status : 101);
      return answer;
    };
    const counted = this.#options.metrics?.begin(member.name);
    socket.once("close", () => counted?.ended());
    const abort = new AbortController();
    const trouble = this.#onTrouble(member, abort);
    try {
      const both = AbortSignal.any([signal, abort.signal]);
      const answer = await member.forwarder.upgrade({ ...asked, signal: both }, request.headers.upgrade ?? "");
      counted?.responded();
      return count(safeUpgrade(member.name, answer));
    } catch (error) {
      if (!isKubeError(error)) throw error;
      return count(failed(error, member.name, member.trouble()));
    } finally {
      trouble.cancel();
    }
  }

  /** Gives a request up whose response has not begun, once the controller knows that the member does not answer. */
  #onTrouble(member: AccessMember, abort: AbortController): Timer {
    return every(this.#options.clock, TROUBLED_MS, () => {
      if (member.trouble() !== undefined) abort.abort();
      return !abort.signal.aborted;
    });
  }

  async #noteEnd(ended: Promise<void>): Promise<void> {
    this.#ending.add(ended);
    try {
      await ended;
    } finally {
      this.#ending.delete(ended);
    }
  }

  #send(response: ServerResponse, answer: PlainAnswer): void {
    send(response, answer, this.#shutdown.leaving);
  }
}

const HEALTH: ReadonlySet<string> = new Set(["/livez", "/readyz", "/healthz"]);
const JSON_TYPE = { "content-type": "application/json" };

/** Returns the body as a stream whose failure leaves the client's connection open for the answer. */
function bodyOf(request: IncomingMessage): PassThrough | undefined {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  if (encoding === undefined && (length === undefined || length === "0")) return undefined;
  const body = new PassThrough();
  body.on("error", () => {});
  request.once("close", () => {
    if (!request.complete) body.destroy(new Error("the client's request was cut"));
  });
  request.pipe(body);
  return body;
}

function upgradeProblem({ headers }: IncomingMessage): string | undefined {
  const { upgrade = "", "content-length": length = "0", "transfer-encoding": encoding } = headers;
  if (!PROTOCOLS.test(upgrade)) return `the protocol ${upgrade} is not passed on: write websocket or SPDY/3.1`;
  return length === "0" && encoding === undefined ? undefined : "an upgrade request has no body";
}

function isRead({ method }: AdmittedRequest["request"]): boolean {
  return method === "GET" || method === "HEAD";
}

/** Reports whether a request has no end of its own, so that waiting for it would be in vain. */
function isWatch(path: string): boolean {
  const query = new URLSearchParams(path.split("?")[1]);
  return ["watch", "follow"].some((name) => ["true", "1"].includes(query.get(name) ?? ""));
}
