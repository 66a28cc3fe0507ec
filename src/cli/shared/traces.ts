import type { ClientMetrics } from "../../kube/client.ts";
import type { Environment } from "../../kube/environment-proxy.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { TracesOptions } from "../../telemetry/opentelemetry.ts";
import type { Traces } from "../../telemetry/traces.ts";
import { Failure } from "./failure.ts";
import { packageVersion } from "./package-root.ts";

// Legation starts every trace itself, so a sampler is the same with and without `parentbased_`.
const SAMPLERS = ["always_on", "always_off", "traceidratio"] as const;

/** Returns the settings in OpenTelemetry's variables. Undefined without traces. Throws `Failure` for an invalid variable. */
export function tracesFrom(env: Environment): Omit<TracesOptions, "service" | "version" | "log"> | undefined {
  // An empty variable counts as unset, as OpenTelemetry specifies.
  const given = (name: string): string | undefined => env[name]?.trim() || undefined;
  // The variable for traces wins over that for all signals.
  const exporter = (name: string): string | undefined =>
    given(`OTEL_EXPORTER_OTLP_TRACES_${name}`) ?? given(`OTEL_EXPORTER_OTLP_${name}`);
  const isDisabled = given("OTEL_SDK_DISABLED")?.toLowerCase() === "true";
  if (isDisabled || given("OTEL_TRACES_EXPORTER") === "none" || exporter("ENDPOINT") === undefined) return undefined;

  const refused = (object: string, problem: string, remedy: string): Failure =>
    new Failure("usage", { object, problem, remedy });
  const read = <T>(name: string, parse: (text: string) => T | undefined, problem: string): T | undefined => {
    const text = given(name);
    const value = text === undefined ? undefined : parse(text);
    if (text === undefined || value !== undefined) return value;
    throw refused(name, `${JSON.stringify(text)} ${problem}`, "or set OTEL_SDK_DISABLED=true to run without traces");
  };
  const address = (text: string): string | undefined =>
    /^https?:/i.test(text) && URL.canParse(text) ? text : undefined;
  const whole = (text: string): number | undefined => (/^0*[1-9]\d*$/.test(text) ? Number(text) : undefined);
  for (const name of ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]) {
    read(name, address, "is no address; write e.g. http://collector:4318");
  }
  read("OTEL_TRACES_EXPORTER", (text) => (text === "otlp" ? text : undefined), "only otlp and none are known");
  if (exporter("PROTOCOL") === "grpc") {
    const remedy = "write http/json, and the collector's HTTP address, whose port is usually 4318";
    throw refused("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc is not spoken here", remedy);
  }
  const sampler = read(
    "OTEL_TRACES_SAMPLER",
    (text) => SAMPLERS.find((each) => each === text.replace(/^parentbased_/, "")),
    `is no sampler that is known; write one of ${SAMPLERS.join(", ")}, or one of them after parentbased_`,
  );
  const ratio = read(
    "OTEL_TRACES_SAMPLER_ARG",
    (text) => (Number(text) >= 0 && Number(text) <= 1 ? Number(text) : undefined),
    "is no share; write a number from 0 to 1",
  );
  return {
    sampler: sampler ?? "always_on",
    ratio: ratio ?? 1,
    delayMs: read("OTEL_BSP_SCHEDULE_DELAY", whole, "is no whole number") ?? 5_000,
    queueSize: read("OTEL_BSP_MAX_QUEUE_SIZE", whole, "is no whole number") ?? 2_048,
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
