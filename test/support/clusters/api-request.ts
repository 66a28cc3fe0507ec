import type { IncomingHttpHeaders } from "node:http";
import { Agent, request } from "node:https";

/** The address of an API server and credentials for it. */
export interface ApiAccess {
  readonly server: string;
  /** PEM. */
  readonly caData: string;
  readonly token: string;
}

export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingHttpHeaders;
}

/** Options of a request. */
export interface ApiRequestOptions {
  readonly body?: object;
  /** Deadline of the whole request in ms; default 30,000, for a busy machine. */
  readonly timeoutMs?: number;
  /** Default: a connection of its own. */
  readonly agent?: Agent;
}

// Keeps no connection, but what spares both sides most of the next one's handshake.
const resuming = new Agent({ keepAlive: false });

const CONTENT_TYPES: Readonly<Record<string, string>> = { PATCH: "application/merge-patch+json" };

/**
 * Sends one request. Rejects without an answer in time. Does not use Legation's client, so that clusters start
 * whether or not that works.
 */
export function apiRequest(
  access: ApiAccess,
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  options: ApiRequestOptions = {},
): Promise<ApiAnswer> {
  const { body, timeoutMs = 60_000, agent = resuming } = options;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, access.server),
      {
        method,
        ca: access.caData,
        agent,
        headers: {
          authorization: `Bearer ${access.token}`,
          ...(body === undefined ? {} : { "content-type": CONTENT_TYPES[method] ?? "application/json" }),
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () =>
          resolve({
            status: incoming.statusCode ?? 0,
            text: Buffer.concat(chunks).toString("utf8"),
            headers: incoming.headers,
          }),
        );
      },
    );
    const timer = setTimeout(
      () => outgoing.destroy(new Error(`${method} ${path}: no answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    outgoing.on("close", () => clearTimeout(timer));
    outgoing.on("error", reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
