import { readFile } from "node:fs/promises";
import type { Server } from "node:https";
import type { FastifyInstance } from "fastify";
import type { ClusterClient } from "../src/kube/client.ts";
import type { Logger } from "../src/telemetry/logger.ts";
import { ensureCaBundle } from "./ca-bundle.ts";
import { createWebhookServer, type WebhookServerOptions } from "./server.ts";
import { ensureServingMaterial, type ServingMaterial } from "./serving-certificate.ts";

/** Where the serving certificate comes from. */
export type TlsSource =
  /** Legation's own authority, kept in a Secret; `hosts` are the names and addresses that API servers call. */
  | { readonly kind: "own"; readonly hosts: readonly string[] }
  /** Files that somebody else keeps current, such as a Secret of cert-manager's that is mounted. */
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string; readonly caFile?: string };

export interface WebhookOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls: TlsSource;
  /** The host cluster, with the webhook's own rights. */
  readonly client: ClusterClient;
  readonly log: Logger;
  readonly onReview?: WebhookServerOptions["onReview"];
  /** Time between two looks at the certificate and the webhook configurations, in milliseconds. */
  readonly refreshMs?: number;
  /** Epoch ms; another clock in tests. */
  readonly now?: () => number;
}

/** A webhook that serves. */
export interface RunningWebhook {
  readonly port: number;
  close(): Promise<void>;
}

// Often enough that a configuration installed after the webhook started is trusted soon.
const REFRESH_MS = 30_000;

/** Serves admission reviews until it is closed; its certificate is renewed while it runs. */
export async function startWebhook(options: WebhookOptions): Promise<RunningWebhook> {
  const { log, refreshMs = REFRESH_MS } = options;
  const abort = new AbortController();
  let material = await load(options, abort.signal);
  const server = createWebhookServer({
    ...material.certificate,
    log,
    ...(options.onReview === undefined ? {} : { onReview: options.onReview }),
  });
  await server.listen({ host: options.host, port: options.port });
  await publish(options, material, abort.signal);

  let refreshing = false;
  const refresh = async (): Promise<void> => {
    if (refreshing) return;
    refreshing = true;
    try {
      const next = await load(options, abort.signal);
      if (next.certificate.cert !== material.certificate.cert) {
        server.server.setSecureContext(next.certificate);
        log.info("serving certificate renewed");
      }
      material = next;
      await publish(options, material, abort.signal);
    } catch (error) {
      // What is served stays good for a third of its life.
      if (!abort.signal.aborted) log.warn({ err: error }, "certificate not refreshed");
    } finally {
      refreshing = false;
    }
  };
  const timer = setInterval(() => void refresh(), refreshMs);
  return {
    port: portOf(server),
    close: async () => {
      clearInterval(timer);
      abort.abort();
      await server.close();
    },
  };
}

async function load({ tls, client, now = Date.now }: WebhookOptions, signal: AbortSignal): Promise<ServingMaterial> {
  if (tls.kind === "own") return ensureServingMaterial(client, { hosts: tls.hosts, now: now(), signal });
  const [cert, key, caBundle] = await Promise.all([
    readFile(tls.certFile, "utf8"),
    readFile(tls.keyFile, "utf8"),
    tls.caFile === undefined ? "" : readFile(tls.caFile, "utf8"),
  ]);
  return { certificate: { cert, key }, caBundle };
}

/** Without a bundle of ours, whoever issues the files (cert-manager's injector) keeps the configurations current. */
async function publish({ client }: WebhookOptions, { caBundle }: ServingMaterial, signal: AbortSignal): Promise<void> {
  if (caBundle !== "") await ensureCaBundle(client, caBundle, signal);
}

function portOf(server: FastifyInstance<Server>): number {
  const address = server.server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
