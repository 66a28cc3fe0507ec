import type { IncomingHttpHeaders } from "node:http";
import {
  KubeError,
  type KubeErrorCode,
  type KubeErrorFields,
  type StatusCause,
  type StatusDetails,
} from "../errors.ts";
import { isRecord, parseJson } from "../json.ts";
import { isUnknownPath } from "../messages.ts";
import type { ServerAnswer } from "./request-handler.ts";

/** The request that an error is about. */
export type ErrorSubject = Pick<KubeErrorFields, "cluster" | "verb" | "resource" | "namespace" | "objectName">;

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

// Every API server serves it.
const CORE_PATH = "/api/v1/";
// Upper bound of a server's Retry-After, so that a server cannot stop its callers for long.
const LONGEST_RETRY_AFTER_MS = 60_000;
// Longest message kept. No API server sends a longer one; a hostile server may.
const LONGEST_MESSAGE = 4_096;

// An apply names each field of another manager.
const MOST_CAUSES = 1_000;

// Longest text kept of a cause, or of a response that is no `Status`, such as a proxy's page.
const LONGEST_TEXT = 300;

/** The part of a `Status` object that an error carries. */
interface Status {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: StatusDetails;
  readonly retryAfterSeconds?: number;
}

// Characters of an error response that are read. A hostile server may send more, and each line of it takes memory.
const MOST_READ = 1024 * 1024;

/** Returns the error for a response other than 2xx to a request for `path`. */
export function errorFromAnswer(
  { status, headers, ...answer }: ServerAnswer,
  path: string,
  subject: ErrorSubject,
): KubeError {
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

/** Reports whether a 404 without a `Status` proves absence. An ingress without a backend sends 404, too. */
function isNotServed(path: string, text: string): boolean {
  return isUnknownPath(text) && !path.startsWith(CORE_PATH);
}

/** Returns the error for the `Status` object in a watch's ERROR event. */
export function errorFromStatus(object: unknown, subject: ErrorSubject): KubeError {
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
  return ms === undefined ? undefined : Math.min(ms, LONGEST_RETRY_AFTER_MS);
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

/** Returns the details. In JSON, the type of a cause is its field `reason`. */
function readDetails({ kind, causes }: Readonly<Record<string, unknown>>): StatusDetails {
  const all: unknown[] = Array.isArray(causes) ? causes : [];
  const read = all.slice(0, MOST_CAUSES).filter(isRecord).map(readCause);
  const isCut = all.length > MOST_CAUSES ? { isCut: true } : {};
  return { ...(typeof kind === "string" ? { kind } : {}), causes: read, ...isCut };
}

function readCause({ reason, field, message }: Readonly<Record<string, unknown>>): StatusCause {
  return {
    ...(typeof reason === "string" ? { type: reason } : {}),
    ...(typeof field === "string" ? { field } : {}),
    ...(typeof message === "string" ? { message: readable(message).slice(0, LONGEST_TEXT) } : {}),
  };
}

function isStatus(body: unknown): body is Record<string, unknown> {
  return isRecord(body) && body.kind === "Status";
}

/** Returns `Retry-After` in milliseconds. API servers send seconds, proxies may send a date. */
function retryAfterHeader(headers: IncomingHttpHeaders): number | undefined {
  const value = headers["retry-after"];
  if (value === undefined || value === "") return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Returns the failed checks of a /readyz response, which may list fifty checks; else the beginning of the text. */
function plainText(status: number, text: string): string {
  const failed = text.split("\n").filter((line) => line.startsWith("[-]"));
  const told = failed.length === 0 ? text : failed.map((line) => line.trim()).join(", ");
  const words = readable(told.slice(0, LONGEST_TEXT)).trim();
  return words === "" ? `HTTP ${status}` : `HTTP ${status}: ${words}`;
}

/** Removes control characters, with which a hostile server could control the user's terminal. */
function readable(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, "");
}
