import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import { stringify } from "yaml";
import { z } from "zod";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { statusMessage } from "../../kube/json.ts";
import { pods } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { containerNames } from "../logs/containers.ts";
import type { Plan } from "../plan/outcome.ts";
import { checkHasWork, readPlan } from "../plan/read-plan.ts";
import { parseDocuments } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import type { Session } from "../shared/session.ts";
import { isWorkloadKind } from "../simulation/workloads.ts";
import { readJourney } from "../status/read-pod.ts";
import { readWorkload } from "../status/read-workload.ts";
import { LiveStream } from "./live-stream.ts";
import type { LiveView } from "./live-view.ts";
import type { PodView } from "./model.ts";
import type { PageFile } from "./page-files.ts";
import type { SignIn } from "./sign-in.ts";

export interface PageServerOptions {
  readonly host: ClusterClient;
  readonly hostName: string;
  /** Namespace of planned objects that name none. */
  readonly namespace: string;
  readonly view: LiveView;
  readonly files: ReadonlyMap<string, PageFile>;
  readonly signIn: SignIn;
  readonly session: Session;
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

const ref = z.object({ namespace: z.string().min(1).max(63), name: z.string().min(1).max(253) });
const workload = ref.extend({ kind: z.string().refine(isWorkloadKind) });
const logQuery = z.object({
  container: z.string().min(1).max(63),
  tail: z.coerce.number().int().min(1).max(100_000).default(1_000),
});

const MANIFEST = "the manifest";
const MOST_MANIFEST_BYTES = 2 ** 21;

/** Returns the page's server, not yet listening. All that it reads is read with the user's own rights, and it stores nothing. */
export function createPageServer(options: PageServerOptions): FastifyInstance {
  const { host, view, files, session } = options;
  const server = fastify({ logger: false, forceCloseConnections: true, exposeHeadRoutes: false });
  server.addHook("onRequest", async ({ raw }, reply) => {
    reply.headers(HEADERS);
    const admission = options.signIn.admit({
      url: raw.url ?? "/",
      headers: raw.headers,
      port: raw.socket.localPort ?? 0,
    });
    if (admission.kind === "refused") return reply.code(admission.status).type("text/plain").send(admission.message);
    if (admission.kind === "signIn") return reply.header("set-cookie", admission.cookie).redirect("/", 303);
    return undefined;
  });
  // The page sends manifests alone.
  server.removeAllContentTypeParsers();
  server.setErrorHandler((error, _request, reply) => {
    const { status, message } = problemOf(error);
    return reply.code(status).send({ message });
  });
  for (const [path, { type, content }] of files) {
    server.get(path, (_request, reply) => reply.type(type).send(content));
  }
  server.get("/api/live", async (_request, reply) => {
    await new LiveStream(view, streamOf(reply), realClock).run(options.hostName);
  });
  server.get("/api/pods/:namespace/:name", async (request): Promise<PodView> => {
    const { pod, journey } = await readJourney(host, ref.parse(request.params), session.signal);
    const { managedFields: _, ...metadata } = pod.metadata;
    return {
      journey,
      yaml: stringify({ apiVersion: "v1", kind: "Pod", ...pod, metadata }),
      containers: containerNames(pod),
    };
  });
  server.get("/api/pods/:namespace/:name/log", (request, reply) =>
    sendLog(host, ref.parse(request.params), logQuery.parse(request.query), reply),
  );
  server.get("/api/workloads/:kind/:namespace/:name", async (request) => {
    const { document } = await readWorkload(host, workload.parse(request.params), session);
    return document;
  });
  server.addContentTypeParser("application/yaml", { parseAs: "string" }, (_request, body, done) => done(null, body));
  server.post("/api/plan", { bodyLimit: MOST_MANIFEST_BYTES }, async (request): Promise<Plan> => {
    const objects = parseDocuments(z.string().parse(request.body), MANIFEST);
    checkHasWork(objects, MANIFEST);
    return await readPlan(host, objects, { namespace: options.namespace, signal: session.signal });
  });
  return server;
}

/** Follows a container's log until the page closes the connection. */
async function sendLog(
  host: ClusterClient,
  target: z.infer<typeof ref>,
  { container, tail }: z.infer<typeof logQuery>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const closed = new AbortController();
  reply.raw.once("close", () => closed.abort());
  const query = new URLSearchParams({ container, follow: "true", tailLines: String(tail) });
  const answer = await host.stream(pods, target, "log", { query, signal: closed.signal });
  if (answer.body === undefined) {
    return reply.code(502).send({ message: statusMessage(answer.text) ?? answer.text });
  }
  const response = streamOf(reply);
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
  // A log that the API server cuts ends the answer, too: the page says so.
  await pipeline(answer.body, response).catch(() => response.destroy());
  return reply;
}

/** Takes the response over from fastify, which would drop the headers. */
function streamOf(reply: FastifyReply): ServerResponse {
  reply.hijack();
  for (const [name, value] of Object.entries(HEADERS)) reply.raw.setHeader(name, value);
  return reply.raw;
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
