import { virtualNodeName } from "../api/keys.ts";
import type { KubeletEndpoint, NodeAddressType } from "../api/virtual-node.ts";
import type { Certificate } from "../certificates/issue.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import { AccessReviews } from "../serving/access-reviews.ts";
import { CertificateKeeper } from "../serving/certificate-keeper.ts";
import type { TlsMaterial } from "../serving/certified-server.ts";
import { PublishedAuthentication } from "../serving/published-authentication.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { Authentication } from "./authentication.ts";
import { NodeServer, type NodeServerOptions } from "./node-server.ts";
import type { PodSource } from "./pod-lookup.ts";
import { type KubeletCertificate, kubeletSource } from "./serving-certificate.ts";
import { Streams } from "./streams.ts";

export interface ServersOptions {
  readonly listen: {
    readonly host: string;
    /** Port of the first node; other nodes get the following ports. 0 picks free ports. */
    readonly port: number;
  };
  /** The IP address or DNS name at which the host's API server reaches this process. */
  readonly address: string;
  /** The type of `address` in the nodes' status. Default: by its form. */
  readonly addressType?: NodeAddressType | undefined;
  readonly certificate: KubeletCertificate;
  /** A client of its own for the host, so that reviews of callers do not compete with other requests. */
  readonly host: ClusterClient;
  readonly source: PodSource;
  /** Called when a node's endpoint appears or disappears. */
  readonly onChange: (cluster: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics;
}

interface Served {
  readonly server: NodeServer;
  /** Set once the server listens. */
  port?: number;
  retry?: Timer;
}

const LAST_PORT = 65_535;
const LISTEN_AGAIN_MS = 5_000;
// The kubelet's defaults (authorization.webhook.cacheAuthorizedTTL and cacheUnauthorizedTTL).
const REVIEW_LIFETIMES = { allowedLifetimeMs: 300_000, deniedLifetimeMs: 30_000 };

/** One server per virtual node, because requests for a node's own state identify the node only by port. */
export class NodeServers {
  readonly #options: ServersOptions;
  readonly #authority: PublishedAuthentication;
  readonly #certificate: CertificateKeeper;
  readonly #streams: Streams;
  readonly #shared: NodeServerOptions;
  readonly #served = new Map<string, Served>();
  readonly #busy = new Set<number>();
  #serving: Certificate | undefined;
  #stopped = false;

  constructor(options: ServersOptions) {
    this.#options = options;
    const { host, clock, log, source } = options;
    this.#authority = new PublishedAuthentication({ host, clock, log, onChange: () => this.#renew() });
    this.#certificate = new CertificateKeeper({
      source: kubeletSource(options.certificate, { host, clock, log }),
      name: "kubelet API's serving certificate",
      onExpiry: (at) => options.metrics?.setCertificateExpiry("kubelet", at),
      clock,
      log,
    });
    this.#streams = new Streams({
      clock,
      log,
      onStream: (member, change) => options.metrics?.members.countStream(member, change),
    });
    this.#shared = {
      source,
      authentication: new Authentication({ host, clock }),
      reviews: new AccessReviews({ host, clock, ...REVIEW_LIFETIMES }),
      streams: this.#streams,
      clock,
      log,
    };
  }

  /** Rejects when no certificate is available. */
  async start(signal: AbortSignal): Promise<void> {
    const [certificate] = await Promise.all([this.#certificate.load(), this.#authority.start(signal)]);
    if (this.#authority.clientAuthority === undefined) {
      this.#options.log.warn(
        "the host publishes no client certificate authority (ConfigMap kube-system/extension-apiserver-authentication): " +
          "its API server is only known by a bearer token",
      );
    }
    this.#serving = certificate;
    await this.#certificate.follow((next) => {
      this.#serving = next;
      this.#renew();
    });
  }

  /** Serves on `port` if that is free. Does nothing when the node is served already. */
  async serve(cluster: string, port?: number): Promise<void> {
    const tls = this.#tls;
    if (this.#stopped || tls === undefined || this.#served.has(cluster)) return;
    const served: Served = { server: new NodeServer(cluster, tls, this.#shared) };
    this.#served.set(cluster, served);
    await this.#listen(cluster, served, port);
  }

  async withdraw(cluster: string): Promise<void> {
    const served = this.#served.get(cluster);
    if (served === undefined) return;
    this.#served.delete(cluster);
    served.retry?.cancel();
    await served.server.close();
  }

  endpoint(cluster: string): KubeletEndpoint | undefined {
    const port = this.#served.get(cluster)?.port;
    const { address, addressType } = this.#options;
    return port === undefined ? undefined : { address, ...(addressType === undefined ? {} : { addressType }), port };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#certificate.close();
    const clusters = [...this.#served.keys()];
    await Promise.all([
      this.#streams.close(),
      this.#authority.stop(),
      ...clusters.map((cluster) => this.withdraw(cluster)),
    ]);
    await this.#options.host.close();
  }

  async #listen(cluster: string, served: Served, preferred: number | undefined): Promise<void> {
    const { listen, log, clock, onChange } = this.#options;
    try {
      const port = await this.#listenSomewhere(served.server, preferred);
      if (this.#served.get(cluster) !== served) {
        // The cluster was removed meanwhile.
        await served.server.close();
        return;
      }
      served.port = port;
      log.info({ member: cluster, host: listen.host, port }, "kubelet API serves");
      onChange(cluster);
    } catch (error) {
      if (this.#served.get(cluster) !== served) return;
      log.error(
        { err: error, member: cluster },
        `kubelet API has no port to listen on at ${listen.host} (--kubelet-listen): logs and exec do not work until it has`,
      );
      served.retry = clock.after(LISTEN_AGAIN_MS, () => void this.#listen(cluster, served, preferred));
    }
  }

  async #listenSomewhere(server: NodeServer, preferred: number | undefined): Promise<number> {
    const { host, port: first } = this.#options.listen;
    const candidates = portsFrom(first, preferred);
    for (;;) {
      const port = candidates.next().value;
      if (port === undefined) throw new Error(`no port from ${first} on is free on ${host}`);
      try {
        return await server.listen(host, port);
      } catch (error) {
        if (!isInUse(error)) throw error;
        if (!this.#listensOn(port)) this.#tellBusy(port);
      }
    }
  }

  #listensOn(port: number): boolean {
    return [...this.#served.values()].some((served) => served.port === port);
  }

  /** An earlier controller that still runs answers there with a certificate that the host's API server does not know. */
  #tellBusy(port: number): void {
    if (this.#busy.has(port)) return;
    this.#busy.add(port);
    const { log, listen } = this.#options;
    log.warn(
      { host: listen.host, port },
      `port ${port} of --kubelet-listen is in use by another process, so a virtual node takes the next free one; ` +
        `\`ss -ltnp 'sport = :${port}'\` shows which: an earlier controller that still runs is to be stopped`,
    );
  }

  get #tls(): TlsMaterial | undefined {
    return this.#serving === undefined
      ? undefined
      : { certificate: this.#serving, clientAuthority: this.#authority.clientAuthority };
  }

  #renew(): void {
    const tls = this.#tls;
    if (tls === undefined) return;
    for (const [cluster, { server }] of this.#served) {
      try {
        server.renew(tls);
      } catch (error) {
        this.#options.log.error({ err: error, node: virtualNodeName(cluster) }, "certificates cannot be used");
      }
    }
  }
}

/** Yields the ports to try: the node's previous one if it is still in range, then all in order. */
export function* portsFrom(first: number, preferred: number | undefined): Generator<number, undefined> {
  if (preferred !== undefined && preferred > 0 && preferred >= first) yield preferred;
  if (first === 0) {
    yield 0;
    return;
  }
  for (let port = first; port <= LAST_PORT; port += 1) yield port;
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EADDRINUSE";
}
