import { connect } from "node:net";
import fc from "fast-check";
import fastJsonPatch, { type Operation } from "fast-json-patch";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { issueAuthority } from "../../../src/certificates/issue.ts";
import { loadManifests } from "../../../src/cli/shared/manifests.ts";
import { toOverflow } from "../../../src/pods/overflow.ts";
import { isProxy, toProxy } from "../../../src/pods/proxy.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import type { ReviewedName } from "../../../src/telemetry/traces.ts";
import { createWebhookServer } from "../../../webhook/server.ts";
import { pod } from "../../support/builders/pod.ts";
import { MANIFESTS } from "../../support/harness/installed.ts";
import { review } from "./reviews.ts";

const PATHS = [
  "/mutate/annotated",
  "/mutate/all",
  "/mutate/overflow",
  "/mutate/workload",
  "/mutate/workload/annotated",
  "/mutate/workload/overflow",
  "/validate/namespace",
];

let server: FastifyInstance;
let reason: string | undefined;
const reviews: string[] = [];
const reviewed: ReviewedName[] = [];

beforeAll(async () => {
  const certificate = await issueAuthority("test", { now: Date.now(), lifetimeMs: 3_600_000 });
  const log = createLogger({ level: "silent" });
  const onReview = (path: string, verdict: string, _seconds: number, review: ReviewedName): void => {
    reviews.push(`${path} ${verdict}`);
    reviewed.push(review);
  };
  server = createWebhookServer({ certificate, notReady: () => reason, log, onReview });
});
afterAll(() => server.close());

const answerSchema = z.strictObject({
  apiVersion: z.literal("admission.k8s.io/v1"),
  kind: z.literal("AdmissionReview"),
  response: z.strictObject({
    uid: z.string(),
    allowed: z.boolean(),
    status: z.strictObject({ code: z.int(), reason: z.string(), message: z.string().min(1) }).optional(),
    warnings: z.array(z.string().max(256)).optional(),
    patchType: z.literal("JSONPatch").optional(),
    patch: z.base64().optional(),
  }),
});
type Answer = z.output<typeof answerSchema>["response"];

async function post(
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; answer: Answer | undefined }> {
  const payload = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const { statusCode: status, body: text } = await server.inject({
    method: "POST",
    url: path,
    headers: { "content-type": "application/json", ...headers },
    payload,
  });
  return { status, answer: status === 200 ? answerSchema.parse(JSON.parse(text)).response : undefined };
}

function patchOf({ patch }: Answer): Operation[] {
  return patch === undefined ? [] : JSON.parse(Buffer.from(patch, "base64").toString());
}

describe("a review", () => {
  test("is answered with its own uid and a patch", async () => {
    const { answer } = await post("/mutate/all", review({ object: pod() }));
    expect(answer).toMatchObject({ uid: "review-1", allowed: true, patchType: "JSONPatch" });
    expect(reviews.at(-1)).toBe("/mutate/all patched");
  });

  test("is traced with its names and the API server's span", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const object = { ...pod(), metadata: { generateName: "web-" } };
    await post("/mutate/all", review({ object }), { traceparent });
    const about = { uid: "review-1", kind: "Pod", name: undefined, generateName: "web-" };
    expect(reviewed.at(-1)).toMatchObject({ ...about, traceparent });
    await post("/mutate/all", review({ object: pod() }));
    expect(reviewed.at(-1)).toMatchObject({ generateName: undefined, traceparent: undefined });
  });

  test("is answered with a denial that names the problem", async () => {
    const object = pod({ metadata: { annotations: { "legation.dev/delegate": "maybe" } } });
    expect((await post("/mutate/annotated", review({ object }))).answer).toEqual({
      uid: "review-1",
      allowed: false,
      status: { code: 422, reason: "Invalid", message: expect.stringContaining('"maybe" is neither') },
    });
  });

  test("is answered equally for a dry run", async () => {
    const body = { ...review({ object: pod() }) };
    const dry = JSON.parse(JSON.stringify(body).replace('"dryRun":false', '"dryRun":true'));
    expect(await post("/mutate/all", dry)).toEqual(await post("/mutate/all", body));
  });

  test("may have two objects of 3 MiB", async () => {
    const object = pod({ spec: { containers: [{ name: "main", args: ["x".repeat(3 * 1024 * 1024)] }] } });
    expect((await post("/mutate/all", review({ object, oldObject: object }))).answer?.allowed).toBe(true);
  });
});

test("denies an object if the handler throws", async () => {
  const certificate = await issueAuthority("test", { now: Date.now(), lifetimeMs: 3_600_000 });
  const log = createLogger({ level: "silent" });
  const failing = createWebhookServer({ certificate, notReady: () => undefined, log });
  onTestFinished(() => failing.close());
  const spec = new Proxy({}, { get: () => expect.unreachable(), ownKeys: () => expect.unreachable() });
  failing.addHook("preHandler", async (request) => {
    request.body = review({ object: { ...pod(), spec } });
  });
  const { body } = await failing.inject({ method: "POST", url: "/mutate/all", payload: {} });
  const { response } = JSON.parse(body);
  expect(response.allowed).toBe(false);
  expect(response.status.message).toContain("could not judge");
});

describe("a malformed request", () => {
  test.each<[string, unknown, number]>([
    ["nothing", "", 400],
    ["no JSON", "{", 400],
    ["no review", { kind: "Pod" }, 400],
    ["a list", [1], 400],
    ["null", "null", 400],
    ["a body above 7 MiB", "x".repeat(7 * 1024 * 1024 + 1), 413],
    ["bytes", Buffer.from([0xff, 0xfe, 0x00]), 400],
  ])("is refused, and the next one answered: %s", async (_, body, status) => {
    expect((await post("/mutate/all", body)).status).toBe(status);
    expect((await post("/mutate/all", review({ object: pod() }))).status).toBe(200);
  });

  test.each<[string, object]>([
    ["another version", { ...review({}), apiVersion: "admission.k8s.io/v1beta1" }],
    ["an object without metadata", review({ object: { spec: {} } })],
    ["labels that are no strings", review({ object: { metadata: { labels: { a: 1 } }, spec: {} } })],
    ["an unknown operation", JSON.parse(JSON.stringify(review({})).replace("CREATE", "MERGE"))],
  ])("is denied with its uid: %s", async (_, body) => {
    const { answer } = await post("/mutate/all", body);
    expect(answer).toMatchObject({ uid: "review-1", allowed: false });
    expect(answer?.status?.message).toMatch(/^not an admission review that Legation understands: /);
  });

  test.each([
    ["GET", "/mutate/all", 404],
    ["POST", "/mutate/other", 404],
  ] as const)("is refused: %s %s", async (method, url, status) => {
    expect((await server.inject({ method, url, payload: {} })).statusCode).toBe(status);
  });
});

test("keeps idle connections, used or not, longer than API servers' 90 s", () => {
  const { keepAliveTimeout, requestTimeout, headersTimeout } = server.server;
  expect(Math.min(keepAliveTimeout, requestTimeout, headersTimeout)).toBeGreaterThan(90_000);
});

test("closes connections without TLS and serves the others", async () => {
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const garbage = connect({ host: "127.0.0.1", port: Number(new URL(url).port) });
  garbage.on("error", () => {});
  garbage.write("GET / HTTP/1.0\r\n\r\n");
  await new Promise((resolve) => garbage.once("close", resolve));
  expect((await post("/mutate/all", review({ object: pod() }))).status).toBe(200);
});

test("closes the connection of a second call only", async () => {
  const entry = z.object({
    name: z.string(),
    clientConfig: z.object({ service: z.object({ path: z.string() }) }),
    timeoutSeconds: z.int(),
  });
  const manifests = await loadManifests(MANIFESTS);
  const configuration = z.object({ webhooks: z.array(entry) });
  const entries = manifests.flatMap((manifest) => configuration.safeParse(manifest).data?.webhooks ?? []);
  expect(entries).toHaveLength(17);
  for (const { name, clientConfig, timeoutSeconds } of entries) {
    // The request as an API server sends it.
    const url = `${clientConfig.service.path}?timeout=${timeoutSeconds}s`;
    const { headers } = await server.inject({ method: "POST", url, payload: review({ object: pod() }) });
    expect({ name, ends: headers.connection === "close" }).toEqual({ name, ends: /-again\./.test(name) });
  }
});

test("separates liveness from readiness", async () => {
  const status = async (url: string): Promise<number> => (await server.inject({ method: "GET", url })).statusCode;
  reason = "not trusted yet";
  expect([await status("/livez"), await status("/readyz")]).toEqual([200, 503]);
  reason = undefined;
  expect([await status("/livez"), await status("/readyz")]).toEqual([200, 200]);
});

const KEYS = ["delegate", "clusters", "cluster-selector", "cluster", "scheduler-name", "group", "mode", "delegat"].map(
  (name) => `legation.dev/${name}`,
);
const key = fc.oneof(
  fc.constantFrom(...KEYS, "legation.dev/host", "legation.dev/proxy", "kubernetes.io/config.mirror", "__proto__"),
  fc.string(),
);
const value = fc.oneof(
  fc.constantFrom("true", "false", "west,east", "gpu in (a)", "overflow", "always", ""),
  fc.string(),
);
// Values that are right are rare among the others, and what is refused is not changed.
const rightValues = fc.record(
  {
    "legation.dev/delegate": fc.constant("true"),
    "legation.dev/clusters": fc.constantFrom("west", "west,east"),
    "legation.dev/mode": fc.constantFrom("overflow", "always"),
  },
  { requiredKeys: [] },
);
const map = fc.oneof(fc.dictionary(key, value, { maxKeys: 4 }), rightValues);
const nullish = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null, freq: 5 });
const annotated = nullish(fc.record({ annotations: nullish(map) }, { requiredKeys: [] }));
const template = fc.record({ metadata: annotated, spec: fc.anything() });

/** Pods as an API server would send them, in all their forms. */
const saneObject = fc.record(
  {
    metadata: fc.record(
      {
        name: fc.string(),
        labels: nullish(map),
        annotations: nullish(map),
        finalizers: nullish(fc.array(fc.constantFrom("legation.dev/delegate", "x.io/y"), { maxLength: 3 })),
        ownerReferences: nullish(
          fc.array(fc.record({ kind: fc.constantFrom("DaemonSet", "Job"), controller: fc.boolean() }), {
            maxLength: 2,
          }),
        ),
      },
      { requiredKeys: [] },
    ),
    spec: fc.record(
      {
        schedulerName: fc.constantFrom("legation", "default-scheduler", "volcano", ""),
        nodeName: fc.constantFrom("", "n1", "legation-west"),
        hostNetwork: fc.boolean(),
        volumes: nullish(fc.array(fc.record({ name: fc.string(), hostPath: fc.anything() }), { maxLength: 2 })),
        suspend: fc.boolean(),
        template,
        jobTemplate: fc.oneof(fc.record({ metadata: annotated, spec: fc.record({ template }) }), fc.anything()),
        unknown: fc.jsonValue(),
      },
      { requiredKeys: [] },
    ),
    status: fc.jsonValue(),
  },
  { requiredKeys: ["metadata", "spec"] },
);

const anyReview = fc
  .record({
    kind: fc.constantFrom("Pod", "Deployment", "Job", "CronJob", "DaemonSet", "Namespace", "Gadget"),
    operation: fc.constantFrom("CREATE", "UPDATE", "DELETE", "CONNECT"),
    object: fc.oneof(saneObject, fc.object(), fc.constant(null)),
    oldObject: fc.oneof(saneObject, fc.object(), fc.constant(null)),
  })
  .map((parts) => review(parts));

const EMPTY_MAPS = /^(\/metadata\/(labels|annotations)|\/spec\/.*template\/metadata\/annotations)$/;
const LEFT_MARKS = /metadata\/annotations\/legation\.dev~1(cluster|scheduler-name)$/;
const WISH_MARKS = /^\/metadata\/(labels\/legation\.dev~1wishes|annotations\/legation\.dev~1outdated-in-template)$/;

describe("the webhook, for all bodies,", () => {
  test("answers with a verdict or a 4xx, never a 500", async () => {
    const body = fc.oneof(anyReview, fc.json(), fc.string(), fc.object());
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...PATHS), body, async (path, sent) => {
        const { status, answer } = await post(path, sent);
        if (status !== 200) expect([400, 413]).toContain(status);
        else if (answer?.allowed === false) expect(answer.status?.message).not.toContain("could not judge");
      }),
      { numRuns: 500 },
    );
  });

  test("makes an admitted pod its proxy, gives it the overflow mark, or leaves it unchanged", async () => {
    const paths = ["/mutate/annotated", "/mutate/all", "/mutate/overflow"];
    const outcomes = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), saneObject, async (path, object) => {
        const sent = JSON.parse(JSON.stringify(object));
        const { answer } = await post(path, review({ object: sent }));
        if (answer?.allowed !== true) return;
        const patch = patchOf(answer);
        if (patch.length === 0) return;
        const changed: Pod = fastJsonPatch.applyPatch(structuredClone(sent), patch, true, true, false).newDocument;
        const mode = sent.metadata.annotations?.["legation.dev/mode"];
        if ((mode ?? (path === "/mutate/overflow" ? "overflow" : "always")) === "overflow") {
          outcomes.add(`${path} marked`);
          expect(changed).toEqual(toOverflow(sent));
        } else {
          outcomes.add(`${path} proxy`);
          expect(isProxy(changed)).toBe(true);
          const { containers: _, ...spec } = toProxy(sent).spec ?? { containers: [] };
          expect(changed).toEqual({ ...toProxy(sent), spec });
        }
        expect((await post(path, review({ object: changed }))).answer).not.toHaveProperty("patch");
      }),
      { numRuns: 800 },
    );
    // Ensures that the property met such objects.
    expect(outcomes.size).toBe(2 * paths.length);
  });

  test("changes of an admitted workload only Legation's annotations of its pod template, and marks of its wishes", async () => {
    const kinds = ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job", "CronJob"];
    const changedKinds = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...kinds),
        saneObject,
        fc.option(saneObject),
        async (kind, object, oldObject) => {
          const sent = JSON.parse(JSON.stringify(object));
          const operation = oldObject === null ? "CREATE" : "UPDATE";
          const { answer } = await post("/mutate/workload", review({ kind, operation, object: sent, oldObject }));
          if (answer === undefined) return;
          const patch = patchOf(answer);
          const metadata = `/spec/${kind === "CronJob" ? "jobTemplate/spec/" : ""}template/metadata`;
          for (const operation of patch) {
            const { op, path } = operation;
            expect(["add", "remove", "replace"]).toContain(op);
            if (path === metadata) expect(operation).toEqual({ op: "add", path, value: { annotations: {} } });
            else if (EMPTY_MAPS.test(path)) expect(operation).toEqual({ op: "add", path, value: {} });
            // Marks of a pod that the workload was made from go wherever they stand.
            else if (op === "remove" && LEFT_MARKS.test(path)) continue;
            else if (path.startsWith("/metadata/")) expect(path).toMatch(WISH_MARKS);
            else expect(path.startsWith(`${metadata}/annotations/legation.dev~1`)).toBe(true);
          }
          if (patch.length > 0) changedKinds.add(kind);
          const changed = fastJsonPatch.applyPatch(structuredClone(sent), patch, true, true, false).newDocument;
          const again = await post("/mutate/workload", review({ kind, operation, object: changed, oldObject }));
          expect(again.answer).not.toHaveProperty("patch");
        },
      ),
      { numRuns: 800 },
    );
    expect([...changedKinds].sort()).toEqual([...kinds].sort());
  });
});
