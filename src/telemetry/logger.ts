import {
  type DestinationStream,
  type Logger as PinoLogger,
  type LoggerOptions as PinoOptions,
  pino,
  stdTimeFunctions,
} from "pino";

/** Structured logger; child loggers carry bindings such as the cluster or a reconcile id. */
export type Logger = PinoLogger;

export interface LoggerOptions {
  /** trace, debug, info, warn, error, fatal or silent. */
  readonly level?: string;
  /** Where lines go; standard output by default. */
  readonly destination?: DestinationStream;
}

// Secrets reach a log line as part of a request, a kubeconfig or a Secret object.
const SECRET_PATHS = ["authorization", "token", "password", "privateKey", "data", "stringData", "kubeconfig"].flatMap(
  (name) => [name, `*.${name}`, `*.*.${name}`],
);

/** A logger that writes one JSON object a line and never a secret's value. */
export function createLogger(options: LoggerOptions = {}): Logger {
  const settings: PinoOptions = {
    level: options.level ?? "info",
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    redact: { paths: SECRET_PATHS, censor: "[redacted]" },
  };
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination);
}
