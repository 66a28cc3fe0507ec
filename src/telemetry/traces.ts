/** What a span says beside its name and times; never what a Secret or an annotation holds. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** The pod whose way a span belongs to. */
export interface TracedPod {
  /** The proxy's uid: the trace's id comes from it, so that every process finds the same trace without being told. */
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** A part of a pod's way. */
export interface Part {
  readonly name: string;
  /** Epoch ms. */
  readonly startedAt: number;
  readonly attributes?: SpanAttributes;
}

/** A part that is over. */
export interface Stretch extends Part {
  /** Epoch ms. */
  readonly endedAt: number;
  /** One word for what went wrong; absent: nothing did. */
  readonly failure?: string;
  /** The span that all others of the pod are below. */
  readonly root?: boolean;
}

/** What an admission review was about, as far as that is known before the object is made. */
export interface ReviewedName {
  /** The review's own uid. */
  readonly uid: string;
  readonly kind: string;
  readonly namespace: string | undefined;
  /** What the API server knows by then: the name, or what it will be made from. */
  readonly name: string | undefined;
  readonly generateName: string | undefined;
  /** The header in which an API server with tracing names its own span. */
  readonly traceparent: string | undefined;
}

/** An admission review that was answered. */
export interface Review extends ReviewedName {
  readonly path: string;
  /** Whether the object was left alone, changed or refused. */
  readonly verdict: string;
  readonly seconds: number;
}

/** Tells an OpenTelemetry collector of pods' ways. No method throws or waits, but `close`. */
export interface Traces {
  /** Does `run` as a part of a pod's way; requests that are made meanwhile are shown as parts of it. */
  step<T>(pod: TracedPod, part: Part, run: () => Promise<T>): Promise<T>;
  /** Reports a part that is over already; nothing is run. */
  stretch(pod: TracedPod, stretch: Stretch): void;
  /** A request to an API server has ended; `code` is its HTTP status, or why there was none. */
  request(cluster: string, verb: string, resource: string, code: string, seconds: number): void;
  review(review: Review): void;
  /** Sends what is left, and gives up on it when the collector does not answer soon. */
  close(): Promise<void>;
}
