import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, PassThrough } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isKubeError, type KubeError } from "../kube/errors.ts";
import { statusMessage } from "../kube/json.ts";
import type { Clock } from "../runtime/clock.ts";
import { closeInTime } from "../runtime/joined-sockets.ts";
import { type PlainAnswer, refuse, statusAnswer } from "../runtime/upgrade-answers.ts";
import { CertifiedServer, type TlsMaterial } from "../serving/certified-server.ts";
import { UpgradedStreams } from "../serving/upgraded-streams.ts";
import type { Logger } from "../telemetry/logger.ts";
import { DISCOVERY } from "./discovery.ts";
import type { AdmittedRequest, Gate } from "./gate.ts";
import { isClusterPath } from "./path.ts";

export interface AccessServerOptions {
  readonly gate: Gate;
  /** Returns why `/readyz` must fail. */
  readonly notReady: () => string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

const STOPPING = "legation access is stopping: try again";
const PROTOCOLS = /^(websocket|spdy\/3\.1)$/i;

/** The aggregated API: answers discovery itself, and passes every other request on to the member that its path names. */
export class AccessServer {
  readonly #options: AccessServerOptions;
  readonly #server: CertifiedServer;
  readonly #streams: UpgradedStreams;

  constructor(tls: TlsMaterial, options: AccessServerOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#streams = new UpgradedStreams({ clock, stopping: STOPPING });
    this.#server = new CertifiedServer(tls, {
      onRequest: (request, response) => void this.#onRequest(request, response),
      onUpgrade: (request, socket, head) => void this.#onUpgrade(request, socket, head),
      onError: (error) => log.error({ err: error }, "access server"),
      // A body may be of any size, and its sender of any speed.
      requestTimeoutMs: 0,
    });
  }

  /** Rejects when the port is not available. */
  listen(host: string, port: number): Promise<number> {
    return this.#server.listen(host, port);
  }

  /** Throws when `tls` is unusable. */
  renew(tls: TlsMaterial): void {
    this.#server.renew(tls);
  }

  async close(): Promise<void> {
    await Promise.all([this.#streams.close(), this.#server.close()]);
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const admitted = await this.#admit(request);
      if ("status" in admitted) send(response, request.url, admitted);
      else await this.#forward(request, response, admitted);
    } catch (error) {
      this.#options.log.error({ err: error, url: request.url }, "request failed");
      if (response.headersSent) response.destroy();
      else
        send(
          response,
          request.url,
          statusAnswer("InternalError", "the request failed: see the log of legation access"),
        );
    }
  }

  async #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { clock, log } = this.#options;
    try {
      const problem = upgradeProblem(request);
      const admitted = problem === undefined ? await this.#admit(request) : statusAnswer("BadRequest", problem);
      if ("status" in admitted) {
        refuse(socket, admitted);
        closeInTime(socket, clock);
        return;
      }
      const { member, request: asked } = admitted;
      const ask: Parameters<UpgradedStreams["open"]>[0]["ask"] = async (signal) => {
        try {
          return await member.forwarder.upgrade({ ...asked, signal }, request.headers.upgrade ?? "");
        } catch (error) {
          if (!isKubeError(error)) throw error;
          return failed(error, member.name);
        }
      };
      await this.#streams.open({ socket, head, member: member.name, log: log.child({ member: member.name }), ask });
    } catch (error) {
      log.error({ err: error, url: request.url }, "upgrade failed");
      socket.destroy();
    }
  }

  async #admit(request: IncomingMessage): Promise<AdmittedRequest | PlainAnswer> {
    const { url = "" } = request;
    const [path = ""] = url.split("?", 1);
    if (HEALTH.has(path)) return this.#health(path);
    const user = this.#options.gate.user(request);
    if (user === undefined) return statusAnswer("Unauthorized", "Unauthorized");
    const document = DISCOVERY.get(path.replace(/\/$/, ""));
    if (document !== undefined) return { status: 200, headers: JSON_TYPE, text: JSON.stringify(document) };
    if (!isClusterPath(url)) return statusAnswer("NotFound", "the server could not find the requested resource");
    return this.#options.gate.admit(request, user);
  }

  #health(path: string): PlainAnswer {
    const reason = path === "/livez" ? undefined : this.#options.notReady();
    return {
      status: reason === undefined ? 200 : 503,
      headers: { "content-type": "text/plain" },
      text: reason ?? "ok",
    };
  }

  async #forward(
    request: IncomingMessage,
    response: ServerResponse,
    { member, request: asked }: AdmittedRequest,
  ): Promise<void> {
    const abort = new AbortController();
    response.once("close", () => abort.abort());
    const body = bodyOf(request);
    try {
      const answer = await member.forwarder.forward({
        ...asked,
        signal: abort.signal,
        ...(body === undefined ? {} : { body }),
      });
      if (answer.status === 401) {
        // The client's own credentials are the host's, and were accepted there.
        answer.body.destroy();
        send(response, request.url, refusedByMember(member.name));
        return;
      }
      response.writeHead(answer.status, [...answer.headers]);
      // A watch without events, or a log without lines, has begun.
      response.flushHeaders();
      await pipeline(answer.body, response).catch(() => {
        // Either side is gone, and the other one was cut with it.
      });
    } catch (error) {
      if (!isKubeError(error)) throw error;
      if (!response.destroyed) send(response, request.url, failed(error, member.name));
    }
  }
}

const HEALTH: ReadonlySet<string> = new Set(["/livez", "/readyz", "/healthz"]);
const JSON_TYPE = { "content-type": "application/json" };

// Paths of discovery in a member: /api, /api/v1, /apis, /apis/GROUP and /apis/GROUP/VERSION.
const MEMBER_DISCOVERY = /\/proxy\/(api(\/[^/?]*)?|apis(\/[^/?]*){0,2})(\?|$)/;

/** kubectl shows of a failed discovery the text, and nothing of a Status. */
function shown(url: string, answer: PlainAnswer): PlainAnswer {
  const message = answer.status < 400 || !MEMBER_DISCOVERY.test(url) ? undefined : statusMessage(answer.text);
  return message === undefined ? answer : { ...answer, headers: { "content-type": "text/plain" }, text: message };
}

function send(response: ServerResponse, url: string | undefined, answer: PlainAnswer): void {
  const { status, headers, text } = shown(url ?? "", answer);
  // The rest of a body that is not read must not be taken for the next request.
  const connection = response.req.complete ? {} : { connection: "close" };
  response.writeHead(status, { ...headers, ...connection }).end(text);
}

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

function refusedByMember(member: string): PlainAnswer {
  return statusAnswer(
    "ServiceUnavailable",
    `Cluster ${member} refuses the credentials of legation access: an administrator has to run \`legation join ${member} --access\` again`,
  );
}

function failed(error: KubeError, member: string): PlainAnswer {
  const { code, detail } = error;
  if (code === "AnswerLost") {
    return statusAnswer(
      "ServiceUnavailable",
      `Cluster ${member} did not answer; what was asked may have been done: ${detail}`,
    );
  }
  return statusAnswer("ServiceUnavailable", `Cluster ${member} cannot be reached: ${detail}`);
}
