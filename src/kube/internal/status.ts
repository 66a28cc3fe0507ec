import type { IncomingHttpHeaders } from "node:http";
import {
  KubeError,
  type KubeErrorCode,
  type KubeErrorFields,
  type StatusCause,
  type StatusDetails,
} from "../errors.ts";
import { isJsonObject, parseJson } from "../json.ts";
import { isUnknownPath } from "../messages.ts";
import type { ServerAnswer } from "./request-handler.ts";

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
  readonly code?: number | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly details?: StatusDetails | undefined;
  readonly retryAfterSeconds?: number | undefined;
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
  const retryAfterMs = waitMs(retryAfterHeader(headers) ?? retryAfterSeconds);
  return new KubeError(message ?? plainText(status, text), {
    ...subject,
    code: status === 404 && !isStatus(body) && !isNotServed(path, text) ? "BadAnswer" : codeOf(status, reason),
    status,
    reason,
    details,
    retryAfterMs,
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
  return new KubeError(message ?? "the watch ended with an error without a message", {
    ...subject,
    code: codeOf(status, reason),
    status,
    reason,
    retryAfterMs: waitMs(retryAfterSeconds),
  });
}

function waitMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.min(seconds * 1000, LONGEST_RETRY_AFTER_MS);
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
  const seconds = isJsonObject(details) ? details.retryAfterSeconds : undefined;
  return {
    code: typeof code === "number" ? code : undefined,
    reason: textOf(reason) || undefined,
    message: textOf(message, LONGEST_MESSAGE) || undefined,
    details: isJsonObject(details) ? readDetails(details) : undefined,
    retryAfterSeconds: typeof seconds === "number" && seconds > 0 ? seconds : undefined,
  };
}

/** Returns the details. In JSON, the type of a cause is its field `reason`. */
function readDetails({ kind, causes }: Readonly<Record<string, unknown>>): StatusDetails {
  const all: unknown[] = Array.isArray(causes) ? causes : [];
  const read = all.slice(0, MOST_CAUSES).filter(isJsonObject).map(readCause);
  return { kind: textOf(kind), causes: read, isCut: all.length > MOST_CAUSES || undefined };
}

function readCause({ reason, field, message }: Readonly<Record<string, unknown>>): StatusCause {
  return { type: textOf(reason), field: textOf(field), message: textOf(message, LONGEST_TEXT) };
}

/** Returns as much of a text as `most` characters hold. */
function textOf(value: unknown, most?: number): string | undefined {
  if (typeof value !== "string") return undefined;
  return most === undefined ? value : readable(value).slice(0, most);
}

function isStatus(body: unknown): body is Record<string, unknown> {
  return isJsonObject(body) && body.kind === "Status";
}

/** Returns `Retry-After` in seconds. API servers send seconds, proxies may send a date. */
function retryAfterHeader(headers: IncomingHttpHeaders): number | undefined {
  const value = headers["retry-after"];
  if (value === undefined || value === "") return undefined;
  if (/^\d+$/.test(value)) return Number(value);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now()) / 1000;
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
