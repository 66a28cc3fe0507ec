import { get } from "node:http";
import { expect, test } from "vitest";
import { serveHealth } from "../../../src/telemetry/health.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";

function fetchText(port: number, path: string): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode, text }));
    }).on("error", reject);
  });
}

test("serves health, readiness with its reason, and metrics", async () => {
  const metrics = new Metrics();
  let reason: string | undefined = "proxies are being read";
  const health = await serveHealth({ host: "127.0.0.1", port: 0, metrics, notReady: () => reason });
  try {
    for (const path of ["/livez", "/healthz"]) {
      expect(await fetchText(health.port, path)).toEqual({ status: 200, text: "ok\n" });
    }
    expect(await fetchText(health.port, "/readyz?verbose")).toEqual({ status: 503, text: "proxies are being read\n" });
    reason = undefined;
    expect(await fetchText(health.port, "/readyz")).toEqual({ status: 200, text: "ok\n" });
    metrics.observeRequest("west", "create", "pods", "201", 0.003);
    metrics.queues.of("delegation", () => ({ depth: 3, runningSeconds: [] })).worked("created", 0.2);
    metrics.setLeading(1);
    const { text } = await fetchText(health.port, "/metrics");
    expect(text).toContain('legation_api_requests_total{cluster="west",verb="create",resource="pods",code="201"} 1');
    expect(text).toContain('legation_api_request_duration_seconds_bucket{le="0.005",cluster="west"} 1');
    expect(text).toContain('workqueue_depth{name="delegation",controller="delegation"} 3');
    expect(text).toContain('legation_reconcile_duration_seconds_count{controller="delegation",outcome="created"} 1');
    expect(text).toContain("legation_leader 1");
    expect(text).toContain("process_resident_memory_bytes");
    expect((await fetchText(health.port, "/")).status).toBe(404);
  } finally {
    await health.close();
  }
});

test("reports that its port is taken", async () => {
  const options = { host: "127.0.0.1", metrics: new Metrics(), notReady: () => undefined };
  const first = await serveHealth({ ...options, port: 0 });
  await expect(serveHealth({ ...options, port: first.port })).rejects.toThrow("EADDRINUSE");
  await first.close();
});
