import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Pod } from "../../api/kubernetes.ts";
import { statusMessage } from "../../kube/json.ts";
import { pods } from "../../kube/resources.ts";
import { chosenContainers, containerNames, logStateOf, whyNoLog } from "../logs/containers.ts";
import { isWorkloadKind } from "../simulation/workloads.ts";
import type { ContainerView, PodPageView } from "./model.ts";
import type { Viewer } from "./viewer.ts";

/** The parts of a request's handling that its routes need. */
export interface Routes {
  readonly server: FastifyInstance;
  readonly viewerOf: (request: FastifyRequest) => Viewer;
  /** Takes the response over from fastify, until it or the user's session ends. */
  readonly streamTo: (request: FastifyRequest, reply: FastifyReply) => ServerResponse;
}

const namespaceName = z.string().min(1).max(63);
const objectName = z.string().min(1).max(253);
const member = z.object({ name: objectName });
const inNamespace = z.object({ namespace: namespaceName });
const ref = member.extend({ namespace: namespaceName });
const NO_DIVISION = "has no division, since it is none of Kubernetes' own workloads; its delegated pods are below";
const workload = ref.extend({ kind: z.string().refine(isWorkloadKind, NO_DIVISION) });
// `_` stands for no namespace, which none can be named.
const whole = z.object({
  type: z.string().min(1).max(253),
  namespace: namespaceName.transform((name) => (name === "_" ? undefined : name)),
  name: objectName,
});
const copy = whole.extend({ member: objectName });
const logQuery = z.object({
  container: z.string().min(1).max(63),
  tail: z.coerce.number().int().min(1).max(100_000).default(1_000),
  previous: z.enum(["true", "false"]).default("false"),
});

const MANIFEST = "the manifest";
const MOST_MANIFEST_BYTES = 2 ** 21;

/** Adds the routes that read one object, or plan a manifest. Their code takes memory once it is asked for. */
export function addReads({ server, viewerOf, streamTo }: Routes): void {
  const read = (path: string, answer: (viewer: Viewer, params: unknown) => Promise<object>): void =>
    void server.get(`/api/${path}`, (request) => answer(viewerOf(request), request.params));
  read("jobs", async (viewer) => (await import("./job-rows.ts")).readJobRows(viewer));
  read("queues", async (viewer) => (await import("./queues-view.ts")).readQueuesView(viewer));
  read("warnings", async (viewer) => (await import("./warnings.ts")).readWarnings(viewer));
  read("services", async (viewer) => (await import("./service-rows.ts")).readServiceNames(viewer));
  read("services/:namespace", async (viewer, params) => {
    const { readServiceRows } = await import("./service-rows.ts");
    return readServiceRows(viewer, inNamespace.parse(params).namespace);
  });
  read("services/:namespace/:name", async ({ host, signal }, params) => {
    const { readService } = await import("../explain/service.ts");
    return readService(host, ref.parse(params), signal);
  });
  read("members/:name", async (viewer, params) => {
    const { readMemberPage } = await import("./member-page.ts");
    return readMemberPage(viewer, member.parse(params).name);
  });
  read("workloads/:kind/:namespace/:name", async ({ host, signal }, params) => {
    const { readWorkload } = await import("../explain/read-workload.ts");
    return readWorkload(host, workload.parse(params), signal);
  });
  read("objects/:type/:namespace/:name", async ({ host, signal }, params) => {
    const { type: word, namespace = "", name } = whole.parse(params);
    const { readWholeObject } = await import("../explain/whole-object.ts");
    return readWholeObject(host, { word, namespace, name }, signal);
  });
  read("objects/:type/:namespace/:name/in/:member", async (viewer, params) => {
    const { compareObject } = await import("./compared.ts");
    return compareObject(viewer, copy.parse(params));
  });
  read("pods/:namespace/:name", async ({ host, members, signal }, params): Promise<PodPageView> => {
    const { readJourney } = await import("../explain/read-pod.ts");
    const open = (name: string): ReturnType<typeof members.client> => members.client(name);
    const { pod, journey } = await readJourney(host, ref.parse(params), { open, signal });
    const [defaultContainer] = chosenContainers(pod, { all: false });
    return { journey, containers: containersOf(pod), defaultContainer };
  });
  read("pods/:namespace/:name/delegate", async (viewer, params) => {
    const { compareDelegate } = await import("./compared.ts");
    return compareDelegate(viewer, ref.parse(params));
  });
  server.get("/api/pods/:namespace/:name/log", (request, reply) => {
    const viewer = viewerOf(request);
    const target = ref.parse(request.params);
    return sendLog(viewer, target, logQuery.parse(request.query), { reply, stream: () => streamTo(request, reply) });
  });
  server.addContentTypeParser("application/yaml", { parseAs: "string" }, (_request, body, done) => done(null, body));
  server.post("/api/plan", { bodyLimit: MOST_MANIFEST_BYTES }, async (request) => {
    const { host, namespace, signal } = viewerOf(request);
    const { checkHasWork, readPlan } = await import("../plan/plan.ts");
    const { parseDocuments } = await import("../shared/documents.ts");
    const objects = parseDocuments(z.string().parse(request.body), MANIFEST);
    checkHasWork(objects, MANIFEST);
    return readPlan(host, objects, { namespace, signal });
  });
}

function containersOf(pod: Pod): ContainerView[] {
  const { initContainers = [], ephemeralContainers = [] } = pod.spec ?? {};
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  return containerNames(pod).map((name) => {
    const isIt = (each: { readonly name: string }): boolean => each.name === name;
    const log = logStateOf(pod, name);
    return {
      name,
      kind: initContainers.some(isIt) ? "init" : ephemeralContainers.some(isIt) ? "debug" : "container",
      log,
      why: log === "none" || log === "never" ? whyNoLog(pod, name) : undefined,
      restarts: [...initContainerStatuses, ...containerStatuses].find(isIt)?.restartCount ?? 0,
    };
  });
}

/** Follows a container's log until the page closes the connection. */
async function sendLog(
  { host }: Viewer,
  target: z.infer<typeof ref>,
  { container, tail, previous }: z.infer<typeof logQuery>,
  { reply, stream }: { readonly reply: FastifyReply; readonly stream: () => ServerResponse },
): Promise<FastifyReply> {
  const closed = new AbortController();
  reply.raw.once("close", () => closed.abort());
  const query = new URLSearchParams({ container, follow: "true", tailLines: String(tail) });
  if (previous === "true") query.set("previous", "true");
  const answer = await host.stream(pods, target, "log", { query, signal: closed.signal });
  if (answer.body === undefined) {
    // A user who may not read logs is no failure of the cluster.
    const status = answer.status === 403 || answer.status === 404 ? answer.status : 502;
    return reply.code(status).send({ message: statusMessage(answer.text) ?? answer.text });
  }
  const response = stream();
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
  // The page follows a silent log from its first moment on.
  response.flushHeaders();
  // A log that the API server cuts ends the answer, too: the page says so.
  await pipeline(answer.body, response).catch(() => response.destroy());
  return reply;
}
