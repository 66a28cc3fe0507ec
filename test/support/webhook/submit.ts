import { request } from "node:https";
import type { ApiAccess } from "../clusters/api-request.ts";

/** The result of a write, as its author sees it. */
export interface Submitted {
  readonly status: number;
  /** The object, or the Status that refuses it. */
  readonly body: Answered;
  /** Admission warnings, in the API server's order. */
  readonly warnings: readonly string[];
}

/** The fields of an answer that the tests look at. */
export interface Answered {
  readonly message?: string;
  readonly metadata?: {
    readonly name?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
  };
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** Sends a write as kubectl does. Returns the response with its warnings. */
export function submit(
  access: ApiAccess,
  method: "POST" | "PUT" | "PATCH",
  path: string,
  body: object,
): Promise<Submitted> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      new URL(path, access.server),
      {
        method,
        ca: access.caData,
        agent: false,
        headers: {
          authorization: `Bearer ${access.token}`,
          "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () =>
          resolve({
            status: incoming.statusCode ?? 0,
            body: JSON.parse(Buffer.concat(chunks).toString()),
            warnings: warningsOf(incoming.headersDistinct.warning ?? []),
          }),
        );
      },
    );
    outgoing.setTimeout(30_000, () => outgoing.destroy(new Error(`${method} ${path}: no answer`)));
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(body));
  });
}

/** `299 - "text"`, RFC 7234; text in quotes has its quotes escaped. */
function warningsOf(headers: readonly string[]): string[] {
  return headers.flatMap((header) =>
    Array.from(header.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g), ([, text = ""]) => text.replaceAll(/\\(.)/g, "$1")),
  );
}
