import { request } from "node:https";

/** How to reach an API server. */
export interface ApiAccess {
  readonly server: string;
  /** PEM. */
  readonly caData: string;
  readonly token: string;
}

export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * One request on a connection of its own; rejects when there is no answer within `timeoutMs` (default 5000).
 * The clusters must come up whether Legation's own client works or not.
 */
export function apiRequest(
  access: ApiAccess,
  method: "GET" | "POST" | "DELETE",
  path: string,
  options: { readonly body?: object; readonly timeoutMs?: number } = {},
): Promise<ApiAnswer> {
  const { body, timeoutMs = 5000 } = options;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, access.server),
      {
        method,
        ca: access.caData,
        agent: false,
        signal: AbortSignal.timeout(timeoutMs),
        headers: {
          authorization: `Bearer ${access.token}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () =>
          resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
