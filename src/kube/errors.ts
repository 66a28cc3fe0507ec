import { deniedRight, isNotReady } from "./messages.ts";

/** The kind of a failed request, as far as a caller can act on it. */
export type KubeErrorCode =
  // From the API server's response.
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
  | "NotSent" // no connection, or no slot in time: the server has surely not seen the request
  | "AnswerLost" // sent, then timed out or cut: the server may have executed it
  | "Aborted" // the caller's signal fired before the request was sent, or while it only read
  | "BadAnswer" // a response that violates the protocol
  | "BadCredentials"; // the kubeconfig or token cannot be used

/** The ways to proceed after an error. `unknown`: the write may have succeeded; read before deciding. */
export type RetryClass = "retry" | "unknown" | "never";

/** Maps each code to its class. A new code without one does not compile. */
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
 * Codes that mean the API server refused a write, and would refuse it again: missing rights, a quota, a policy, or invalid
 * content. NotFound, AlreadyExists and Conflict are no refusals; callers handle them by name.
 */
const REFUSALS: ReadonlySet<KubeErrorCode> = new Set([
  "BadRequest",
  "Forbidden",
  "MethodNotAllowed",
  "TooLarge",
  "Unprocessable",
]);

/** The parts of a Status object's `details` that say more than its words. */
export interface StatusDetails {
  /** Plural of the resource that the answer is about, which need not be the request's: `namespaces`, say. */
  readonly kind?: string | undefined;
  readonly causes: readonly StatusCause[];
  /** The answer had further causes, which are dropped. */
  readonly isCut?: boolean | undefined;
}

export interface StatusCause {
  /** The cause as programs read it: `NamespaceTerminating`, `FieldValueNotSupported`. */
  readonly type?: string | undefined;
  /** Path of the refused field: `spec.trafficDistribution`. */
  readonly field?: string | undefined;
  /** The cause for people, at most 300 characters. */
  readonly message?: string | undefined;
}

export interface KubeErrorFields {
  readonly code: KubeErrorCode;
  readonly cluster: string;
  /** Kubernetes verb: get, list, watch, create, update, patch, delete. */
  readonly verb: string;
  /** Plural, with the subresource: `pods/eviction`. The path or file of a request for what is no resource. */
  readonly resource: string;
  readonly namespace?: string | undefined;
  /** Name of the object, unless the request was for a list. */
  readonly objectName?: string | undefined;
  readonly status?: number | undefined;
  readonly reason?: string | undefined;
  readonly details?: StatusDetails | undefined;
  /** The server's Retry-After in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** The only error type of `src/kube`. `message` holds cluster, verb, target and the server's message. */
export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly code: KubeErrorCode;
  readonly cluster: string;
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly objectName: string | undefined;
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly details: StatusDetails | undefined;
  readonly retryAfterMs: number | undefined;
  /** The server's or socket's message, without the prefix. */
  readonly detail: string;

  constructor(detail: string, fields: KubeErrorFields) {
    super(`${fields.cluster}: ${fields.verb} ${targetOf(fields)}: ${detail}`, { cause: fields.cause });
    this.detail = detail;
    this.code = fields.code;
    this.cluster = fields.cluster;
    this.verb = fields.verb;
    this.resource = fields.resource;
    this.namespace = fields.namespace;
    this.objectName = fields.objectName;
    this.status = fields.status;
    this.reason = fields.reason;
    this.details = fields.details;
    this.retryAfterMs = fields.retryAfterMs;
  }

  get retryClass(): RetryClass {
    return RETRY_CLASS[this.code];
  }

  /** Names the request's target for people: `pods default/web-0`, `pods in default`, `pods`. */
  get target(): string {
    return targetOf(this);
  }
}

function targetOf({
  resource,
  namespace,
  objectName,
}: Pick<KubeErrorFields, "resource" | "namespace" | "objectName">): string {
  if (objectName === undefined) return namespace === undefined ? resource : `${resource} in ${namespace}`;
  return namespace === undefined ? `${resource} ${objectName}` : `${resource} ${namespace}/${objectName}`;
}

/** Reports whether the error is a KubeError, with one of these codes if any are given. */
export function isKubeError(error: unknown, ...codes: KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code));
}

/**
 * Resolves to undefined if the request fails with a KubeError, with one of these codes if any are given: nothing is left to do then, or
 * there is nothing to read.
 */
export async function ignoring<T>(request: Promise<T>, ...codes: readonly KubeErrorCode[]): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isKubeError(error, ...codes)) return undefined;
    throw error;
  }
}

/** Reports whether the API server refused the request and would refuse it again. An immediate retry is useless. */
export function isRefusal(error: unknown): error is KubeError {
  return error instanceof KubeError && REFUSALS.has(error.code);
}

/** Reports whether the refusal is final: like `isRefusal`, without refusals that a starting API server also gives. */
export function isLastingRefusal(error: unknown): error is KubeError {
  return isRefusal(error) && !mayBeStarting(error);
}

/** The cause of the error for a response beyond the byte budget of its server. */
export class ResponseTooLarge extends Error {
  override readonly name = "ResponseTooLarge";

  constructor(mostBytes: number) {
    super(`the server's answers are larger than ${mostBytes} bytes together`);
  }
}

/** Reports whether the response exceeded the byte budget. A request for less may succeed. */
export function isTooLarge(error: unknown): boolean {
  return isKubeError(error, "AnswerLost") && error.cause instanceof ResponseTooLarge;
}

/** The cause of the error for a request whose deadline passed before the whole response was there. */
export class DeadlinePassed extends Error {
  override readonly name = "DeadlinePassed";
}

/** The cause of the error for a request whose way to the server is still being made: it tells nothing of the server. */
export class WayPending extends Error {
  override readonly name = "WayPending";
}

/** Reports whether the server took the request and had not answered in time, or gave up itself. Nothing says that it is down. */
export function isLate(error: unknown): boolean {
  if (!isKubeError(error, "AnswerLost")) return isServerLate(error);
  const { cause } = error;
  // A watch that is not answered was cut for that.
  return cause instanceof DeadlinePassed || (cause instanceof Error && cause.cause instanceof DeadlinePassed);
}

/** Reports whether the API server gave a request up after its own `--request-timeout`. */
export function isServerLate(error: unknown): boolean {
  return isKubeError(error, "ServerError") && error.status === 504;
}

/** Reports whether the API server refused a create since the namespace is being deleted. */
export function isNamespaceTerminating({ details }: KubeError): boolean {
  return details?.causes.some(({ type }) => type === "NamespaceTerminating") === true;
}

/** Reports whether a starting API server may have sent this refusal: it listens before its RBAC and admission caches sync. */
export function mayBeStarting(error: KubeError): boolean {
  return error.code === "Forbidden" && (deniedRight(error.detail) !== undefined || isNotReady(error.detail));
}
