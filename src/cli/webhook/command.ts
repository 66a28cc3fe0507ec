import { once } from "node:events";
import { z } from "zod";
import { startWebhook } from "../../../webhook/main.ts";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { flag, type Subcommand } from "../shared/command.ts";
import { type GlobalInput, listenAddress, withGlobals } from "../shared/input.ts";
import { type ListenAddress, listenAt, serveHealthAt } from "../shared/listening.ts";
import { openTraces } from "../shared/traces.ts";
import { KnownTypes } from "./known-types.ts";

interface WebhookInput extends GlobalInput {
  readonly listen: ListenAddress;
  readonly tlsHosts: readonly string[];
  readonly tlsCertFile?: string | undefined;
  readonly tlsKeyFile?: string | undefined;
  readonly caBundleFile?: string | undefined;
  readonly metricsListen?: ListenAddress | undefined;
  readonly logLevel: "debug" | "info" | "warn" | "error";
}

// The API server calls a webhook's Service by this name.
const SERVICE_HOST = `legation-webhook.${SYSTEM_NAMESPACE}.svc`;

/** `legation webhook` */
export const webhookCommand: Subcommand<WebhookInput> = {
  description:
    "Turns pods that are to be delegated into proxies as they are created. It keeps no state: run as many as you like. " +
    "By default it makes its own serving certificate, keeps it in a Secret and renews it. Writes its log as JSON lines " +
    "to standard output.",
  flags: [
    flag("--listen <address>", "where it serves HTTPS, e.g. 127.0.0.1:9443 (default: :8443)"),
    flag("--tls-hosts <list>", "more names and addresses its own certificate is for, separated by commas"),
    flag("--tls-cert-file <file>", "serve with this certificate instead, e.g. cert-manager's; re-read when it changes"),
    flag("--tls-key-file <file>", "its private key"),
    flag("--ca-bundle-file <file>", "what API servers must trust for it (default: left to cert-manager's injector)"),
    flag("--metrics-listen <address>", "where /metrics listens, over plain HTTP (default: nowhere)"),
    flag("--log-level <level>", "debug, info, warn or error (default: info)"),
  ],
  examples: [
    ["webhook --kubeconfig host.yaml --listen 127.0.0.1:9443", "outside a cluster"],
    ["webhook --tls-cert-file /tls/tls.crt --tls-key-file /tls/tls.key", "with a certificate of cert-manager's"],
  ],
  input: withGlobals({
    listen: listenAddress.prefault(":8443"),
    tlsHosts: z
      .string()
      .transform((text) => text.split(",").map((host) => host.trim()))
      .default([]),
    tlsCertFile: z.string().optional(),
    tlsKeyFile: z.string().optional(),
    caBundleFile: z.string().optional(),
    metricsListen: listenAddress.optional(),
    logLevel: z.enum(["debug", "info", "warn", "error"]).default("info"),
  })
    .refine(({ tlsCertFile, tlsKeyFile }) => (tlsCertFile === undefined) === (tlsKeyFile === undefined), {
      error: "--tls-cert-file and --tls-key-file go together: write both or neither",
    })
    .refine(({ tlsCertFile, caBundleFile }) => tlsCertFile !== undefined || caBundleFile === undefined, {
      error: "--ca-bundle-file is for a certificate of --tls-cert-file: write both, or leave it out",
    })
    .refine(({ tlsCertFile, tlsHosts }) => tlsCertFile === undefined || tlsHosts.length === 0, {
      error: "--tls-hosts are for the webhook's own certificate: leave them out, or leave out --tls-cert-file",
    }),
  run: async (options, session) => {
    const { listen, tlsCertFile: certFile, tlsKeyFile: keyFile, caBundleFile: caFile } = options;
    const log = createLogger({ level: options.logLevel });
    const { client } = await session.connect(options, "host");
    const named = listen.host === "::" || listen.host === "0.0.0.0" ? [] : [listen.host];
    const metrics = new Metrics();
    const traces = await openTraces(session.env, "legation-webhook", log);
    const health = await serveHealthAt("--metrics-listen", options.metricsListen, metrics);
    const types = new KnownTypes({ client, log });
    types.start();
    try {
      const webhook = await listenAt("--listen", () =>
        startWebhook({
          ...listen,
          client,
          log,
          findType: (group, kind) => types.find(group, kind),
          onReview: (path, verdict, seconds, review) => {
            metrics.observeAdmission(path, verdict, seconds);
            traces?.review({ path, verdict, seconds, ...review });
          },
          onCertificate: (expiresAt) => metrics.setCertificateExpiry("webhook", expiresAt),
          tls:
            certFile === undefined || keyFile === undefined
              ? { kind: "own", hosts: [SERVICE_HOST, ...named, ...options.tlsHosts] }
              : { kind: "files", certFile, keyFile, ...(caFile === undefined ? {} : { caFile }) },
        }),
      );
      log.info({ port: webhook.port }, "webhook serves");
      if (!session.signal.aborted) await once(session.signal, "abort");
      await webhook.close();
    } finally {
      // An open health port would keep a process alive whose webhook failed to start.
      await health?.close();
      await types.stop();
      await traces?.close();
    }
  },
};
