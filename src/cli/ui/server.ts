import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { z } from "zod";
import type { Certificate } from "../../certificates/issue.ts";
import { isKubeError } from "../../kube/errors.ts";
import { realClock } from "../../runtime/clock.ts";
import { Strangers } from "../../runtime/strangers.ts";
import { Failure } from "../shared/failure.ts";
import type { PageGate, PageRequest } from "./gate.ts";
import { LiveStream } from "./live-stream.ts";
import type { SignedIn } from "./model.ts";
import type { PageFile } from "./page-files.ts";
import { addReads } from "./reads.ts";
import type { Viewer } from "./viewer.ts";

export interface PageServerOptions {
  readonly files: ReadonlyMap<string, PageFile>;
  readonly gate: PageGate;
  /** Serves HTTPS with this certificate. Undefined: HTTP. */
  readonly certificate?: Certificate | undefined;
  /** Networks (CIDR) of proxies whose `X-Forwarded-For` names the browser's address. Default: none. */
  readonly trustedProxies?: readonly string[];
  /** Most connections without a session. */
  readonly mostStrangers?: number;
}

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};
// Routes have no JSON schema: zod checks their input. The compilers that fastify would load for schemas take 3 MB.
const noCompiler = (): never => {
  throw new Error("routes of the page have no JSON schema");
};
const NO_SCHEMAS = { compilersFactory: { buildValidator: () => noCompiler, buildSerializer: () => noCompiler } };
const SESSION_ROUTE = "/api/session";
// The kubelet asks by the pod's address.
const PROBES: ReadonlySet<string> = new Set(["/livez"]);
const LONGEST_TOKEN = 2 ** 14;
// Kubelets' probes, browsers that have not signed in, and strangers.
const MOST_STRANGERS = 500;
const HANDSHAKE_MS = 10_000;
// Headers and body; answers may go on.
const REQUEST_MS = 60_000;
const CHECK_CONNECTIONS_MS = 5_000;
// The longest name of an object, with each character escaped.
const LONGEST_PARAMETER = 3 * 253;
const givenToken = z.object({
  token: z.string().trim().min(1).max(LONGEST_TOKEN),
  namespace: z
    .string()
    .trim()
    .max(63)
    .optional()
    .transform((name) => name || undefined),
});

/** Returns the page's server, not yet listening. All that it reads is read with the user's own rights, and it stores nothing. */
export function createPageServer(options: PageServerOptions): FastifyInstance {
  const { files, gate, certificate, trustedProxies = [], mostStrangers = MOST_STRANGERS } = options;
  const common = {
    logger: false,
    forceCloseConnections: true,
    exposeHeadRoutes: false,
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    requestTimeout: REQUEST_MS,
    schemaController: NO_SCHEMAS,
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
  } as const;
  const timeouts = { headersTimeout: REQUEST_MS, connectionsCheckingInterval: CHECK_CONNECTIONS_MS };
  // Both kinds of server have the same routes.
  const server: FastifyInstance =
    certificate === undefined
      ? fastify({ ...common, http: timeouts })
      : (fastify({
          ...common,
          https: { ...certificate, ...timeouts, minVersion: "TLSv1.2", handshakeTimeout: HANDSHAKE_MS },
        }) as unknown as FastifyInstance);
  const strangers = new Strangers(mostStrangers);
  server.server.on("connection", (socket: Socket) => strangers.add(socket));
  const viewers = new WeakMap<IncomingMessage, Viewer>();
  const pageRequest = (request: FastifyRequest): PageRequest => {
    const { method, raw, routeOptions } = request;
    // The path of the route, since the router decodes that of the request.
    const { url: route = "" } = routeOptions;
    const isSignIn = route === SESSION_ROUTE && method === "POST";
    return {
      url: raw.url ?? "/",
      headers: raw.headers,
      route: files.has(route) ? "file" : isSignIn ? "signIn" : "other",
      from: request.ip,
      port: raw.socket.localPort ?? 0,
    };
  };
  server.addHook("onRequest", async (request, reply) => {
    const { raw } = request;
    reply.headers(HEADERS);
    if (PROBES.has(raw.url ?? "")) return undefined;
    const admission = gate.admit(pageRequest(request));
    if (admission.kind === "refused") {
      // Tells the page that a token is wanted.
      if (admission.status === 401 && gate.by === "token") reply.header("www-authenticate", "Bearer");
      return reply.code(admission.status).type("text/plain").send(admission.message);
    }
    if (admission.kind === "signIn") return reply.header("set-cookie", admission.cookie).redirect("/", 303);
    if (admission.kind === "allowed") {
      viewers.set(raw, admission.viewer);
      strangers.verified(raw.socket);
    }
    return undefined;
  });
  // Pages of other origins may send plain text without asking first, and no JSON.
  server.removeContentTypeParser("text/plain");
  server.setErrorHandler((error, _request, reply) => {
    const { status, message } = problemOf(error);
    return reply.code(status).send({ message });
  });
  for (const probe of PROBES) server.get(probe, () => "ok");
  for (const [path, { type, content }] of files) {
    server.get(path, (_request, reply) => reply.type(type).send(content));
  }
  const viewerOf = ({ raw }: FastifyRequest): Viewer => {
    const viewer = viewers.get(raw);
    if (viewer === undefined) throw Object.assign(new Error("sign in first"), { statusCode: 401 });
    return viewer;
  };
  const streamTo = (request: FastifyRequest, reply: FastifyReply): ServerResponse => {
    const { signal } = viewerOf(request);
    reply.hijack();
    const { raw } = reply;
    // A hijacked response lacks the headers that fastify holds.
    for (const [name, value] of Object.entries(HEADERS)) raw.setHeader(name, value);
    const end = (): void => void raw.destroy();
    signal.addEventListener("abort", end, { once: true });
    raw.once("close", () => signal.removeEventListener("abort", end));
    return raw;
  };
  server.get(SESSION_ROUTE, (request): SignedIn => ({ by: gate.by, user: viewerOf(request).user }));
  addSignIn(server, gate, pageRequest);
  server.get("/api/live", async (request, reply) => {
    const { view, hostName } = viewerOf(request);
    const response = streamTo(request, reply);
    try {
      // Without TLS the browser is on this machine.
      const isZipped = certificate !== undefined && /\bgzip\b/.test(String(request.headers["accept-encoding"]));
      await new LiveStream(view.take(), response, { clock: realClock, isZipped }).run(hostName);
    } finally {
      view.giveBack();
    }
  });
  addReads({ server, viewerOf, streamTo });
  return server;
}

function addSignIn(
  server: FastifyInstance,
  gate: PageGate,
  pageRequest: (request: FastifyRequest) => PageRequest,
): void {
  server.post(SESSION_ROUTE, { bodyLimit: 2 * LONGEST_TOKEN }, async (request, reply) => {
    if (gate.signIn === undefined) return reply.code(404).send({ message: "tokens are not taken here" });
    const admission = await gate.signIn(givenToken.parse(request.body), pageRequest(request));
    if (admission.kind === "refused") return reply.code(admission.status).send({ message: admission.message });
    return reply.header("set-cookie", admission.cookie).send({});
  });
  server.delete(SESSION_ROUTE, (request, reply) => {
    if (gate.signOut === undefined) return reply.code(404).send({ message: "there is nothing to sign out of" });
    return reply.header("set-cookie", gate.signOut(pageRequest(request))).send({});
  });
}

function problemOf(error: unknown): { readonly status: number; readonly message: string } {
  if (error instanceof z.ZodError) return { status: 400, message: z.prettifyError(error) };
  if (error instanceof Failure) {
    const message = error.remedy === undefined ? error.message : `${error.message}; ${error.remedy}`;
    return { status: isKubeError(error.cause, "Forbidden") ? 403 : 404, message };
  }
  if (error instanceof Error && "statusCode" in error)
    return { status: Number(error.statusCode), message: error.message };
  if (isKubeError(error, "Forbidden")) return { status: 403, message: error.message };
  return { status: 502, message: error instanceof Error ? error.message : String(error) };
}
