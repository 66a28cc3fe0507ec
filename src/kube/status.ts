import type { IncomingHttpHeaders } from "node:http";
import { KubeError, type KubeErrorCode, type StatusDetails } from "./errors.ts";
import type { Answer } from "./exchange.ts";
import { parseJson } from "./json.ts";

/** Which request an error is about. */
export interface Subject {
  readonly cluster: string;
  readonly verb: string;
  readonly resource: string;
}

const CODES: Readonly<Record<number, KubeErrorCode>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  410: "Gone",
  413: "TooLarge",
  422: "Unprocessable",
  429: "TooManyRequests",
};

// What Go answers where nothing is served, and so an API server for a group that it does not have; /api/v1 it always has.
const NOT_SERVED = /^404 page not found\s*$/;
const CORE_PATH = "/api/v1/";
// A server says how long to wait, not whether to come back: pods that could go elsewhere wait with it.
const LONGEST_WAIT_MS = 60_000;
// Words for people and conditions: no API server needs more, and one in the wrong hands gets no more.
const LONGEST_MESSAGE = 4_096;

// More than any API server's own answer has.
const MOST_CAUSES = 100;

// Of what is no `Status`: a proxy's page, say.
const LONGEST_TEXT = 300;

/** The part of a `Status` object that an error carries. */
interface Status {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: StatusDetails;
  readonly retryAfterSeconds?: number;
}

// What an API server says of a request fits. Whoever answers may be in the wrong hands, and each line that is split off takes memory.
const MOST_READ = 1024 * 1024;

/** The error for an answer other than 2xx to a request for `path`. */
export function errorFromAnswer({ status, headers, ...answer }: Answer, path: string, subject: Subject): KubeError {
  const text = answer.text.slice(0, MOST_READ);
  let body: unknown;
  try {
    body = parseJson(text);
  } catch {
    // A proxy in between answers in HTML or plain text.
  }
  const { message, reason, details, retryAfterSeconds } = readStatus(body);
  const retryAfterMs = longestWait(
    retryAfterHeader(headers) ?? (retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000),
  );
  return new KubeError(message ?? plainText(status, text), {
    ...subject,
    code: status === 404 && !isStatus(body) && !isNotServed(path, text) ? "BadAnswer" : codeOf(status, reason),
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Whoever stands between, an ingress without a backend, also says 404: that proves no object's absence. */
function isNotServed(path: string, text: string): boolean {
  return NOT_SERVED.test(text) && !path.startsWith(CORE_PATH);
}

/** The error for the `Status` object in a watch's ERROR event. */
export function errorFromStatus(object: unknown, subject: Subject): KubeError {
  const { code, message, reason, retryAfterSeconds } = readStatus(object);
  const status = code ?? 500;
  const retryAfterMs = longestWait(retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000);
  return new KubeError(message ?? "the watch ended with an error without a message", {
    ...subject,
    code: codeOf(status, reason),
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function longestWait(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.min(ms, LONGEST_WAIT_MS);
}

function codeOf(status: number, reason: string | undefined): KubeErrorCode {
  if (status === 409 && reason === "AlreadyExists") return "AlreadyExists";
  // A watch may report an expired resourceVersion as a 500 with this reason.
  if (reason === "Expired" || reason === "Gone") return "Gone";
  const code = CODES[status];
  if (code !== undefined) return code;
  if (status >= 500) return "ServerError";
  return status >= 400 ? "BadRequest" : "BadAnswer";
}

function readStatus(body: unknown): Status {
  if (!isStatus(body)) return {};
  const { code, reason, message, details } = body;
  const seconds = isRecord(details) ? details.retryAfterSeconds : undefined;
  return {
    ...(typeof code === "number" ? { code } : {}),
    ...(typeof reason === "string" && reason !== "" ? { reason } : {}),
    ...(typeof message === "string" && message !== "" ? { message: readable(message).slice(0, LONGEST_MESSAGE) } : {}),
    ...(isRecord(details) ? { details: readDetails(details) } : {}),
    ...(typeof seconds === "number" && seconds > 0 ? { retryAfterSeconds: seconds } : {}),
  };
}

/** `reason` is a cause's type: so its field is called in JSON. */
function readDetails({ kind, causes }: Readonly<Record<string, unknown>>): StatusDetails {
  const types = (Array.isArray(causes) ? causes.slice(0, MOST_CAUSES) : []).flatMap((cause: unknown) =>
    isRecord(cause) && typeof cause.reason === "string" ? [cause.reason] : [],
  );
  return { ...(typeof kind === "string" ? { kind } : {}), causes: types };
}

function isStatus(body: unknown): body is Record<string, unknown> {
  return isRecord(body) && body.kind === "Status";
}

/** `Retry-After` in milliseconds; API servers write seconds, proxies may write a date. */
function retryAfterHeader(headers: IncomingHttpHeaders): number | undefined {
  const value = headers["retry-after"];
  if (value === undefined || value === "") return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Of what an API server lists on /readyz, which may be fifty checks, those that fail; else all, from the beginning. */
function plainText(status: number, text: string): string {
  const failed = text.split("\n").filter((line) => line.startsWith("[-]"));
  const told = failed.length === 0 ? text : failed.map((line) => line.trim()).join(", ");
  const words = readable(told.slice(0, LONGEST_TEXT)).trim();
  return words === "" ? `HTTP ${status}` : `HTTP ${status}: ${words}`;
}

/** Without what would tell a person's terminal what to do: a message may come from a server in the wrong hands. */
function readable(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, "");
}

/** True for JSON objects. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
