import type { Certificate } from "../certificates/issue.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Environment } from "../kube/environment-proxy.ts";
import type { Clock } from "../runtime/clock.ts";
import { DepartedClusters } from "../runtime/departed-clusters.ts";
import { AccessReviews } from "../serving/access-reviews.ts";
import { CertificateKeeper } from "../serving/certificate-keeper.ts";
import { type TlsSource, verifiedSource } from "../serving/certificate-source.ts";
import { PublishedAuthentication } from "../serving/published-authentication.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { ensureApiServiceTrust } from "./api-service.ts";
import { ACCESS_CERTIFICATE_SECRET } from "./certificate.ts";
import { AccessGate } from "./gate.ts";
import { AccessMembers } from "./members.ts";
import { AccessServer } from "./server.ts";

export interface AccessOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly tls: TlsSource;
  /** A client of the host with the rights of `legation access`. */
  readonly client: ClusterClient;
  /** Environment of this process, which may name a proxy. */
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface RunningAccess {
  readonly port: number;
  close(): Promise<void>;
}

// The defaults of extension API servers (k8s.io/apiserver, DelegatingAuthorizationOptions).
const REVIEW_LIFETIME_MS = 10_000;

/** Serves the members' API servers to users of the host. Rejects without a first certificate or port. */
export async function startAccess(options: AccessOptions, signal: AbortSignal): Promise<RunningAccess> {
  const { client, clock, log, env, metrics } = options;
  const keeper = new CertificateKeeper({
    source: verifiedSource(options.tls, { secret: ACCESS_CERTIFICATE_SECRET, client, clock }),
    publish: (trust, stop) => ensureApiServiceTrust(client, trust, stop),
    onExpiry: (at) => metrics.setCertificateExpiry("access", at),
    clock,
    log,
  });
  let certificate: Certificate = await keeper.load();
  const authentication = new PublishedAuthentication({ host: client, clock, log, onChange: () => renew() });
  const departed = new DepartedClusters({ exists: (name) => members.exists(name), metrics, clock });
  const onChange = (name: string): void => departed.noteChange(name);
  const members = new AccessMembers({ host: client, env, clock, log, onChange });
  const stop = async (): Promise<void> => {
    keeper.close();
    departed.stop();
    await Promise.all([authentication.stop(), members.stop()]);
  };
  let server: AccessServer | undefined;
  const renew = (): void => {
    try {
      server?.renew({ certificate, clientAuthority: authentication.proxyAuthority });
    } catch (error) {
      log.error({ err: error }, "certificates cannot be used");
    }
  };
  try {
    await Promise.all([authentication.start(signal), members.start(signal)]);
    const gate = new AccessGate({
      members,
      requestHeaders: () => authentication.requestHeaders,
      reviews: new AccessReviews({
        host: client,
        clock,
        allowedLifetimeMs: REVIEW_LIFETIME_MS,
        deniedLifetimeMs: REVIEW_LIFETIME_MS,
      }),
      clock,
      log,
    });
    const notReady = (): string | undefined => {
      if (authentication.proxyAuthority === undefined || authentication.requestHeaders === undefined)
        return NO_AGGREGATION;
      return keeper.trusted ? undefined : "the APIService is missing or does not trust this server yet";
    };
    const tls = { certificate, clientAuthority: authentication.proxyAuthority };
    const serving = new AccessServer(tls, { gate, notReady, clock, log, metrics: metrics.access });
    server = serving;
    const port = await serving.listen(options.host, options.port);
    await keeper.follow((next) => {
      certificate = next;
      renew();
    });
    if (authentication.requestHeaders === undefined) log.warn(NO_AGGREGATION);
    return {
      port,
      close: async () => {
        keeper.close();
        await serving.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const NO_AGGREGATION =
  "the host's API server passes no requests on to aggregated APIs: start it with --requestheader-client-ca-file and its neighbours";
