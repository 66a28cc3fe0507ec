import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { OpenTelemetryTraces, type TracesOptions } from "../../../src/telemetry/opentelemetry.ts";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "../../support/otlp/receiver.ts";

const POD = { uid: "3f0c8a94-5d1e-4b7a-9c21-6f1c2b3a4d5e", namespace: "shop", name: "web-0" };
const TRACE = "3f0c8a945d1e4b7a9c216f1c2b3a4d5e";
const ROOT = "9c216f1c2b3a4d5e";
const SERVER = 2;
const CLIENT = 3;
const ERROR = 2;

let receiver: OtlpReceiver;
let lines: string[];

beforeEach(async () => {
  receiver = await startOtlpReceiver();
  lines = [];
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await receiver[Symbol.asyncDispose]();
});

function open(options: Partial<TracesOptions> = {}): OpenTelemetryTraces {
  return new OpenTelemetryTraces({
    service: "legation-controller",
    version: "1.2.3",
    sampler: "always_on",
    ratio: 1,
    delayMs: 60_000,
    queueSize: 100,
    tls: {},
    log: createLogger({ destination: { write: (line) => void lines.push(line) } }),
    ...options,
  });
}

function named(name: string): ReceivedSpan {
  const span = receiver.spans.find((each) => each.name === name);
  if (span === undefined) throw new Error(`no span ${name} among ${receiver.spans.map((each) => each.name)}`);
  return span;
}

test("joins the spans of two independent processes to one trace, whose root either may send", async () => {
  const [first, second] = [open(), open()];
  const startedAt = Date.now();
  await first.step(POD, { name: "create delegate", startedAt }, async () => undefined);
  second.finishedStep(POD, { name: "place pod", root: true, startedAt: startedAt - 5_000, endedAt: startedAt });
  await Promise.all([first.close(), second.close()]);
  const root = named("place pod");
  expect(root).toMatchObject({ traceId: TRACE, spanId: ROOT, startedAt: startedAt - 5_000, endedAt: startedAt });
  expect(root.parentSpanId).toBeUndefined();
  expect(named("create delegate")).toMatchObject({ traceId: TRACE, parentSpanId: ROOT });
  expect(root.attributes).toEqual({
    "k8s.pod.uid": POD.uid,
    "k8s.namespace.name": "shop",
    "k8s.pod.name": "web-0",
  });
});

test("makes requests children of the step that made them, and of no ended or other step", async () => {
  const traces = open();
  let late = (): void => undefined;
  await traces.step(POD, { name: "create delegate", startedAt: Date.now() }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    traces.request("west", "create", "pods", "201", 0.02);
    traces.request("west", "create", "namespaces", "NotSent", 0.01);
    late = inThisContext(() => traces.request("west", "get", "secrets", "200", 0.01));
  });
  late();
  traces.request("host", "get", "leases", "200", 0.01);
  await traces.close();
  const step = named("create delegate");
  const request = named("create pods");
  expect(request).toMatchObject({ traceId: TRACE, parentSpanId: step.spanId, kind: CLIENT });
  expect(request.attributes).toEqual({
    "legation.cluster": "west",
    "http.request.method": "POST",
    "http.response.status_code": 201,
  });
  expect(request.endedAt - request.startedAt).toBeGreaterThanOrEqual(19);
  expect(named("create namespaces")).toMatchObject({ status: { code: ERROR, message: "NotSent" } });
  expect(receiver.spans.map(({ name }) => name)).not.toContain("get secrets");
  expect(receiver.spans.map(({ name }) => name)).not.toContain("get leases");
});

/** Runs `act` later as if from here, as a timer that was set here would. */
function inThisContext(act: () => void): () => void {
  let run: (value?: undefined) => void = () => undefined;
  void new Promise((resolve) => {
    run = resolve;
  }).then(act);
  return () => run();
}

test("puts an error code on a failed span, and never a message that may quote an object", async () => {
  const traces = open();
  const failing = Object.assign(new Error("Invalid value: s3cret"), { code: "Invalid" });
  const step = traces.step(POD, { name: "forward change", startedAt: Date.now() }, () => Promise.reject(failing));
  await expect(step).rejects.toBe(failing);
  const startedAt = Date.parse("2026-01-01T00:00:05Z");
  traces.finishedStep(POD, { name: "run", startedAt, endedAt: startedAt - 4_000, failure: "Failed" });
  await traces.close();
  expect(named("forward change")).toMatchObject({ status: { code: ERROR, message: "Invalid" } });
  expect(named("forward change").attributes["error.type"]).toBe("Invalid");
  // After a clock was set back between two processes, no span ends before it began.
  expect(named("run")).toMatchObject({ startedAt, endedAt: startedAt, status: { message: "Failed" } });
  expect(receiver.text).not.toContain("s3cret");
});

test("traces a review by itself, linked to the API server's span", async () => {
  const traces = open();
  const review = {
    path: "/mutate/all",
    verdict: "patched",
    seconds: 0.002,
    uid: "r-1",
    kind: "Pod",
    namespace: "shop",
    name: undefined,
    generateName: "web-",
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  };
  traces.review(review);
  traces.review({ ...review, kind: "Job", name: "load", generateName: undefined, traceparent: "not a header" });
  await traces.close();
  const [first, second] = receiver.spans;
  expect(first).toMatchObject({ name: "admission review", kind: SERVER, service: "legation-controller" });
  expect(first?.links).toMatchObject([{ traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" }]);
  expect(first?.parentSpanId).toBeUndefined();
  expect(first?.attributes).toEqual({
    "http.route": "/mutate/all",
    "legation.review.verdict": "patched",
    "legation.review.uid": "r-1",
    "legation.review.kind": "Pod",
    "k8s.namespace.name": "shop",
    "legation.review.generate_name": "web-",
  });
  expect(second).toMatchObject({ links: [], attributes: { "legation.review.name": "load" } });
});

test("names the sender by OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES", async () => {
  vi.stubEnv("OTEL_SERVICE_NAME", "embassy");
  vi.stubEnv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=ignored");
  const traces = open();
  traces.finishedStep(POD, { name: "run", startedAt: 1, endedAt: 2 });
  await traces.close();
  expect(named("run").resource).toMatchObject({
    "service.name": "embassy",
    "service.version": "1.2.3",
    "deployment.environment.name": "test",
  });
});

test("samples a pod as a whole or not at all, alike in each process", async () => {
  const [first, second] = [
    open({ sampler: "traceidratio", ratio: 0.3 }),
    open({ sampler: "traceidratio", ratio: 0.3 }),
  ];
  const pods = Array.from({ length: 100 }, () => ({ ...POD, uid: crypto.randomUUID() }));
  for (const pod of pods) {
    const request = async (): Promise<void> => first.request("host", "patch", "pods/status", "200", 0);
    await first.step(pod, { name: "copy status", startedAt: Date.now() }, request);
    second.finishedStep(pod, { name: "place pod", root: true, startedAt: 1, endedAt: 2 });
  }
  await Promise.all([first.close(), second.close()]);
  const tracesOf = (name: string): string[] =>
    receiver.spans.flatMap((span) => (span.name === name ? [span.traceId] : [])).sort();
  const whole = tracesOf("place pod");
  expect(whole.length).toBeGreaterThan(5);
  expect(whole.length).toBeLessThan(70);
  expect(tracesOf("copy status")).toEqual(whole);
  expect(tracesOf("patch pods/status")).toEqual(whole);
});

test.each([
  ["answers 500", "refuse"],
  ["hangs", "hang"],
] as const)("loses the spans of a collector that %s, logs one line, and delays nothing", async (_, behaviour) => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "200");
  receiver.behave(behaviour);
  const traces = open({ delayMs: 20, queueSize: 10 });
  for (let round = 0; round < 3; round += 1) {
    const before = receiver.requests;
    const startedAt = performance.now();
    for (let each = 0; each < 1_000; each += 1) traces.finishedStep(POD, { name: "run", startedAt: 1, endedAt: 2 });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await vi.waitFor(() => expect(receiver.requests).toBeGreaterThan(before), { timeout: 15_000 });
  }
  await vi.waitFor(() => expect(lines).toHaveLength(1), { timeout: 15_000 });
  expect(lines[0]).toContain("spans are lost");

  receiver.behave("take");
  await vi.waitFor(
    () => {
      traces.finishedStep(POD, { name: "after", startedAt: 1, endedAt: 2 });
      // The hanging request may be given up after the first one that was accepted.
      expect(lines.at(-1)).toContain("takes spans again");
    },
    { timeout: 15_000 },
  );
  await traces.close();
  // Bounded: of thousands, those in the queue remain.
  expect(receiver.spans.filter(({ name }) => name === "run").length).toBeLessThan(100);
});

test("ends without waiting for a collector that hangs", async () => {
  receiver.behave("hang");
  const traces = open();
  traces.finishedStep(POD, { name: "run", startedAt: 1, endedAt: 2 });
  const startedAt = performance.now();
  await traces.close();
  // The exporter by itself would wait for ten seconds.
  expect(performance.now() - startedAt).toBeLessThan(9_000);
});
