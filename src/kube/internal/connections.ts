import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { buildConnector, type Dispatcher, Pool, ProxyAgent, Socks5ProxyAgent } from "undici";
import type { Dial } from "../client.ts";
import type { ClusterCredentials, RequestIdentity } from "../credentials.ts";
import type { ClientLimits } from "../limits.ts";
import { lookUpName } from "./dns-lookup.ts";

// Connections beyond the slots, for requests out of turn.
const OUT_OF_TURN = 4;

// Share of the connect timeout per address: three addresses get a turn, each with one SYN retransmission (1 s, RFC 6298).
// Node.js' default of 250 ms is shorter than some routes take.
const SHARE_OF_AN_ADDRESS = 0.3;

/** Connections to one API server under one TLS identity. */
interface Generation {
  /** Opens the pool when it is first used: one takes 16 kB, and few members have upgrades. */
  readonly of: (use: ConnectionUse) => Dispatcher;
  readonly opened: ReadonlyMap<ConnectionUse, Dispatcher>;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export type ConnectionUse = "requests" | "watches" | "upgrades";

export interface ConnectionsOptions {
  readonly credentials: ClusterCredentials;
  readonly limits: ClientLimits;
  /** Reaches the server by another way than its address. */
  readonly dial?: Dial | undefined;
}

/**
 * Pools of keep-alive connections to one API server: one for requests, one for watches and other streamed responses, so that
 * streams never take a request's connection. An upgrade gets a new connection of its own. A changed certificate or CA opens
 * new connections; old ones finish their requests.
 */
export class ServerConnections {
  readonly #credentials: ClusterCredentials;
  readonly #limits: ClientLimits;
  readonly #dial: Dial | undefined;
  readonly #generations = new Set<Generation>();
  #current: Generation | undefined;
  #destroyed = false;

  constructor({ credentials, limits, dial }: ConnectionsOptions) {
    this.#credentials = credentials;
    this.#limits = limits;
    this.#dial = dial;
  }

  /** Returns the dispatcher for a request, a watch or an upgrade under `identity`. Throws after `destroy`. */
  for(use: ConnectionUse, identity: RequestIdentity): Dispatcher {
    const current = this.#current;
    if (
      current !== undefined &&
      current.ca === identity.ca &&
      current.cert === identity.cert &&
      current.key === identity.key
    ) {
      return current.of(use);
    }
    return this.#renew(identity).of(use);
  }

  /** Closes every connection. Requests and watches in flight fail. */
  async destroy(reason: Error): Promise<void> {
    this.#destroyed = true;
    this.#current = undefined;
    const all = [...this.#generations].flatMap(dispatchersOf);
    this.#generations.clear();
    await Promise.all(all.map((dispatcher) => dispatcher.destroy(reason)));
  }

  #renew(identity: RequestIdentity): Generation {
    if (this.#destroyed) throw new Error("the client was closed");
    const previous = this.#current;
    const { ca, cert, key } = identity;
    const { concurrency } = this.#limits;
    // Shared by all connections: parsing the CA bundle costs more than the rest of a handshake.
    const secureContext = createSecureContext({ ...this.#trusted(ca), cert, key });
    const opened = new Map<ConnectionUse, Dispatcher>();
    const open = (use: ConnectionUse): Dispatcher => {
      const dispatcher = this.#open(secureContext, use === "requests" ? concurrency + OUT_OF_TURN : null, use);
      opened.set(use, dispatcher);
      return dispatcher;
    };
    const next: Generation = { of: (use) => opened.get(use) ?? open(use), opened, ca, cert, key };
    this.#generations.add(next);
    this.#current = next;
    if (previous !== undefined) {
      const closed = dispatchersOf(previous).map((dispatcher) => dispatcher.close());
      void Promise.all(closed).then(() => this.#generations.delete(previous));
    }
    return next;
  }

  /** Returns the given CA, else the system's as kubectl does. Node.js by default trusts only its bundled CAs. */
  #trusted(ca: string | undefined): { readonly ca?: string | string[] } {
    if (ca !== undefined) return { ca };
    const { server, insecureSkipTlsVerify } = this.#credentials;
    if (insecureSkipTlsVerify || !server.startsWith("https:")) return {};
    return { ca: [...getCACertificates("default"), ...getCACertificates("system")] };
  }

  #open(secureContext: SecureContext, connections: number | null, use: ConnectionUse): Dispatcher {
    const { server, tlsServerName, insecureSkipTlsVerify, environmentProxyUrl } = this.#credentials;
    const { proxyUrl = environmentProxyUrl } = this.#credentials;
    const tls = {
      rejectUnauthorized: !insecureSkipTlsVerify,
      secureContext,
      ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    };
    const options = {
      connections,
      // In undici, pipelining 0 closes the connection after one request: an upgrade gets no idle connection, which the server may
      // be closing, since it cannot be retried safely.
      pipelining: use === "upgrades" ? 0 : 1,
      // A single request per connection separates "sent" from "not sent", and isolates a lost response.
      allowH2: false,
      // The client's own deadlines apply, which include queueing.
      headersTimeout: 0,
      bodyTimeout: 0,
      // Shorter than API servers' idle timeout of minutes, so that a request rarely meets a closed connection.
      keepAliveTimeout: 30_000,
      keepAliveMaxTimeout: 60_000,
    };
    const connectTimeout = this.#limits.connectTimeoutMs;
    const way = {
      lookup: lookUpName,
      autoSelectFamilyAttemptTimeout: Math.round(connectTimeout * SHARE_OF_AN_ADDRESS),
      timeout: connectTimeout,
    };
    if (this.#dial !== undefined) {
      return new Pool(new URL(server).origin, {
        ...options,
        connect: dialled(this.#dial, {
          ...tls,
          ...way,
          allowH2: false,
          onUntrusted: () => this.#credentials.refresh(),
        }),
      });
    }
    if (proxyUrl === undefined) {
      // TCP keep-alive detects a vanished peer; 30 s is shorter than the idle timeout of common load balancers.
      const connect = { ...tls, ...way, allowH2: false, keepAlive: true, keepAliveInitialDelay: 30_000 };
      return new Pool(new URL(server).origin, {
        ...options,
        connect: use === "upgrades" ? resuming(buildConnector(connect)) : connect,
      });
    }
    if (proxyUrl.startsWith("socks")) {
      const url = proxyUrl.replace(/^socks5h:/, "socks5:");
      const agent = new Socks5ProxyAgent(url, { requestTls: tls, connect: buildConnector(way) });
      // The agent creates its connections with the options of the first request.
      return agent.compose((dispatch) => (request, handler) => dispatch({ ...options, ...request }, handler));
    }
    const kept: KeptSession = {};
    return new ProxyAgent({
      ...options,
      uri: proxyUrl,
      connectTimeout,
      // Limits CONNECT, so that a silent proxy does not hold a connection for minutes.
      clientFactory: (origin, ofAgent) => new Pool(origin, { ...ofAgent, headersTimeout: connectTimeout }),
      // The agent has a new pool after each pause.
      factory: (origin, ofAgent) => {
        const isResuming = use === "upgrades" && hasConnector(ofAgent);
        return new Pool(origin, isResuming ? { ...ofAgent, connect: resuming(ofAgent.connect, kept) } : ofAgent);
      },
      // Tunnels in one HTTP/2 connection would share its flow control.
      proxyTls: { ...way, allowH2: false },
      requestTls: { ...tls, timeout: connectTimeout },
    });
  }
}

function dispatchersOf({ opened }: Generation): Dispatcher[] {
  return [...opened.values()];
}

function hasConnector(options: object): options is { readonly connect: buildConnector.connector } {
  return "connect" in options && typeof options.connect === "function";
}

interface KeptSession {
  session?: Buffer;
}

/** Keeps the latest TLS session, since undici loses it at a garbage collection: a full handshake costs three times as much. */
function resuming(connect: buildConnector.connector, kept: KeptSession = {}): buildConnector.connector {
  return (target, callback) =>
    connect(target, (...[error, socket]: buildConnector.CallbackArgs) => {
      if (error !== null) callback(error, null);
      else {
        socket.on("session", (session: Buffer) => {
          kept.session = session;
        });
        callback(null, socket);
      }
    });
}

/** Returns a connector that speaks TLS on a dialled connection. The connect timeout holds for each of the two. */
function dialled(
  dial: Dial,
  {
    onUntrusted,
    ...options
  }: buildConnector.BuildOptions & { readonly timeout: number; readonly onUntrusted: () => void },
): buildConnector.connector {
  const secure = buildConnector(options);
  return (target, callback) => {
    const done = (...[error, socket]: buildConnector.CallbackArgs): void => {
      if (error === null) callback(error, socket);
      else {
        if (isUntrusted(error)) onUntrusted();
        callback(error, null);
      }
    };
    dial(AbortSignal.timeout(options.timeout)).then(
      (httpSocket) => secure({ ...target, httpSocket }, done),
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    );
  };
}

// Codes of OpenSSL for a chain that ends at no trusted authority, or at one that has expired: `X509_V_ERR_…` without the prefix.
const UNTRUSTED: ReadonlySet<unknown> = new Set([
  "CERT_HAS_EXPIRED",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** Reports whether the server's certificate is of no authority that is trusted. */
function isUntrusted(error: Error): boolean {
  return "code" in error && UNTRUSTED.has(error.code);
}
