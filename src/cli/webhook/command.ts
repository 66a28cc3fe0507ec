import { z } from "zod";
import { startWebhook } from "../../../webhook/main.ts";
import type { DelegatedType } from "../../api/delegated-type.ts";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { delegatedTypes } from "../../api/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { type Equip, equipped, type Subcommand } from "../shared/command.ts";
import { SHARDS_FLAG, shards } from "../shared/input.ts";
import { type ServingInput, serveUntil, servingFlags, servingInput, tlsSourceOf } from "../shared/serving-flags.ts";
import { openTraces } from "../shared/traces.ts";

// The API server calls a webhook's Service by this name.
const SERVICE_HOST = `legation-webhook.${SYSTEM_NAMESPACE}.svc`;

interface WebhookInput extends ServingInput {
  readonly shards: number;
}

export const webhookCommand: Subcommand<WebhookInput> = {
  description:
    "Turns pods that are to be delegated into proxies as they are created. It keeps no state: run as many as you like. " +
    "By default it makes its own serving certificate, keeps it in a Secret and renews it. Writes its log as JSON lines " +
    "to standard output.",
  flags: [...servingFlags, SHARDS_FLAG],
  examples: {
    "webhook --kubeconfig host.yaml --listen 127.0.0.1:9443": "outside a cluster",
    "webhook --tls-cert-file /tls/tls.crt --tls-key-file /tls/tls.key": "with a certificate of cert-manager's",
  },
  input: servingInput.and(z.object({ shards: shards.default(1) })),
  run: async (options, session) => {
    const log = createLogger({ level: options.logLevel });
    const { client } = await session.connect(options, "host");
    const metrics = new Metrics();
    const traces = await openTraces(session.env, "legation-webhook", log);
    // Watched, so that no review needs a request.
    const types = new Reflector<DelegatedType>({
      client,
      resource: delegatedTypes,
      clock: realClock,
      log,
      indexes: { kind: ({ spec }) => [`${spec.group ?? ""}/${spec.kind}`] },
      onEvent: () => {},
    });
    const start = (): ReturnType<typeof startWebhook> =>
      startWebhook({
        ...options.listen,
        client,
        log,
        findType: (group, kind) =>
          types.store.synced ? (types.store.byIndex("kind", `${group}/${kind}`)[0] ?? "none") : "unknown",
        types: () => types.store.list(),
        // An installation of an earlier version has none.
        areTypesRead: () => types.store.synced || types.failing !== undefined,
        labelsSlots: options.shards > 1,
        onReview: (path, verdict, seconds, review) => {
          metrics.observeAdmission(path, verdict, seconds);
          traces?.review({ path, verdict, seconds, ...review });
        },
        onCertificate: (expiresAt) => metrics.setCertificateExpiry("webhook", expiresAt),
        tls: tlsSourceOf(options, SERVICE_HOST),
      });
    types.start();
    try {
      await serveUntil(session.signal, options, { name: "webhook", start, metrics, log });
    } finally {
      await types.stop();
      await traces?.close();
    }
  },
};

export const command: Equip = equipped(webhookCommand);
