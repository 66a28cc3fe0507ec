/** What went wrong with one request, as far as a caller can act on it. */
export type KubeErrorCode =
  // From the API server's answer.
  | "BadRequest" // 400
  | "Unauthorized" // 401, after the credentials were reloaded once
  | "Forbidden" // 403
  | "NotFound" // 404
  | "MethodNotAllowed" // 405
  | "AlreadyExists" // 409 with reason AlreadyExists
  | "Conflict" // 409 otherwise
  | "Gone" // 410: expired resourceVersion or continue token
  | "TooLarge" // 413
  | "Unprocessable" // 422: Invalid
  | "TooManyRequests" // 429
  | "ServerError" // 5xx
  // From this side.
  | "NotSent" // no connection, or waiting for a slot ran out: the server has surely not seen the request
  | "AnswerLost" // sent, then timed out or was cut: the server may or may not have done it
  | "Aborted" // the caller's signal fired before the request was sent, or while it only read
  | "BadAnswer" // an answer that is not what the protocol promises
  | "BadCredentials"; // the kubeconfig or token cannot be used

/** How a caller may go on after an error. `unknown`: the write may have been done; read before deciding. */
export type RetryClass = "retry" | "unknown" | "never";

/** Every code has its class here; a new code without one does not compile. */
export const RETRY_CLASS: Readonly<Record<KubeErrorCode, RetryClass>> = {
  BadRequest: "never",
  Unauthorized: "retry",
  Forbidden: "never",
  NotFound: "never",
  MethodNotAllowed: "never",
  AlreadyExists: "never",
  Conflict: "never",
  Gone: "never",
  TooLarge: "never",
  Unprocessable: "never",
  TooManyRequests: "retry",
  ServerError: "unknown",
  NotSent: "retry",
  AnswerLost: "unknown",
  Aborted: "never",
  BadAnswer: "unknown",
  BadCredentials: "never",
};

/**
 * Whether an answer to a write says that the same write would be refused again, for its sender's rights, a quota, a policy, or what
 * is in it, and so was surely not done. What is there already, or is not, is no refusal: callers name NotFound, AlreadyExists and
 * Conflict where those mean something to them. A new code without its word here does not compile.
 */
const IS_REFUSAL: Readonly<Record<KubeErrorCode, boolean>> = {
  BadRequest: true,
  Unauthorized: false,
  Forbidden: true,
  NotFound: false,
  MethodNotAllowed: true,
  AlreadyExists: false,
  Conflict: false,
  Gone: false,
  TooLarge: true,
  Unprocessable: true,
  TooManyRequests: false,
  ServerError: false,
  NotSent: false,
  AnswerLost: false,
  Aborted: false,
  BadAnswer: false,
  BadCredentials: false,
};

export interface KubeErrorFields {
  readonly code: KubeErrorCode;
  /** Name of the cluster the request went to. */
  readonly cluster: string;
  /** Kubernetes verb: get, list, watch, create, update, patch, delete. */
  readonly verb: string;
  /** Plural and reference, e.g. `pods default/web-0`. */
  readonly resource: string;
  /** HTTP status, when there was an answer. */
  readonly status?: number;
  /** `reason` of the Status object, when there was one. */
  readonly reason?: string;
  /** The server's Retry-After in milliseconds. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** The one error type of `src/kube`. `message` holds cluster, verb, resource and the server's own words. */
export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly code: KubeErrorCode;
  readonly cluster: string;
  readonly verb: string;
  readonly resource: string;
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** The server's or socket's own words, without the prefix. */
  readonly detail: string;

  constructor(detail: string, fields: KubeErrorFields) {
    super(`${fields.cluster}: ${fields.verb} ${fields.resource}: ${detail}`, { cause: fields.cause });
    this.detail = detail;
    this.code = fields.code;
    this.cluster = fields.cluster;
    this.verb = fields.verb;
    this.resource = fields.resource;
    this.status = fields.status;
    this.reason = fields.reason;
    this.retryAfterMs = fields.retryAfterMs;
  }

  get retryClass(): RetryClass {
    return RETRY_CLASS[this.code];
  }
}

/** True for a KubeError with one of these codes. */
export function isKubeError(error: unknown, ...codes: KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code));
}

/** True for a refusal that will be the same the next time: to try again at once is in vain, and somebody should be told. */
export function isRefusal(error: unknown): error is KubeError {
  return error instanceof KubeError && IS_REFUSAL[error.code];
}

/** The same, but for what an API server also says for a moment after its start: worth giving something up for. */
export function isLastingRefusal(error: unknown): error is KubeError {
  return isRefusal(error) && !mayBeStarting(error);
}

/** Words of an answer that was cut because it was larger than what may be on its way from one server. */
export const TOO_LARGE = "the server's answers are larger than";

/** True for such an answer: asked for less, it may be small enough. */
export function isTooLarge(error: unknown): boolean {
  return isKubeError(error, "AnswerLost") && error.detail.includes(TOO_LARGE);
}

// Of authorisation, and of admission.
const STARTING = /\bUser ".*" cannot \S+ (resource|path) |: not yet ready to handle request$/;

/**
 * True for a refusal that an API server also gives for a moment after its start: it listens before it has read the roles
 * and what admission needs.
 */
export function mayBeStarting(error: KubeError): boolean {
  return error.code === "Forbidden" && STARTING.test(error.detail);
}
