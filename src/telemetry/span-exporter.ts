import { readFileSync } from "node:fs";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { Logger } from "./logger.ts";

type Done = Parameters<SpanExporter["export"]>[1];

/** TLS files for the collector. Default: the system's CAs and no client certificate. */
export interface TlsFiles {
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

// Longest delay of the process's exit for the last export.
const LAST_EXPORT_MS = 2_000;
const FAILED = 1;

/** Sends spans by OTLP. Logs a failing collector once rather than per batch. */
export class QuietExporter implements SpanExporter {
  readonly #exporter: OTLPTraceExporter;
  readonly #log: Logger;
  readonly #agents: HttpAgent[] = [];
  readonly #waiting = new Set<Done>();
  #failing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(tls: TlsFiles, log: Logger) {
    this.#log = log;
    const read = (file: string | undefined): Buffer | undefined =>
      file === undefined ? undefined : readFileSync(file);
    const files = { ca: read(tls.caFile), cert: read(tls.certFile), key: read(tls.keyFile) };
    this.#exporter = new OTLPTraceExporter({
      httpAgentOptions: (protocol) => {
        const agent =
          protocol === "https:" ? new HttpsAgent({ keepAlive: true, ...files }) : new HttpAgent({ keepAlive: true });
        this.#agents.push(agent);
        return agent;
      },
    });
  }

  export(spans: ReadableSpan[], done: Done): void {
    const settle: Done = (result) => {
      // The export was given up already.
      if (!this.#waiting.delete(settle)) return;
      const failed = result.code === FAILED;
      if (failed !== this.#failing) {
        this.#failing = failed;
        if (failed)
          this.#log.warn({ reason: result.error?.message ?? "" }, "spans are lost: the collector does not take them");
        else this.#log.info("the collector takes spans again");
      }
      done(result);
    };
    this.#waiting.add(settle);
    this.#exporter.export(spans, settle);
  }

  /** Gives up pending exports soon, because the process is about to end. */
  closing(): void {
    this.#timer ??= setTimeout(() => this.#giveUp(), LAST_EXPORT_MS);
  }

  shutdown(): Promise<void> {
    clearTimeout(this.#timer);
    for (const agent of this.#agents) agent.destroy();
    return Promise.resolve();
  }

  #giveUp(): void {
    for (const agent of this.#agents) {
      // The exporter retries a cut request; a new connection would keep the process alive.
      agent.maxSockets = 0;
      agent.destroy();
    }
    for (const settle of [...this.#waiting]) settle({ code: FAILED, error: new Error("the process ends") });
  }
}
