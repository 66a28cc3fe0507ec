import {
  type DestinationStream,
  type Logger as PinoLogger,
  type LoggerOptions as PinoOptions,
  pino,
  stdTimeFunctions,
} from "pino";

/** A structured logger. Child loggers carry bindings such as the cluster or a reconcile id. */
export type Logger = PinoLogger;

export interface LoggerOptions {
  /** One of trace, debug, info, warn, error, fatal and silent. */
  readonly level?: string;
  /** The output; default: standard output. */
  readonly destination?: DestinationStream;
}

// Paths at which a request, a kubeconfig or a Secret object in a log line holds secret values.
const SECRET_PATHS = ["authorization", "token", "password", "privateKey", "data", "stringData", "kubeconfig"].flatMap(
  (name) => [name, `*.${name}`, `*.*.${name}`],
);

/** Creates a logger that writes one JSON object per line and redacts secret values. */
export function createLogger(options: LoggerOptions = {}): Logger {
  const settings: PinoOptions = {
    level: options.level ?? "info",
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    redact: { paths: SECRET_PATHS, censor: "[redacted]" },
  };
  return options.destination === undefined ? pino(settings) : pino(settings, options.destination);
}
