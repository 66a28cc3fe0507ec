import type { Server } from "node:https";
import type { FastifyInstance } from "fastify";
import type { ClusterClient } from "../src/kube/client.ts";
import { type Clock, realClock } from "../src/runtime/clock.ts";
import { CertificateKeeper } from "../src/serving/certificate-keeper.ts";
import { type TlsSource, verifiedSource } from "../src/serving/certificate-source.ts";
import { GracefulShutdown } from "../src/serving/graceful-shutdown.ts";
import type { Logger } from "../src/telemetry/logger.ts";
import { ensureCaBundle } from "./ca-bundle.ts";
import { WEBHOOK_CERTIFICATE_SECRET } from "./certificate.ts";
import { createWebhookServer, type WebhookServerOptions } from "./server.ts";

export interface WebhookOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly tls: TlsSource;
  /** A client of the host with the webhook's own rights. */
  readonly client: ClusterClient;
  readonly log: Logger;
  readonly onReview?: WebhookServerOptions["onReview"];
  readonly findType?: WebhookServerOptions["findType"];
  readonly types?: WebhookServerOptions["types"];
  readonly labelsSlots?: WebhookServerOptions["labelsSlots"];
  /** Reports false while `types` may lack some. Default: it lacks none. */
  readonly areTypesRead?: () => boolean;
  /** Called with the expiry of each served certificate, epoch ms. */
  readonly onCertificate?: (expiresAt: number | undefined) => void;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

export interface RunningWebhook {
  readonly port: number;
  /** Drains open connections, then closes. */
  close(): Promise<void>;
}

// In-flight reviews take milliseconds.
const LAST_REVIEWS_MS = 1_000;

/** Serves admission reviews until closed and renews its certificate. Rejects without a first certificate or port. */
export async function startWebhook(options: WebhookOptions): Promise<RunningWebhook> {
  const { log, client, tls, onReview, findType, types, areTypesRead = () => true, clock = realClock } = options;
  const keeper = new CertificateKeeper({
    source: verifiedSource(tls, { secret: WEBHOOK_CERTIFICATE_SECRET, client, clock }),
    publish: (trust, signal) => ensureCaBundle(client, trust, signal),
    onExpiry: options.onCertificate,
    clock,
    log,
  });
  const certificate = await keeper.load();
  const shutdown = new GracefulShutdown(clock);
  const server = createWebhookServer({
    certificate,
    shutdown,
    notReady: () => {
      // A pod that names restricted objects gets no record before.
      if (!areTypesRead()) return "DelegatedTypes have not been read yet";
      return keeper.trusted
        ? undefined
        : "Legation's webhook configurations are missing or do not trust this webhook yet";
    },
    findType,
    types,
    labelsSlots: options.labelsSlots,
    log,
    onReview,
  });
  try {
    await server.listen({ host: options.host, port: options.port });
  } catch (error) {
    keeper.close();
    throw error;
  }
  await keeper.follow((next) => server.server.setSecureContext(next));
  return {
    port: portOf(server),
    close: async () => {
      keeper.close();
      await shutdown.begin();
      const closed = server.close();
      // Node waits for opened but unused connections, since it does not take them for idle.
      const timer = clock.after(LAST_REVIEWS_MS, () => server.server.closeAllConnections());
      await closed;
      timer.cancel();
    },
  };
}

function portOf(server: FastifyInstance<Server>): number {
  const address = server.server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
