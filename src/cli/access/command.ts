import { startAccess } from "../../access/main.ts";
import { ACCESS_NAMESPACE } from "../../api/access.ts";
import { realClock } from "../../runtime/clock.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { type Equip, equipped } from "../shared/command.ts";
import { serveUntil, servingFlags, servingInput, tlsSourceOf } from "../shared/serving-flags.ts";

// The host's API server calls the Service by this name.
const SERVICE_HOST = `legation-access.${ACCESS_NAMESPACE}.svc`;

export const command: Equip = equipped({
  description:
    "Serves access.legation.dev on the host: users of the host reach the API servers of members through it, as " +
    "themselves. It keeps no state: run as many as you like. By default it makes its own serving certificate, keeps it " +
    "in a Secret and renews it. Writes its log as JSON lines to standard output.",
  flags: servingFlags,
  examples: {
    "access --kubeconfig host.yaml --listen 127.0.0.1:9444": "outside a cluster",
    "access --tls-cert-file /tls/tls.crt --tls-key-file /tls/tls.key": "with a certificate of cert-manager's",
  },
  input: servingInput,
  run: async (options, { connect, env, signal }) => {
    const log = createLogger({ level: options.logLevel });
    const { client } = await connect(options, "host");
    const metrics = new Metrics();
    const tls = tlsSourceOf(options, SERVICE_HOST);
    const start = (): ReturnType<typeof startAccess> =>
      startAccess({ ...options.listen, tls, client, env, clock: realClock, log, metrics }, signal);
    await serveUntil(signal, options, { name: "access", start, metrics, log });
  },
});
