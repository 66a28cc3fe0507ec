import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "./clock.ts";
import { closeInTime } from "./joined-sockets.ts";

// An import would evaluate all exports, and WebSocket loads an HTTP client of Node.js' own, which takes 7 MB.
const { STATUS_CODES } = process.getBuiltinModule("node:http");

export interface PlainAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const CODES = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const;

// Hop-by-hop headers (RFC 9110, 7.6.1), and headers that depend on the body.
const NOT_PASSED = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "content-length", "trailer"]);

/** Kubernetes clients show the message of a `Status`. */
export function statusAnswer(reason: keyof typeof CODES, message: string): PlainAnswer {
  const code = CODES[reason];
  const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
  return { status: code, headers: { "content-type": "application/json" }, text: JSON.stringify(body) };
}

/** Responds on a connection whose upgrade is refused, and ends it, also if the client does not. */
export function refuse(socket: Duplex, { status, headers, text }: PlainAnswer, clock: Clock): void {
  const kept = Object.entries(headers).filter(([name]) => !NOT_PASSED.has(name));
  const own = { connection: "close", "content-length": String(Buffer.byteLength(text)) };
  socket.end(`${head(status, { ...Object.fromEntries(kept), ...own })}${text}`);
  // Reads to the end, so that the connection closes.
  socket.resume();
  closeInTime(socket, clock);
}

/** Sends the 101 response to the client, with the headers of the server that upgraded. */
export function switchProtocols(socket: Duplex, headers: IncomingHttpHeaders): void {
  socket.write(head(101, headers));
}

function head(status: number, headers: IncomingHttpHeaders): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unknown"}`];
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) lines.push(`${name}: ${one}`);
    }
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}
