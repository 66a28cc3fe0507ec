import { z } from "zod";
import type { ClientMetrics } from "../../kube/client.ts";
import type { Environment } from "../../kube/environment-proxy.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { TracesOptions } from "../../telemetry/opentelemetry.ts";
import type { Traces } from "../../telemetry/traces.ts";
import { Failure } from "./failure.ts";
import { packageVersion } from "./package-root.ts";

const SAMPLERS = ["always_on", "always_off", "traceidratio"] as const;

/** An optional variable. An empty one counts as unset, as OpenTelemetry specifies. */
const text = z
  .string()
  .optional()
  .transform((value) => (value === undefined || value.trim() === "" ? undefined : value.trim()));
const endpoint = text.refine((value) => value === undefined || isHttp(value), {
  error: "is no address; write e.g. http://collector:4318",
});
const whole = (byDefault: number): z.ZodType<number, string | undefined> =>
  text.transform((value) => Number(value ?? byDefault)).pipe(z.int({ error: "is no whole number" }).positive());

// Legation starts every trace itself, so a sampler is the same with and without `parentbased_`.
const environment = z.object({
  OTEL_TRACES_EXPORTER: text
    .transform((value) => value ?? "otlp")
    .pipe(z.literal("otlp", { error: "only otlp and none are known" })),
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint,
  OTEL_TRACES_SAMPLER: text
    .transform((value) => value?.replace(/^parentbased_/, "") ?? "always_on")
    .pipe(
      z.enum(SAMPLERS, {
        error: `is no sampler that is known; write one of ${SAMPLERS.join(", ")}, or one of them after parentbased_`,
      }),
    ),
  OTEL_TRACES_SAMPLER_ARG: text
    .transform((value) => Number(value ?? 1))
    .pipe(z.number({ error: "is no share; write a number from 0 to 1" }).min(0).max(1)),
  OTEL_BSP_SCHEDULE_DELAY: whole(5_000),
  OTEL_BSP_MAX_QUEUE_SIZE: whole(2_048),
});

/** Returns the settings in OpenTelemetry's variables. Undefined without traces. Throws `Failure` for an invalid variable. */
export function tracesFrom(env: Environment): Omit<TracesOptions, "service" | "version" | "log"> | undefined {
  const wanted = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (wanted === undefined || wanted === "" || isSwitchedOff(env)) return undefined;
  const { success, data, error } = environment.safeParse(env);
  if (!success) {
    const [issue] = error.issues;
    const name = String(issue?.path[0]);
    throw new Failure("usage", {
      object: name,
      problem: `${JSON.stringify(env[name])} ${issue?.message}`,
      remedy: "or set OTEL_SDK_DISABLED=true to run without traces",
    });
  }
  // The variable for traces wins over that for all signals.
  const exporter = (name: string): string | undefined =>
    text.parse(env[`OTEL_EXPORTER_OTLP_TRACES_${name}`]) ?? text.parse(env[`OTEL_EXPORTER_OTLP_${name}`]);
  if (exporter("PROTOCOL") === "grpc") {
    throw new Failure("usage", {
      object: "OTEL_EXPORTER_OTLP_PROTOCOL",
      problem: "grpc is not spoken here",
      remedy: "write http/json, and the collector's HTTP address, whose port is usually 4318",
    });
  }
  return {
    sampler: data.OTEL_TRACES_SAMPLER,
    ratio: data.OTEL_TRACES_SAMPLER_ARG,
    delayMs: data.OTEL_BSP_SCHEDULE_DELAY,
    queueSize: data.OTEL_BSP_MAX_QUEUE_SIZE,
    tls: {
      caFile: exporter("CERTIFICATE"),
      certFile: exporter("CLIENT_CERTIFICATE"),
      keyFile: exporter("CLIENT_KEY"),
    },
  };
}

/** Opens this process's traces. Loads OpenTelemetry only if the environment asks for traces. */
export async function openTraces(env: Environment, service: string, log: Logger): Promise<Traces | undefined> {
  const options = tracesFrom(env);
  if (options === undefined) return undefined;
  const { OpenTelemetryTraces } = await import("../../telemetry/opentelemetry.ts");
  return new OpenTelemetryTraces({ ...options, service, version: packageVersion(), log });
}

/** Reports whether traces are switched off. An invalid variable must not prevent that. */
function isSwitchedOff({ OTEL_SDK_DISABLED: disabled, OTEL_TRACES_EXPORTER: exporter }: Environment): boolean {
  return disabled?.trim().toLowerCase() === "true" || exporter?.trim() === "none";
}

function isHttp(value: string): boolean {
  return URL.canParse(value) && ["http:", "https:"].includes(new URL(value).protocol);
}

export function tracedRequests(metrics: ClientMetrics, traces: Traces): ClientMetrics {
  return {
    observeRequest: (...request) => {
      metrics.observeRequest(...request);
      traces.request(...request);
    },
    countWatch: (...watch) => metrics.countWatch(...watch),
    countWatchEvents: (...events) => metrics.countWatchEvents(...events),
  };
}
