import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

const value = z.object({
  stringValue: z.string().optional(),
  intValue: z.union([z.number(), z.string().transform(Number)]).optional(),
  doubleValue: z.number().optional(),
});
const attributes = z
  .array(z.object({ key: z.string(), value }))
  .transform((all) =>
    Object.fromEntries(
      all.map(({ key, value: { stringValue, intValue, doubleValue } }): [string, string | number | undefined] => [
        key,
        stringValue ?? intValue ?? doubleValue,
      ]),
    ),
  );
const nanoseconds = z.string().transform((text) => Number(BigInt(text) / 1_000_000n));
const payload = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes }),
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.object({
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().optional(),
              name: z.string(),
              kind: z.number(),
              startTimeUnixNano: nanoseconds,
              endTimeUnixNano: nanoseconds,
              attributes,
              links: z.array(z.object({ traceId: z.string(), spanId: z.string() })).default([]),
              status: z.object({ code: z.number().optional(), message: z.string().optional() }).default({}),
            }),
          ),
        }),
      ),
    }),
  ),
});

/** A span as a collector gets it; times are epoch ms. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Attributes;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number | undefined; readonly message?: string | undefined };
  readonly service: string | number | undefined;
  readonly resource: Attributes;
}

/** Names and values, those of other types than these left out. */
type Attributes = Readonly<Record<string, string | number | undefined>>;

/** The receiver's behaviour. */
export type Behaviour = "take" | "refuse" | "hang";

/** A collector that speaks OTLP over HTTP, with JSON. */
export interface OtlpReceiver extends AsyncDisposable {
  /** Value of OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly endpoint: string;
  readonly spans: readonly ReceivedSpan[];
  /** Everything as it came, for who looks for what must not be in it. */
  readonly text: string;
  readonly requests: number;
  behave(behaviour: Behaviour): void;
}

/** Starts a collector on loopback. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  let text = "";
  let requests = 0;
  let behaviour: Behaviour = "take";
  const answer = (response: ServerResponse, path: string | undefined, body: string): void => {
    requests += 1;
    if (behaviour === "hang") return;
    if (behaviour === "refuse" || path !== "/v1/traces") {
      response.writeHead(behaviour === "refuse" ? 500 : 404).end();
      return;
    }
    text += body;
    for (const { resource, scopeSpans } of payload.parse(JSON.parse(body)).resourceSpans) {
      for (const { startTimeUnixNano, endTimeUnixNano, ...span } of scopeSpans.flatMap((scope) => scope.spans)) {
        const service = resource.attributes["service.name"];
        spans.push({
          ...span,
          service,
          resource: resource.attributes,
          startedAt: startTimeUnixNano,
          endedAt: endTimeUnixNano,
        });
      }
    }
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => answer(response, request.url, body));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    spans,
    get text() {
      return text;
    },
    get requests() {
      return requests;
    },
    behave: (next) => {
      behaviour = next;
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
