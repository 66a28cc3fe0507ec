import type { Metrics } from "./metrics.ts";

// An import would evaluate all exports, and WebSocket loads an HTTP client of Node.js' own, which takes 7 MB.
const { createServer } = process.getBuiltinModule("node:http");

export interface HealthOptions {
  readonly host: string;
  /** Port to listen on; 0 picks a free one. */
  readonly port: number;
  readonly metrics: Metrics;
  /** Returns why the process is not ready to serve. Undefined when it is. */
  readonly notReady: () => string | undefined;
}

export interface HealthEndpoint {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves `/livez`, `/healthz`, `/readyz` and `/metrics` over plain HTTP. Rejects when it cannot listen. */
export async function serveHealth(options: HealthOptions): Promise<HealthEndpoint> {
  const server = createServer((request, response) => {
    const path = request.url?.split("?", 1)[0];
    const answer = (status: number, text: string, type = "text/plain"): void => {
      response.writeHead(status, { "content-type": type }).end(text);
    };
    if (path === "/livez" || path === "/healthz") answer(200, "ok\n");
    else if (path === "/readyz") {
      const reason = options.notReady();
      answer(reason === undefined ? 200 : 503, `${reason ?? "ok"}\n`);
    } else if (path === "/metrics") {
      const { registry } = options.metrics;
      registry.metrics().then(
        (text) => answer(200, text, registry.contentType),
        (error: unknown) => answer(500, `${error}\n`),
      );
    } else answer(404, "not found; there is /livez, /healthz, /readyz and /metrics\n");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : options.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
