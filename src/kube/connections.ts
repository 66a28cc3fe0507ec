import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { buildConnector, type Dispatcher, Pool, ProxyAgent, Socks5ProxyAgent } from "undici";
import type { ClusterCredentials, Identity } from "./credentials.ts";
import type { ClientLimits } from "./limits.ts";
import { lookUp } from "./name-lookup.ts";

// Places for requests that wait for no slot.
const OUT_OF_TURN = 4;

// Of the time for a connection, for each address but the last: three get their turn, and each a second packet when the first is lost
// (after 1 s, RFC 6298). Node's own quarter of a second is less than some ways take.
const SHARE_OF_AN_ADDRESS = 0.3;

/** The connections to one API server under one TLS identity. */
interface Generation {
  readonly requests: Dispatcher;
  readonly watches: Dispatcher;
  readonly upgrades: Dispatcher;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/**
 * Two sets of long-lived keep-alive connections to one API server: watches, and other answers that are read as streams,
 * have their own, so that they never take a place from requests. An upgrade gets a connection that is new, and whoever
 * asked for it keeps it. A new certificate or authority opens new connections; the old ones finish what they have begun.
 */
export class Connections {
  readonly #credentials: ClusterCredentials;
  readonly #limits: ClientLimits;
  readonly #generations = new Set<Generation>();
  #current: Generation | undefined;
  #destroyed = false;

  constructor(credentials: ClusterCredentials, limits: ClientLimits) {
    this.#credentials = credentials;
    this.#limits = limits;
  }

  /** The dispatcher for a request, a watch or an upgrade under `identity`. Throws after `destroy`. */
  for(use: "requests" | "watches" | "upgrades", identity: Identity): Dispatcher {
    const current = this.#current;
    if (
      current !== undefined &&
      current.ca === identity.ca &&
      current.cert === identity.cert &&
      current.key === identity.key
    ) {
      return current[use];
    }
    return this.#renew(identity)[use];
  }

  /** Cuts every connection; requests and watches under way fail. */
  async destroy(reason: Error): Promise<void> {
    this.#destroyed = true;
    this.#current = undefined;
    const all = [...this.#generations].flatMap(({ requests, watches, upgrades }) => [requests, watches, upgrades]);
    this.#generations.clear();
    await Promise.all(all.map((dispatcher) => dispatcher.destroy(reason)));
  }

  #renew(identity: Identity): Generation {
    if (this.#destroyed) throw new Error("the client was closed");
    const previous = this.#current;
    const { ca, cert, key } = identity;
    const { concurrency } = this.#limits;
    // Made once: reading the authorities anew costs more than the rest of a connection's handshake.
    const secureContext = createSecureContext({
      ...this.#trusted(ca),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
    const next = {
      requests: this.#open(secureContext, concurrency + OUT_OF_TURN),
      watches: this.#open(secureContext, null),
      // Not one that idles: the server may be closing it, and an upgrade is not safe to send twice.
      upgrades: this.#open(secureContext, null, "once"),
      ca,
      cert,
      key,
    };
    this.#generations.add(next);
    this.#current = next;
    if (previous !== undefined) {
      void Promise.all([previous.requests.close(), previous.watches.close(), previous.upgrades.close()]).then(() =>
        this.#generations.delete(previous),
      );
    }
    return next;
  }

  /** As kubectl does, by the system's authorities where none is given; Node by itself knows only those that it brings along. */
  #trusted(ca: string | undefined): { readonly ca?: string | string[] } {
    if (ca !== undefined) return { ca };
    const { server, insecureSkipTlsVerify } = this.#credentials;
    if (insecureSkipTlsVerify || !server.startsWith("https:")) return {};
    return { ca: [...getCACertificates("default"), ...getCACertificates("system")] };
  }

  #open(secureContext: SecureContext, connections: number | null, use?: "once"): Dispatcher {
    const { server, tlsServerName, insecureSkipTlsVerify, environmentProxyUrl } = this.#credentials;
    const { proxyUrl = environmentProxyUrl } = this.#credentials;
    const tls = {
      rejectUnauthorized: !insecureSkipTlsVerify,
      secureContext,
      ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    };
    const options = {
      connections,
      // undici's way to say that a connection is not kept for another request.
      pipelining: use === "once" ? 0 : 1,
      // One exchange per connection keeps "sent" and "not sent" apart, and one lost answer from touching another.
      allowH2: false,
      // The client has deadlines of its own, which cover waiting too.
      headersTimeout: 0,
      bodyTimeout: 0,
      // API servers keep idle connections for minutes; ours go first, so that a request rarely meets a closed one.
      keepAliveTimeout: 30_000,
      keepAliveMaxTimeout: 60_000,
    };
    const connectTimeout = this.#limits.connectTimeoutMs;
    const way = {
      lookup: lookUp,
      autoSelectFamilyAttemptTimeout: Math.round(connectTimeout * SHARE_OF_AN_ADDRESS),
      timeout: connectTimeout,
    };
    if (proxyUrl === undefined) {
      return new Pool(new URL(server).origin, {
        ...options,
        // TCP keep-alive finds a peer that vanished without a word; 30 s is shorter than common load balancers wait.
        connect: { ...tls, ...way, keepAlive: true, keepAliveInitialDelay: 30_000 },
      });
    }
    if (proxyUrl.startsWith("socks")) {
      const url = proxyUrl.replace(/^socks5h:/, "socks5:");
      const agent = new Socks5ProxyAgent(url, { requestTls: tls, connect: buildConnector(way) });
      // It makes its connections by the options of the first request.
      return agent.compose((dispatch) => (request, handler) => dispatch({ ...options, ...request }, handler));
    }
    return new ProxyAgent({
      ...options,
      uri: proxyUrl,
      connectTimeout,
      // The way to the proxy: one that does not answer CONNECT must not hold a place for minutes.
      clientFactory: (origin, ofAgent) => new Pool(origin, { ...ofAgent, headersTimeout: connectTimeout }),
      proxyTls: way,
      requestTls: { ...tls, timeout: connectTimeout },
    });
  }
}
