import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import {
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "./logger.ts";
import { QuietExporter, type TlsFiles } from "./span-exporter.ts";
import type { FinishedStep, Review, SpanAttributes, Step, TracedPod, Traces } from "./traces.ts";

/** The supported values of OTEL_TRACES_SAMPLER. */
export type SamplerName = "always_on" | "always_off" | "traceidratio";

/** Trace settings from the environment. The exporter itself reads the collector's address and headers. */
export interface TracesOptions {
  readonly service: string;
  readonly version: string;
  readonly sampler: SamplerName;
  /** Share of traced pods, for `traceidratio`. */
  readonly ratio: number;
  /** Milliseconds for which spans are batched. */
  readonly delayMs: number;
  /** Longest queue of unsent spans; further ones are dropped. */
  readonly queueSize: number;
  readonly tls: TlsFiles;
  readonly log: Logger;
}

// The SDK's default batch size.
const BATCH_SIZE = 512;
// A backstop for an export that outlives its own deadline (10 s by default).
const EXPORT_TIMEOUT_MS = 30_000;
const TRACE_ID = /^(?!0{32})[0-9a-f]{32}$/;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/;
const METHODS: Readonly<Record<string, string>> = {
  get: "GET",
  list: "GET",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
};

/** An open span. Requests that finish after it are not attributed. */
interface OpenSpan {
  readonly context: SpanContext;
  open: boolean;
}

/** Sends traces to the collector that the environment names. Loads the SDK, so import it only when one is set. */
export class OpenTelemetryTraces implements Traces {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #ids = new GivenIds();
  readonly #sampler: Sampler;
  readonly #exporter: QuietExporter;
  readonly #current = new AsyncLocalStorage<OpenSpan | undefined>();

  constructor(options: TracesOptions) {
    const { service, version, delayMs, queueSize } = options;
    this.#exporter = new QuietExporter(options.tls, options.log);
    this.#sampler = new ParentBasedSampler({ root: samplerOf(options) });
    this.#provider = new TracerProvider({
      resource: defaultResource()
        .merge(resourceFromAttributes({ "service.name": service, "service.version": version }))
        .merge(detectResources({ detectors: [envDetector] })),
      sampler: this.#sampler,
      idGenerator: this.#ids,
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: this.#exporter,
          scheduledDelayMillis: delayMs,
          maxQueueSize: queueSize,
          maxExportBatchSize: Math.min(BATCH_SIZE, queueSize),
          exportTimeoutMillis: EXPORT_TIMEOUT_MS,
        }),
      ],
    });
    this.#tracer = this.#provider.getTracer("legation", version);
  }

  async step<T>(pod: TracedPod, step: Step, run: () => Promise<T>): Promise<T> {
    const parent = this.#rootOf(pod);
    if (parent === undefined) return this.#current.run(undefined, run);
    const span = this.#tracer.startSpan(step.name, optionsOf(pod, step), trace.setSpanContext(ROOT_CONTEXT, parent));
    const current: OpenSpan = { context: span.spanContext(), open: true };
    try {
      return await this.#current.run(current, run);
    } catch (error) {
      fail(span, wordFor(error));
      throw error;
    } finally {
      current.open = false;
      span.end(now());
    }
  }

  finishedStep(pod: TracedPod, step: FinishedStep): void {
    const root = this.#rootOf(pod);
    if (root === undefined) return;
    const options = optionsOf(pod, step);
    const span =
      step.root === true
        ? this.#ids.give(root, () => this.#tracer.startSpan(step.name, { ...options, root: true }, ROOT_CONTEXT))
        : this.#tracer.startSpan(step.name, options, trace.setSpanContext(ROOT_CONTEXT, root));
    if (step.failure !== undefined) fail(span, step.failure);
    span.end(Math.max(step.startedAt, step.endedAt));
  }

  request(cluster: string, verb: string, resource: string, code: string, seconds: number): void {
    const step = this.#current.getStore();
    if (step?.open !== true) return;
    const endedAt = now();
    const status = /^\d{3}$/.test(code) ? Number(code) : undefined;
    const attributes: SpanAttributes = {
      "legation.cluster": cluster,
      "http.request.method": METHODS[verb] ?? verb.toUpperCase(),
      ...(status === undefined ? {} : { "http.response.status_code": status }),
    };
    const span = this.#tracer.startSpan(
      `${verb} ${resource}`,
      { kind: SpanKind.CLIENT, startTime: endedAt - seconds * 1000, attributes: { ...attributes } },
      trace.setSpanContext(ROOT_CONTEXT, step.context),
    );
    if (status === undefined || status >= 400) fail(span, code);
    span.end(endedAt);
  }

  review(review: Review): void {
    const endedAt = now();
    const link = linkTo(review.traceparent);
    const attributes = {
      "http.route": review.path,
      "legation.review.verdict": review.verdict,
      "legation.review.uid": review.uid,
      "legation.review.kind": review.kind,
      ...(review.namespace === undefined ? {} : { "k8s.namespace.name": review.namespace }),
      ...(review.name === undefined ? {} : { [nameKey(review.kind)]: review.name }),
      ...(review.generateName === undefined ? {} : { "legation.review.generate_name": review.generateName }),
    };
    const span = this.#tracer.startSpan(
      "admission review",
      {
        kind: SpanKind.SERVER,
        startTime: endedAt - review.seconds * 1000,
        attributes,
        links: link === undefined ? [] : [link],
        root: true,
      },
      ROOT_CONTEXT,
    );
    span.end(endedAt);
  }

  async close(): Promise<void> {
    this.#exporter.closing();
    // The exporter has already logged spans that could not be sent.
    await this.#provider.shutdown().catch(() => undefined);
    await this.#exporter.shutdown();
  }

  /**
   * Returns the pod's root span context, equal in all processes. Undefined when the pod is not sampled. Marked as a sampled
   * remote parent, so that parent-based samplers agree.
   */
  #rootOf({ uid }: TracedPod): SpanContext | undefined {
    const traceId = traceIdOf(uid);
    const { decision } = this.#sampler.shouldSample(ROOT_CONTEXT, traceId, "", SpanKind.INTERNAL, {}, []);
    if (decision !== SamplingDecision.RECORD_AND_SAMPLED) return undefined;
    return { traceId, spanId: traceId.slice(16), traceFlags: TraceFlags.SAMPLED, isRemote: true };
  }
}

/** Generates random ids, unless ids were set for the next span. */
class GivenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #given: SpanContext | undefined;

  give(ids: SpanContext, start: () => Span): Span {
    this.#given = ids;
    try {
      return start();
    } finally {
      this.#given = undefined;
    }
  }

  generateTraceId(): string {
    return this.#given?.traceId ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.#given?.spanId ?? this.#random.generateSpanId();
  }
}

/** Returns monotonic time, so that a span never ends before it began after a change of the machine's clock. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Derives the trace id from a uid: a UUID's 16 bytes, or a hash of anything else (a mirror pod's uid). */
function traceIdOf(uid: string): string {
  const digits = uid.replaceAll("-", "").toLowerCase();
  return TRACE_ID.test(digits) ? digits : createHash("sha256").update(uid).digest("hex").slice(0, 32);
}

function samplerOf({ sampler, ratio }: TracesOptions): Sampler {
  switch (sampler) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return new TraceIdRatioBasedSampler(ratio);
  }
}

function optionsOf({ uid, namespace, name }: TracedPod, { startedAt, attributes }: Step): SpanOptions {
  return {
    startTime: startedAt,
    attributes: { "k8s.pod.uid": uid, "k8s.namespace.name": namespace, "k8s.pod.name": name, ...attributes },
  };
}

function fail(span: Span, word: string): void {
  span.setAttribute("error.type", word);
  span.setStatus({ code: SpanStatusCode.ERROR, message: word });
}

/** Returns an error's code or name. Its message may quote an object, so it stays out of traces. */
function wordFor(error: unknown): string {
  if (!(error instanceof Error)) return "Error";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

function nameKey(kind: string): string {
  return kind === "Pod" ? "k8s.pod.name" : "legation.review.name";
}

function linkTo(traceparent: string | undefined): Link | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const context: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED };
  return trace.isSpanContextValid(context) ? { context: { ...context, isRemote: true } } : undefined;
}
