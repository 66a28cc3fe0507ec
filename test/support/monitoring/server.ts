import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { PlaneProcess } from "../clusters/plane-process.ts";
import { freePort } from "../clusters/ports.ts";
import { ensurePrometheus } from "./build.ts";
import { MONITORING } from "./expressions.ts";

const answer = z.object({
  data: z.object({
    result: z.array(z.object({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.string()]) })),
  }),
});
const alertsAnswer = z.object({
  data: z.object({ alerts: z.array(z.object({ labels: z.record(z.string(), z.string()), state: z.string() })) }),
});

/** A series of a query result. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: string;
}

/** A Prometheus with the rules of examples/monitoring. */
export interface PrometheusServer extends AsyncDisposable {
  /** Evaluates an expression now. Rejects when it is invalid. */
  query(expr: string): Promise<Sample[]>;
  /** Alerts that are pending or firing. */
  alerts(): Promise<{ readonly name: string; readonly state: string }[]>;
}

/** Starts one in `directory` that scrapes these addresses every two seconds. */
export async function startPrometheus(options: {
  readonly directory: string;
  readonly targets: Readonly<Record<string, string>>;
  readonly onProgress: (line: string) => void;
}): Promise<PrometheusServer> {
  const { directory, targets, onProgress } = options;
  const command = await ensurePrometheus("prometheus", onProgress);
  const port = await freePort();
  const jobs = Object.entries(targets).map(([job_name, target]) => ({
    job_name,
    static_configs: [{ targets: [target] }],
  }));
  const config = {
    global: { scrape_interval: "2s", evaluation_interval: "2s" },
    rule_files: [join(MONITORING, "alerts.yaml")],
    scrape_configs: jobs,
  };
  const file = join(directory, "prometheus.yaml");
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config));
  const origin = `http://127.0.0.1:${port}`;
  const server = new PlaneProcess({
    name: "prometheus",
    command,
    args: [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(directory, "tsdb")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    logFile: join(directory, "prometheus.log"),
    ready: async () => (await fetch(`${origin}/-/ready`).catch(() => undefined))?.ok === true,
    readyTimeoutMs: 60_000,
  });
  await server.start();
  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(`${origin}${path}`);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  return {
    query: async (expr) => {
      const parsed = answer.parse(await get(`/api/v1/query?query=${encodeURIComponent(expr)}`));
      return parsed.data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value }));
    },
    alerts: async () => {
      const parsed = alertsAnswer.parse(await get("/api/v1/alerts"));
      return parsed.data.alerts.map(({ labels, state }) => ({ name: labels.alertname ?? "", state }));
    },
    [Symbol.asyncDispose]: () => server.stop("SIGTERM"),
  };
}
