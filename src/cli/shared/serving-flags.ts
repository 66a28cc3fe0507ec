import { once } from "node:events";
import type { Option } from "commander";
import { z } from "zod";
import type { TlsSource } from "../../serving/certificate-source.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { flag, flags } from "./command.ts";
import { commaList, flagRules, type GlobalInput, listenAddress, withGlobals } from "./input.ts";
import { type ListenAddress, listenAt, serveHealthAt } from "./listening.ts";

export const LOG_LEVEL_FLAG: Option = flag("--log-level <level>", "debug, info, warn or error (default: info)");
export const logLevel: z.ZodDefault<z.ZodEnum<{ debug: "debug"; info: "info"; warn: "warn"; error: "error" }>> = z
  .enum(["debug", "info", "warn", "error"])
  .default("info");

/** Input of a command whose server the host's API server calls. */
export interface ServingInput extends GlobalInput {
  readonly listen: ListenAddress;
  readonly tlsHosts: readonly string[];
  readonly tlsCertFile?: string | undefined;
  readonly tlsKeyFile?: string | undefined;
  readonly caBundleFile?: string | undefined;
  readonly metricsListen?: ListenAddress | undefined;
  readonly logLevel: z.output<typeof logLevel>;
}

export const servingFlags: readonly Option[] = [
  ...flags({
    "--listen <address>": "where it serves HTTPS, e.g. 127.0.0.1:9443 (default: :8443)",
    "--tls-hosts <list>": "more names and addresses its own certificate is for, separated by commas",
    "--tls-cert-file <file>": "serve with this certificate instead, e.g. cert-manager's; re-read when it changes",
    "--tls-key-file <file>": "its private key",
    "--ca-bundle-file <file>": "what API servers must trust for it (default: left to cert-manager's injector)",
    "--metrics-listen <address>": "where /metrics listens, over plain HTTP (default: nowhere)",
  }),
  LOG_LEVEL_FLAG,
];

export const servingInput: z.ZodType<ServingInput> = withGlobals({
  listen: listenAddress.prefault(":8443"),
  tlsHosts: commaList.default([]),
  tlsCertFile: z.string().optional(),
  tlsKeyFile: z.string().optional(),
  caBundleFile: z.string().optional(),
  metricsListen: listenAddress.optional(),
  logLevel,
}).superRefine(
  flagRules({
    needs: { tlsCertFile: "tlsKeyFile", tlsKeyFile: "tlsCertFile", caBundleFile: "tlsCertFile" },
    excludes: { tlsHosts: "tlsCertFile" },
  }),
);

/** Returns where the serving certificate comes from. `serviceHost`: the name by which API servers call its Service. */
export function tlsSourceOf(input: ServingInput, serviceHost: string): TlsSource {
  const { listen, tlsHosts, tlsCertFile: certFile, tlsKeyFile: keyFile, caBundleFile: caFile } = input;
  if (certFile !== undefined && keyFile !== undefined) {
    return { kind: "files", certFile, keyFile, ...(caFile === undefined ? {} : { caFile }) };
  }
  const named = listen.host === "::" || listen.host === "0.0.0.0" ? [] : [listen.host];
  return { kind: "own", hosts: [serviceHost, ...named, ...tlsHosts] };
}

interface Serving {
  /** Name in the log. */
  readonly name: string;
  readonly start: () => Promise<{ readonly port: number; close(): Promise<void> }>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Serves, beside its metrics, until the signal fires. Rejects with a usage error if an address is not available. */
export async function serveUntil(
  signal: AbortSignal,
  { metricsListen }: ServingInput,
  { name, start, metrics, log }: Serving,
): Promise<void> {
  const health = await serveHealthAt("--metrics-listen", metricsListen, metrics);
  try {
    const server = await listenAt("--listen", start);
    log.info({ port: server.port }, `${name} serves`);
    if (!signal.aborted) await once(signal, "abort");
    await server.close();
  } finally {
    // An open health port would keep a process alive whose server failed to start.
    await health?.close();
  }
}
