/** Attributes of a span. Never contains values from Secrets or annotations. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

export interface TracedPod {
  /** The proxy's uid. The trace id derives from it, so all processes agree without propagation. */
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Step {
  readonly name: string;
  /** Epoch ms. */
  readonly startedAt: number;
  readonly attributes?: SpanAttributes;
}

export interface FinishedStep extends Step {
  /** Epoch ms. */
  readonly endedAt: number;
  /** One word for the failure, if there was one. */
  readonly failure?: string;
  /** Marks the root span of the pod. */
  readonly root?: boolean;
}

/** The object of an admission review, as far as it is known before creation. */
export interface ReviewedName {
  readonly uid: string;
  readonly kind: string;
  readonly namespace: string | undefined;
  /** The name, or `generateName`. */
  readonly name: string | undefined;
  readonly generateName: string | undefined;
  /** The `traceparent` header of an API server with tracing. */
  readonly traceparent: string | undefined;
}

export interface Review extends ReviewedName {
  readonly path: string;
  readonly verdict: string;
  readonly seconds: number;
}

/** Reports pods' lives to an OpenTelemetry collector. No method but `close` throws or blocks. */
export interface Traces {
  /** Runs `run` inside a span. Requests made meanwhile become its children. */
  step<T>(pod: TracedPod, step: Step, run: () => Promise<T>): Promise<T>;
  finishedStep(pod: TracedPod, step: FinishedStep): void;
  /** Reports a finished API request. `code` is the HTTP status, or the error code without one. */
  request(cluster: string, verb: string, resource: string, code: string, seconds: number): void;
  review(review: Review): void;
  /** Flushes pending spans, and gives up when the collector does not answer soon. */
  close(): Promise<void>;
}
