import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { Dial } from "../kube/client.ts";
import { jsonOrNothing } from "../kube/json.ts";
import type { Clock } from "../runtime/clock.ts";
import { HttpsListener } from "../runtime/https-listener.ts";
import { refuse, statusAnswer, switchProtocols } from "../runtime/upgrade-answers.ts";
import type { AgentTraffic } from "../telemetry/agents.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type AgentIdentity, AgentSession } from "./agent-session.ts";
import { clientOf, type HubClient } from "./client-certificate.ts";
import { ClusterAgents, type ConnectedAgent, MOST_TURNS } from "./cluster-agents.ts";
import { DIAL_MS, type DialTarget, dialTcp, joinDialled } from "./dialled.ts";
import {
  CERTIFICATE_PATH,
  type CertificateAnswer,
  CLUSTER_HEADER,
  CONTROL_PATH,
  CONTROL_PROTOCOL,
  certificateRequest,
  HOME_PATH,
  HOME_PROTOCOL,
  type MemberCredentials,
  STREAM_PATH,
  STREAM_PROTOCOL,
  type TokenAccount,
} from "./messages.ts";
import { CONTROLLER_NAME, RELAY_NAME, RELAY_PATH, RELAY_PROTOCOL } from "./relay.ts";

/** The token of a join, for an agent's first certificate. */
export interface TokenProof {
  readonly cluster: string;
  readonly token: string;
}

/** How an agent shows who it is when it asks for a certificate. */
export type Proof = { readonly agent: AgentIdentity } | TokenProof;

/** Decides who may connect. */
export interface Gatekeeper {
  /** Returns why the agent may not connect. Undefined: it may. */
  refusal(agent: AgentIdentity): string | undefined;
  /** Returns why pods of the cluster do not reach the home API through its agent. Undefined: they do. */
  homeApiRefusal(cluster: string): string | undefined;
  /** Signs an agent's request (PEM). Rejects with `AgentRefusal`. */
  certify(request: string, proof: Proof): Promise<CertificateAnswer>;
  /** The authorities (PEM) that agents are to trust. */
  authorities(): string;
  /** Reports whether a connected agent is to send a token of the host's service account. */
  wantsCredentials(cluster: string): boolean;
  onCredentials(cluster: string, account: TokenAccount, credentials: MemberCredentials): void;
  /** Returns why users do not reach the cluster through its agent. Undefined: they do. */
  relayRefusal(cluster: string): string | undefined;
  /** Called when the cluster's agent has told of itself, after its connection. */
  onFacts(cluster: string): void;
}

/** A refusal of an agent's request, with the reason for its operator. */
export class AgentRefusal extends Error {}

/** The hub's serving certificate, and the authorities (PEM) of agents' certificates. */
export interface HubTls {
  readonly cert: string;
  readonly key: string;
  readonly authorities: string;
}

export interface HubOptions {
  /** Where this host's API server listens for pods of members. Undefined: the hub does not lead there. */
  readonly homeApi?: DialTarget | undefined;
  readonly onChange: (cluster: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

type Reason = Parameters<typeof statusAnswer>[0];

const LONGEST_REQUEST_MS = 10_000;
const LIMITS = {
  headersTimeout: LONGEST_REQUEST_MS,
  requestTimeout: LONGEST_REQUEST_MS,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
  noDelay: true,
};
const MAX_BODY_BYTES = 32_768;
/** The most open connections of pods to the home API: of one member, and in all. */
const MOST_HOME_STREAMS = { ofMember: 500, inAll: 2_000 } as const;
// Connections that are no agent's control connection or stream, nor one of `legation access`: agents have them for a moment only.
const MOST_STRANGERS = 2_000;

/**
 * Takes connections of agents, which run in clusters that cannot be reached, and opens connections to these clusters' API
 * servers through them. Each such connection is one that the agent dials back, so none slows another.
 */
export class Hub {
  readonly #options: HubOptions;
  readonly #gatekeeper: Gatekeeper;
  readonly #listener: HttpsListener;
  readonly #agents = new Map<string, ClusterAgents>();
  #openedAt = 0;
  /** Connections of all members' pods to the home API. */
  #homeStreams = 0;

  constructor(tls: HubTls, gatekeeper: Gatekeeper, options: HubOptions) {
    this.#options = options;
    this.#gatekeeper = gatekeeper;
    // Certificates are checked for each path: an agent without one asks for one.
    this.#listener = new HttpsListener(tlsOptions(tls), {
      limits: LIMITS,
      onRequest: (request, response) => void this.#onRequest(request, response),
      onUpgrade: (request, socket, head) => this.#onUpgrade(request, socket, head),
      onError: (error) => options.log.error({ err: error }, "hub"),
      mostStrangers: MOST_STRANGERS,
    });
  }

  /** Resolves to the port. Rejects when it is not available. */
  async listen(host: string, port: number): Promise<number> {
    const listening = await this.#listener.listen(host, port);
    this.#openedAt = this.#options.clock.now();
    return listening;
  }

  renew(tls: HubTls): void {
    this.#listener.renew(tlsOptions(tls));
    for (const { sessions } of this.#agents.values()) {
      for (const session of sessions) session.welcome(this.#gatekeeper.authorities());
    }
  }

  /** Opens a connection to the cluster's API server. Rejects without an agent, or when the signal fires. */
  dial(cluster: string, signal: AbortSignal): Promise<Socket> {
    return this.#agentsOf(cluster).dial(signal);
  }

  state(cluster: string): Omit<AgentTraffic, "name"> {
    return this.#agentsOf(cluster).state;
  }

  agent(cluster: string): ConnectedAgent | undefined {
    return this.#agents.get(cluster)?.agent;
  }

  /** Notes the certificate that a connected agent has got: its connection is still by the one before. */
  noteCertificate(cluster: string, expires: number | undefined): void {
    this.#agents.get(cluster)?.noteCertificate(expires);
  }

  askForCredentials(cluster: string, account: TokenAccount): void {
    this.#agents.get(cluster)?.sessions.at(-1)?.askForCredentials(account);
  }

  /** Ends the connections of agents that may not connect any more. */
  recheck(cluster: string): void {
    for (const session of [...(this.#agents.get(cluster)?.sessions ?? [])]) {
      const refusal = this.#gatekeeper.refusal(session.agent);
      if (refusal !== undefined) session.close(refusal);
      else if (this.#gatekeeper.homeApiRefusal(cluster) !== undefined) session.homeStreams.destroy();
    }
  }

  /** Drops the state of a Cluster that has left. A later one of the name begins anew. */
  forget(cluster: string): void {
    this.recheck(cluster);
    this.#agents.delete(cluster);
  }

  async close(): Promise<void> {
    for (const { sessions } of this.#agents.values()) {
      for (const session of [...sessions]) session.close("the hub closes");
    }
    this.#agents.clear();
    await this.#listener.closeAll();
  }

  #agentsOf(cluster: string): ClusterAgents {
    const known = this.#agents.get(cluster);
    if (known !== undefined) return known;
    const agents = new ClusterAgents(cluster, this.#openedAt, this.#options.clock);
    this.#agents.set(cluster, agents);
    return agents;
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    const fail = (reason: Reason, message: string): void => {
      const { status, headers, text } = statusAnswer(reason, message);
      response.writeHead(status, { ...headers, connection: "close" }).end(text);
    };
    if (request.method !== "POST" || request.url !== CERTIFICATE_PATH) {
      fail("NotFound", `the hub has no ${request.method} ${request.url}`);
      return;
    }
    try {
      const { agent, problem } = this.#clientOf(request.socket);
      if (agent !== undefined && this.#gatekeeper.refusal(agent) === undefined && !this.#takeTurn(agent)) {
        fail("TooManyRequests", tooOften(agent));
        return;
      }
      const proof = agent === undefined ? tokenOf(request) : { agent };
      if (proof === undefined) {
        fail("Forbidden", `neither a token nor a certificate of this hub was presented: ${problem}`);
        return;
      }
      const parsed = certificateRequest.safeParse(await readJson(request));
      if (parsed.success) answer(200, await this.#gatekeeper.certify(parsed.data.request, proof));
      else fail("BadRequest", 'the body is not {"request": PEM}');
    } catch (error) {
      if (error instanceof AgentRefusal) fail("Forbidden", error.message);
      // A stranger that ends its request early fills no log.
      else if (request.complete) {
        this.#options.log.warn({ err: error }, "certificate of an agent not issued");
        fail("InternalError", "the certificate could not be issued; the controller's log says why");
      }
    }
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { url = "", headers } = request;
    const client = this.#clientOf(socket);
    if (head.length > 0) socket.unshift(head);
    if (url.startsWith(RELAY_PATH) && headers.upgrade === RELAY_PROTOCOL && isRelay(client)) {
      const cluster = url.slice(RELAY_PATH.length);
      this.#noteKnown(socket);
      const refusal = client.commonName === RELAY_NAME ? this.#gatekeeper.relayRefusal(cluster) : undefined;
      // Goes on when the client has gone: an agent that is given up early would be asked last.
      const dial = (): Promise<Socket> => this.dial(cluster, AbortSignal.timeout(DIAL_MS));
      if (refusal === undefined) this.#join(socket, RELAY_PROTOCOL, dial);
      else this.#refuse(socket, "Forbidden", refusal);
      return;
    }
    const { agent, problem } = client;
    const refusal = agent === undefined ? problem : this.#gatekeeper.refusal(agent);
    if (agent === undefined || refusal !== undefined) {
      this.#refuse(socket, "Forbidden", refusal ?? "");
      return;
    }
    if (url === CONTROL_PATH && headers.upgrade === CONTROL_PROTOCOL) this.#control(agent, client, socket);
    else if (url.startsWith(STREAM_PATH) && headers.upgrade === STREAM_PROTOCOL) {
      this.#stream(agent, url.slice(STREAM_PATH.length), socket);
    } else if (url === HOME_PATH && headers.upgrade === HOME_PROTOCOL) this.#home(agent, socket);
    else this.#refuse(socket, "NotFound", `the hub has no ${url}`);
  }

  #join(socket: Duplex, protocol: string, dial: Dial): void {
    void joinDialled(socket, { protocol, dial, clock: this.#options.clock });
  }

  #noteKnown(socket: Duplex): void {
    if (socket instanceof TLSSocket) this.#listener.verified(socket);
  }

  /** Reports whether the agent may do what costs the host log lines or requests. Only for agents that are not refused. */
  #takeTurn({ cluster }: AgentIdentity): boolean {
    return this.#agentsOf(cluster).takeTurn();
  }

  #clientOf(socket: Duplex): HubClient {
    return clientOf(socket, this.#options.clock.wall());
  }

  #refuse(socket: Duplex, reason: Reason, message: string): void {
    refuse(socket, statusAnswer(reason, message), this.#options.clock);
  }

  #control(agent: AgentIdentity, { certificateExpires }: HubClient, socket: Duplex): void {
    const { cluster } = agent;
    const { clock, log, onChange } = this.#options;
    if (!this.#takeTurn(agent)) {
      this.#refuse(socket, "TooManyRequests", tooOften(agent));
      return;
    }
    const agents = this.#agentsOf(cluster);
    this.#noteKnown(socket);
    switchProtocols(socket, { connection: "Upgrade", upgrade: CONTROL_PROTOCOL });
    const session = new AgentSession(socket, {
      agent,
      certificateExpires,
      onCredentials: (account, credentials) => this.#gatekeeper.onCredentials(cluster, account, credentials),
      onFacts: () => this.#gatekeeper.onFacts(cluster),
      onEnd: (reason) => {
        agents.remove(session, reason);
        log.info({ member: cluster, reason }, "agent disconnected");
        if (agents.sessions.length === 0) onChange(cluster);
      },
      clock,
    });
    agents.add(session);
    log.info({ member: cluster }, "agent connected");
    session.welcome(this.#gatekeeper.authorities());
    if (this.#gatekeeper.wantsCredentials(cluster)) session.askForCredentials("host");
    onChange(cluster);
  }

  #stream({ cluster }: AgentIdentity, id: string, socket: Duplex): void {
    const session = this.#agents.get(cluster)?.sessions.find((each) => each.awaits(id));
    if (!(socket instanceof TLSSocket) || session === undefined) {
      this.#refuse(socket, "NotFound", "this connection is not awaited any more");
      return;
    }
    this.#noteKnown(socket);
    switchProtocols(socket, { connection: "Upgrade", upgrade: STREAM_PROTOCOL });
    session.accept(id, socket);
  }

  #home({ cluster }: AgentIdentity, socket: Duplex): void {
    const { homeApi } = this.#options;
    const session = this.#agents.get(cluster)?.sessions.at(-1);
    const refusal = this.#gatekeeper.homeApiRefusal(cluster);
    if (refusal !== undefined) this.#refuse(socket, "Forbidden", refusal);
    else if (homeApi === undefined) {
      this.#refuse(
        socket,
        "ServiceUnavailable",
        "the controller reaches its API server by a proxy, which pods cannot use",
      );
    } else if (!(socket instanceof TLSSocket) || session === undefined) {
      this.#refuse(socket, "ServiceUnavailable", "the agent has no control connection to this controller");
    } else if (
      session.homeStreams.count >= MOST_HOME_STREAMS.ofMember ||
      this.#homeStreams >= MOST_HOME_STREAMS.inAll
    ) {
      const { ofMember, inAll } = MOST_HOME_STREAMS;
      const message = `pods have too many connections to the home API: at most ${ofMember} of one member, and ${inAll} in all`;
      this.#refuse(socket, "ServiceUnavailable", message);
    } else {
      this.#noteKnown(socket);
      session.homeStreams.add(socket);
      this.#homeStreams += 1;
      socket.once("close", () => {
        this.#homeStreams -= 1;
      });
      this.#join(socket, HOME_PROTOCOL, (signal) =>
        dialTcp(homeApi, signal).catch((error: unknown) => {
          throw new Error(`the host's API server cannot be reached: ${error instanceof Error ? error.message : error}`);
        }),
      );
    }
  }
}

function tlsOptions({ cert, key, authorities }: HubTls) {
  return { cert, key, ca: authorities, minVersion: "TLSv1.3" } as const;
}

function tooOften({ cluster }: AgentIdentity): string {
  return `agents of ${cluster} connect or ask for certificates more than ${MOST_TURNS} times a minute`;
}

function tokenOf({ headers }: IncomingMessage): TokenProof | undefined {
  const token = /^Bearer (\S+)$/.exec(headers.authorization ?? "")?.[1];
  const cluster = headers[CLUSTER_HEADER];
  return token === undefined || typeof cluster !== "string" ? undefined : { cluster, token };
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_BODY_BYTES) throw new AgentRefusal("the request is too large");
    chunks.push(bytes);
  }
  return jsonOrNothing(Buffer.concat(chunks).toString("utf8"));
}

function isRelay({ commonName }: HubClient): boolean {
  return commonName === RELAY_NAME || commonName === CONTROLLER_NAME;
}
