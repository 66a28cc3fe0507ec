import type { Server } from "node:https";
import fastify, { type FastifyInstance } from "fastify";
import type { DelegatedType } from "../src/api/delegated-type.ts";
import type { Certificate } from "../src/certificates/issue.ts";
import type { GracefulShutdown } from "../src/serving/graceful-shutdown.ts";
import type { Logger } from "../src/telemetry/logger.ts";
import type { ReviewedName } from "../src/telemetry/traces.ts";
import { type AdmissionRequest, type ParsedReview, parseReview } from "./admission-review.ts";
import { dropLeftovers } from "./drop-leftovers.ts";
import { mutatePod } from "./mutate-pod.ts";
import { mutateWorkload } from "./mutate-workload.ts";
import { denied, reviewOf, type Verdict } from "./responses.ts";
import { restoreMarks } from "./restore-marks.ts";
import { validateNamespace } from "./validate-namespace.ts";
import type { FindType } from "./whole.ts";
import { mutateObject } from "./whole-objects.ts";

interface Call {
  readonly findType: FindType;
  readonly types: () => readonly DelegatedType[];
  readonly labelsSlots: boolean;
  /** A second call, which one path takes from namespaces of every mode. */
  readonly isAgain: boolean;
}

/** Handlers by path of the webhook configurations in manifests/. */
const HANDLERS: Readonly<Record<string, (request: AdmissionRequest, call: Call) => Verdict>> = {
  "/mutate/annotated": (request, { types, labelsSlots }) => mutatePod(request, "annotated", types(), labelsSlots),
  "/mutate/all": (request, { types, labelsSlots }) => mutatePod(request, "all", types(), labelsSlots),
  "/mutate/overflow": (request, { types, labelsSlots }) => mutatePod(request, "overflow", types(), labelsSlots),
  "/mutate/workload": (request, { isAgain, types }) => mutateWorkload(request, isAgain ? "any" : "all", types()),
  "/mutate/workload/annotated": (request, { types }) => mutateWorkload(request, "annotated", types()),
  "/mutate/workload/overflow": (request, { types }) => mutateWorkload(request, "overflow", types()),
  "/mutate/object": (request, { findType }) => mutateObject(request, findType),
  "/mutate/leftovers": (request, { findType }) => dropLeftovers(request, true, findType),
  "/mutate/leftovers/elsewhere": (request, { findType }) => dropLeftovers(request, false, findType),
  "/mutate/marks": restoreMarks,
  "/validate/namespace": validateNamespace,
};

// An UPDATE review carries two objects of up to 3 MiB; controller-runtime has the same limit.
const BODY_LIMIT = 7 * 1024 * 1024;
// API servers keep idle connections for 90 s and do not repeat a POST, so the server must not close first. Node
// counts opened but unused connections as requests.
const KEEP_ALIVE_MS = 120_000;
/** The timeout in the URL of a second call. */
const AGAIN_TIMEOUT = "timeout=4s";

export interface WebhookServerOptions {
  readonly certificate: Certificate;
  /** Returns why `/readyz` must fail. */
  readonly notReady: () => string | undefined;
  /** Default: no DelegatedType is known. */
  readonly findType?: FindType | undefined;
  /** Returns the DelegatedTypes that are known. Default: none. */
  readonly types?: (() => readonly DelegatedType[]) | undefined;
  /** Proxies get the label by which shards select them. Default: no, for a single shard. */
  readonly labelsSlots?: boolean | undefined;
  readonly log: Logger;
  /** Undefined if it never shuts down. */
  readonly shutdown?: GracefulShutdown;
  /** Called after each review, for metrics and traces. */
  readonly onReview?:
    | ((path: string, verdict: Verdict["kind"], seconds: number, review: ReviewedName) => void)
    | undefined;
}

/** Returns the webhook's HTTPS server, not yet listening. It keeps no state and calls no API. */
export function createWebhookServer(options: WebhookServerOptions): FastifyInstance<Server> {
  const { certificate, notReady, shutdown, findType = () => "unknown", types = () => [], log, onReview } = options;
  const { labelsSlots = false } = options;
  const server = fastify({
    https: { ...certificate, minVersion: "TLSv1.2", headersTimeout: KEEP_ALIVE_MS },
    bodyLimit: BODY_LIMIT,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: KEEP_ALIVE_MS,
    // Reviews during shutdown are answered, too.
    return503OnClosing: false,
    // The answer to a too large body does not wait for the rest of it.
    forceCloseConnections: "idle",
    logger: false,
  });
  server.addHook("onSend", async ({ raw }, reply) => {
    // The first call's replica may be dead, so a second call must not reuse a connection.
    if (isSecondCall(raw.url) || shutdown?.leaving === true) reply.header("connection", "close");
  });
  for (const [path, handle] of Object.entries(HANDLERS)) {
    server.post(path, (request, reply) => {
      const startedAt = performance.now();
      shutdown?.requested();
      const parsed = parseReview(request.body);
      if (!parsed.ok && parsed.uid === undefined) return reply.code(400).send({ message: parsed.message });
      const isAgain = isSecondCall(request.raw.url);
      const uid = parsed.ok ? parsed.request.uid : (parsed.uid ?? "");
      const verdict = parsed.ok
        ? judge((one) => handle(one, { findType, types, labelsSlots, isAgain }), parsed.request, log)
        : denied([parsed.message]);
      const { traceparent } = request.headers;
      onReview?.(path, verdict.kind, (performance.now() - startedAt) / 1000, {
        uid,
        ...nameOf(parsed),
        traceparent: typeof traceparent === "string" ? traceparent : undefined,
      });
      return reply.send(reviewOf(uid, verdict));
    });
  }
  server.get("/livez", () => "ok");
  server.get("/readyz", (_, reply) => {
    const reason = shutdown?.leaving === true ? "it is about to end" : notReady();
    return reason === undefined ? "ok" : reply.code(503).send(reason);
  });
  return server;
}

function nameOf(parsed: ParsedReview): Omit<ReviewedName, "uid" | "traceparent"> {
  const { kind, object, namespace } = parsed.ok ? parsed.request : {};
  const { name, generateName } = object?.metadata ?? {};
  return { kind: kind?.kind ?? "", namespace, name, generateName };
}

/** Runs a handler. A handler that throws is a defect: the object is refused. */
function judge(handle: (request: AdmissionRequest) => Verdict, request: AdmissionRequest, log: Logger): Verdict {
  try {
    return handle(request);
  } catch (error) {
    log.error({ err: error, kind: request.kind.kind }, "review failed");
    return denied(["Legation could not judge this object: see the log of its webhook"]);
  }
}

/** Reports whether the URL is that of a second call, as the API server adds the entry's timeout to it. */
function isSecondCall(url: string | undefined): boolean {
  return url?.endsWith(AGAIN_TIMEOUT) === true;
}
