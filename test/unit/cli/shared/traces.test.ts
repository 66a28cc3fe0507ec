import { expect, test } from "vitest";
import { tracesFrom } from "../../../../src/cli/shared/traces.ts";

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };
const WRONG = { OTEL_EXPORTER_OTLP_ENDPOINT: "collector", OTEL_TRACES_SAMPLER: "no such thing" };

test.each([
  ["nothing is set", {}],
  ["the endpoint is empty", { OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
  ["only other variables are set", { OTEL_SERVICE_NAME: "embassy", OTEL_TRACES_SAMPLER: "no such thing" }],
  ["the SDK is disabled", { ...ENDPOINT, OTEL_SDK_DISABLED: "TRUE" }],
  ["the exporter is none", { ...ENDPOINT, OTEL_TRACES_EXPORTER: "none" }],
  ["the SDK is disabled, whatever else is set", { ...WRONG, OTEL_SDK_DISABLED: "true" }],
  ["the exporter is none, whatever else is set", { ...WRONG, OTEL_TRACES_EXPORTER: " none " }],
])("turns traces off when %s", (_, env) => {
  expect(tracesFrom(env)).toBeUndefined();
});

test("has the defaults of OpenTelemetry's specification", () => {
  expect(tracesFrom(ENDPOINT)).toEqual({
    sampler: "always_on",
    ratio: 1,
    delayMs: 5_000,
    queueSize: 2_048,
    tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
  });
});

test("prefers settings for traces to those for all signals", () => {
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces:4318/v1/traces",
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_BSP_SCHEDULE_DELAY: "1000",
    OTEL_EXPORTER_OTLP_CERTIFICATE: "/all.crt",
    OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: "/traces.crt",
    OTEL_EXPORTER_OTLP_CLIENT_KEY: "/all.key",
  };
  expect(tracesFrom(env)).toMatchObject({
    sampler: "traceidratio",
    ratio: 0.25,
    delayMs: 1_000,
    tls: { caFile: "/traces.crt", keyFile: "/all.key" },
  });
});

test.each([
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", /^OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" is no address/],
  ["OTEL_TRACES_SAMPLER", "jaeger_remote", /^OTEL_TRACES_SAMPLER: "jaeger_remote" is no sampler that is known; write/],
  ["OTEL_TRACES_SAMPLER_ARG", "a tenth", /^OTEL_TRACES_SAMPLER_ARG: "a tenth" is no share; write/],
  ["OTEL_TRACES_EXPORTER", "zipkin", /^OTEL_TRACES_EXPORTER: "zipkin" only otlp and none/],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", /^OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not spoken here/],
  ["OTEL_BSP_MAX_QUEUE_SIZE", "many", /^OTEL_BSP_MAX_QUEUE_SIZE: "many" is no whole number/],
])("refuses %s=%s with what to write", (name, value, message) => {
  expect(() => tracesFrom({ ...ENDPOINT, [name]: value })).toThrow(message);
});
