import { RELAY_SERVER_NAME } from "../../api/access.ts";
import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import {
  AGENT_JOIN_ANNOTATION,
  AGENT_KEY_ANNOTATION,
  HUB_SECRET,
  SYSTEM_NAMESPACE,
  TOKEN_EXPIRES_ANNOTATION,
} from "../../api/keys.ts";
import { type Secret, type Stored, secretData, secretText } from "../../api/kubernetes.ts";
import { currentServing } from "../../certificates/current.ts";
import { issueClient, readRequest } from "../../certificates/issue.ts";
import { expiresAt } from "../../certificates/validity.ts";
import { memberKubeconfig } from "../../clusters/kubeconfig.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient, Dial } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { tokenClaims, withToken } from "../../kube/service-account-token.ts";
import { Backoff } from "../../runtime/backoff.ts";
import { type Clock, onClockStep, type Timer } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { Mutex } from "../../runtime/mutex.ts";
import type { AgentTraffic } from "../../telemetry/agents.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AgentIdentity } from "../../tunnel/agent-session.ts";
import type { ConnectedAgent } from "../../tunnel/cluster-agents.ts";
import { AgentRefusal, type Gatekeeper, type Hub, type HubTls, type Proof, type TokenProof } from "../../tunnel/hub.ts";
import { hostOfAddress } from "../../tunnel/hub-address.ts";
import type { CertificateAnswer, MemberCredentials, TokenAccount } from "../../tunnel/messages.ts";
import type { ControllerEvents } from "../events.ts";
import { type HubAuthorities, readAuthorities, renewed, trusted } from "./authority.ts";
import { sha256, tokenProblem } from "./credentials.ts";
import { type HubEndpoint, publishEndpoint } from "./endpoint.ts";
import { UserAccess } from "./user-access.ts";

/** How this process serves the hub. */
export interface HubServing {
  readonly open: (tls: HubTls, gatekeeper: Gatekeeper, onChange: (cluster: string) => void) => Promise<Hub>;
  readonly endpoint: HubEndpoint | undefined;
  /** `HOST:PORT` of this process in the host's network. Undefined: as agents reach it. */
  readonly address: string | undefined;
}

/** How a member is reached through its agent. */
export interface AgentConnection {
  /** Rejects with the reason why there is no connection. */
  readonly dial: Dial;
  /** Called when the member refuses the host's token, or presents a certificate of another authority than the stored one. */
  readonly onUselessCredentials: () => void;
}

export interface AgentControllerOptions {
  readonly host: ClusterClient;
  readonly hostId: string;
  readonly registry: Registry;
  readonly events: Events<ControllerEvents>;
  /** Undefined: this controller takes no agents. */
  readonly hub: HubServing | undefined;
  readonly metrics?: Metrics;
  readonly clock: Clock;
  readonly log: Logger;
}

const DAY_MS = 24 * 60 * 60_000;
const AGENT_LIFETIME_MS = 90 * DAY_MS;
const SERVING_LIFETIME_MS = 90 * DAY_MS;
const ASK_EVERY_MS = 30_000;
const RETRY_MS = 30_000;
// Meanwhile no agent finds the leader, and the host's API server may just be coming back.
const SERVE_AGAIN = { initialMs: 1_000, maxMs: 30_000 };
const LOOK_EVERY_MS = DAY_MS / 4;
// An apply without a change costs the API server no write.
const PUBLISH_EVERY_MS = 60_000;

/**
 * Lets agents of joined clusters connect: their certificates, the hub's own, and the credentials for their members. State is in the
 * hub's Secret and in those of the members.
 */
export class AgentController implements Gatekeeper {
  readonly #options: AgentControllerOptions;
  readonly #abort = new AbortController();
  readonly #mutex = new Mutex();
  #authorities: HubAuthorities | undefined;
  #tls: HubTls | undefined;
  #hub: Hub | undefined;
  readonly #failures = new Backoff(SERVE_AGAIN);
  /** Resolves when the hub was opened, or failed to be. */
  readonly #loaded = Promise.withResolvers<void>();
  /** Why the hub does not serve. */
  #problem: string | undefined;
  #timer: Timer | undefined;
  #steps: Timer | undefined;
  /** When agents were last asked for credentials though stored ones are valid: after a new join, or a refusal by the member. */
  readonly #askedAt = new Map<string, number>();
  readonly #storedAt = new Map<string, number>();
  /** Joins that were recorded by this controller, whose Secrets may not show it yet. */
  readonly #joins = new Map<string, string>();
  readonly #userAccess: UserAccess;
  /** Addresses at which pods reach the home API through agents, as last told. */
  readonly #homeAddresses = new Map<string, string | undefined>();

  constructor(options: AgentControllerOptions) {
    this.#options = options;
    const { events, host, hostId, registry, clock, log } = options;
    this.#userAccess = new UserAccess({
      host,
      hostId,
      registry,
      hub: () => this.#relayed(),
      ask: (name) => this.#hub?.askForCredentials(name, "access"),
      clock,
      log,
    });
    events.on("secret", (name) => {
      if (name === HUB_SECRET) void this.#refresh();
    });
    events.on("cluster", (name) => {
      if (this.#recordedJoin(name) === this.#joins.get(name)) this.#joins.delete(name);
      this.#userAccess.ensure(name);
      if (options.registry.cluster(name) !== undefined) {
        this.#hub?.recheck(name);
        return;
      }
      this.#hub?.forget(name);
      this.#askedAt.delete(name);
      this.#storedAt.delete(name);
      this.#joins.delete(name);
      this.#homeAddresses.delete(name);
    });
  }

  /** Resolves once the hub listens, if there is a Secret for it. A hub that cannot serve stops nothing else. */
  async start(): Promise<void> {
    const { metrics, clock } = this.#options;
    metrics?.agents.follow(() => this.#states());
    // Certificates may not be valid yet, or any more.
    this.#steps = onClockStep(clock, () => void this.#refresh());
    await this.#refresh();
    this.#loaded.resolve();
  }

  async stop(): Promise<void> {
    this.#options.metrics?.agents.follow(undefined);
    this.#abort.abort();
    this.#userAccess.stop();
    this.#steps?.cancel();
    this.#timer?.cancel();
    await this.#hub?.close();
  }

  /** Returns how a member with an agent is reached. */
  connectionOf(name: string): AgentConnection {
    return {
      dial: async (signal) => {
        // Members are probed before: a new leader that opens the hub must not take them for lost.
        if (this.#hub === undefined && this.#options.hub !== undefined) await this.#firstLoad(signal);
        if (this.#hub !== undefined) return this.#hub.dial(name, signal);
        throw new Error(this.#absence(name));
      },
      onUselessCredentials: () => {
        const now = this.#options.clock.now();
        if (now - (this.#askedAt.get(name) ?? Number.NEGATIVE_INFINITY) < ASK_EVERY_MS) return;
        this.#askedAt.set(name, now);
        this.#hub?.askForCredentials(name, "host");
      },
    };
  }

  refusal({ cluster: name, uid, join }: AgentIdentity): string | undefined {
    const cluster = this.#options.registry.cluster(name);
    if (cluster === undefined) return `Cluster ${name} has not joined`;
    if (cluster.spec.agent === undefined) return `Cluster ${name} has joined without an agent`;
    const current = this.#joins.get(name) ?? this.#recordedJoin(name);
    if (cluster.metadata.uid === uid && (current === undefined || current === join)) return undefined;
    return `Cluster ${name} has joined anew since this agent's certificate was issued; run \`legation join ${name} --agent\` again`;
  }

  homeApiRefusal(name: string): string | undefined {
    const { spec } = this.#options.registry.cluster(name) ?? {};
    if (spec?.agent?.homeAPI === true && spec.homeAPI === undefined) return undefined;
    return `pods of Cluster ${name} do not reach the host's API server through its agent: run \`legation join ${name} --agent --home-api-through-agent\` again`;
  }

  relayRefusal(name: string): string | undefined {
    return this.#userAccess.refusal(name);
  }

  onFacts(name: string): void {
    const { events } = this.#options;
    this.#userAccess.ensure(name);
    events.emit("agent", name);
    const address = this.agent(name)?.homeAddress;
    if (address === this.#homeAddresses.get(name)) return;
    this.#homeAddresses.set(name, address);
    if (address !== undefined) events.emit("homeApi");
  }

  /** Returns the cluster's agent. Undefined while none is connected. */
  agent(name: string): ConnectedAgent | undefined {
    return this.#hub?.agent(name);
  }

  #recordedJoin(name: string): string | undefined {
    const { registry } = this.#options;
    const cluster = registry.cluster(name);
    return cluster === undefined ? undefined : registry.secret(cluster)?.metadata.annotations?.[AGENT_JOIN_ANNOTATION];
  }

  authorities(): string {
    return this.#authorities === undefined ? "" : trusted(this.#authorities);
  }

  async certify(request: string, proof: Proof): Promise<CertificateAnswer> {
    const authorities = this.#authorities;
    if (authorities === undefined) throw new Error("the hub has no authority");
    const { clock, log } = this.#options;
    // First, since reading a request costs milliseconds, and anyone may send one.
    if ("token" in proof) this.#checkToken(proof);
    else this.#checkAgent(proof.agent);
    const asked = readRequest(request);
    if (asked === undefined)
      throw new AgentRefusal("the request is no certificate signing request that is signed by its own key");
    const agent = "agent" in proof ? proof.agent : await this.#redeem(proof, asked.publicKey);
    this.#checkAgent(agent);
    const subject = { name: agent.cluster, uid: agent.uid, join: agent.join };
    const options = { now: clock.wall(), lifetimeMs: AGENT_LIFETIME_MS };
    log.info({ member: agent.cluster }, "certificate issued for an agent");
    return {
      certificate: issueClient(authorities.current, asked.publicKey, subject, options),
      authorities: this.authorities(),
    };
  }

  wantsCredentials(name: string): boolean {
    const { clock, registry } = this.#options;
    const cluster = registry.cluster(name);
    const kubeconfig = cluster === undefined ? undefined : kubeconfigOf(cluster, registry.secret(cluster));
    const claims = kubeconfig === undefined ? undefined : tokenClaims(kubeconfig);
    return claims === undefined || claims.expiresAt <= clock.wall() || this.#askedAt.has(name);
  }

  onCredentials(name: string, account: TokenAccount, credentials: MemberCredentials): void {
    const { clock, log } = this.#options;
    const storing = account === "access" ? this.#userAccess.store(name, credentials) : this.#store(name, credentials);
    storing.catch((err: unknown) => {
      if (this.#abort.signal.aborted) return;
      log.warn({ err, member: name, account }, "credentials of an agent not stored");
      clock.after(RETRY_MS, () => this.#hub?.askForCredentials(name, account));
    });
  }

  #checkAgent(agent: AgentIdentity): void {
    const refusal = this.refusal(agent);
    if (refusal !== undefined) throw new AgentRefusal(refusal);
  }

  /** Returns the token's Cluster with its Secret. Throws `AgentRefusal`, also for another key than the one that used the token. */
  #checkToken(
    { cluster: name, token }: TokenProof,
    key?: string,
  ): { readonly cluster: Stored<Cluster>; readonly secret: Stored<Secret> } {
    const { registry, clock } = this.#options;
    const cluster = registry.cluster(name);
    const secret = cluster?.spec.agent === undefined ? undefined : registry.secret(cluster);
    const problem = tokenProblem(secret, { token, key }, clock.wall());
    if (cluster === undefined || secret === undefined || problem !== undefined) {
      const remedy = `run \`legation join ${name} --agent\` again for a new one`;
      // A stranger does not learn whether there is such a Cluster.
      throw new AgentRefusal(`Cluster ${name}: ${problem ?? "the token is not valid"}; ${remedy}`);
    }
    return { cluster, secret };
  }

  /** Binds the token to the agent's key, and returns who the agent is. Rejects with `AgentRefusal`. */
  async #redeem(proof: TokenProof, key: string): Promise<AgentIdentity> {
    const { host } = this.#options;
    const { signal } = this.#abort;
    const { cluster, secret } = this.#checkToken(proof, key);
    const { name } = cluster.metadata;
    const ref = { namespace: SYSTEM_NAMESPACE, name: cluster.spec.credentialsSecret.name };
    const { annotations = {}, resourceVersion } = secret.metadata;
    const join = sha256(key);
    if (annotations[AGENT_KEY_ANNOTATION] === undefined) {
      const recorded = { [AGENT_KEY_ANNOTATION]: join, [AGENT_JOIN_ANNOTATION]: join };
      const body = { metadata: { resourceVersion, annotations: recorded } };
      try {
        await host.patch(secrets, ref, { type: "merge", body }, { signal });
      } catch (error) {
        if (!isKubeError(error, "Conflict", "NotFound")) throw error;
        throw new AgentRefusal(`Cluster ${name}: its Secret was changed meanwhile; the agent tries again`);
      }
      // Ends the connections of agents of earlier joins.
      this.#joins.set(name, join);
      this.#hub?.recheck(name);
    }
    // Credentials of an earlier join may be for another address or authority.
    this.#askedAt.set(name, this.#options.clock.now());
    this.#storedAt.delete(name);
    this.#userAccess.renew(name);
    return { cluster: name, uid: cluster.metadata.uid, join };
  }

  async #store(name: string, { server, certificateAuthority, token, expires }: MemberCredentials): Promise<void> {
    const { host, registry, clock, log } = this.#options;
    const cluster = registry.cluster(name);
    const secret = cluster === undefined ? undefined : registry.secret(cluster);
    // A Secret of an operator's own stays as it is.
    if (cluster === undefined || secret?.metadata.annotations?.[TOKEN_EXPIRES_ANNOTATION] === undefined) return;
    const now = clock.now();
    // An agent that brings useless tokens, one for each of its connections, does not cost as many writes.
    const isEarly = now - (this.#storedAt.get(name) ?? Number.NEGATIVE_INFINITY) < ASK_EVERY_MS;
    if (!this.wantsCredentials(name) || isEarly) return;
    this.#storedAt.set(name, now);
    const { key = CLUSTER_DEFAULTS.credentialsKey, name: secretName } = cluster.spec.credentialsSecret;
    const kubeconfig = memberKubeconfig({ cluster: name, server, certificateAuthority, token });
    const { resourceVersion } = secret.metadata;
    const body = {
      metadata: { resourceVersion, annotations: { [TOKEN_EXPIRES_ANNOTATION]: expires } },
      data: secretData({ [key]: kubeconfig }),
    };
    const ref = { namespace: SYSTEM_NAMESPACE, name: secretName };
    await host.patch(secrets, ref, { type: "merge", body }, { signal: this.#abort.signal });
    this.#askedAt.delete(name);
    log.info({ member: name, expires }, "credentials received from the agent");
    if (isAtSameAddress(kubeconfigOf(cluster, secret), kubeconfig, token)) return;
    // Credentials of `legation access` name the earlier address or authority, too.
    this.#userAccess.renew(name);
    this.#userAccess.ensure(name);
  }

  #absence(name: string): string {
    if (this.#options.hub === undefined) return "this controller takes no agents: start it with --hub-listen";
    if (this.#problem !== undefined) return `the hub does not serve: ${this.#problem}`;
    return `Secret ${SYSTEM_NAMESPACE}/${HUB_SECRET} is missing: run \`legation join ${name} --agent\``;
  }

  /** Returns where `legation access` reaches the hub. Undefined while it does not serve. */
  #relayed(): { readonly authorities: HubAuthorities; readonly address: string } | undefined {
    const authorities = this.#authorities;
    const address = this.#options.hub?.address ?? authorities?.addresses[0];
    return authorities === undefined || address === undefined ? undefined : { authorities, address };
  }

  *#states(): Iterable<AgentTraffic> {
    for (const { metadata, spec } of this.#options.registry.clusters()) {
      if (spec.agent === undefined || this.#hub === undefined) continue;
      yield { name: metadata.name, ...this.#hub.state(metadata.name) };
    }
  }

  /** Resolves after the first attempt to open the hub, or when the signal fires. */
  async #firstLoad(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const gaveUp = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => gaveUp.resolve(), { once: true });
    await Promise.race([this.#loaded.promise, gaveUp.promise]);
  }

  /** Loads now, and again later. Never rejects: other members need the controller, too. */
  async #refresh(): Promise<void> {
    const { clock, log } = this.#options;
    let problem: string | undefined;
    try {
      await this.#load();
    } catch (err) {
      problem = err instanceof Error ? err.message : String(err);
      if (!this.#abort.signal.aborted) log.error({ err }, "the hub's Secret or its address cannot be used");
    }
    this.#problem = problem;
    this.#timer?.cancel();
    if (this.#abort.signal.aborted) return;
    if (problem === undefined) this.#failures.reset();
    const nextMs = problem === undefined ? LOOK_EVERY_MS : this.#failures.next();
    this.#timer = clock.after(nextMs, () => void this.#refresh());
  }

  /** Brings the hub in step with its Secret, and the Secret with the time. */
  async #load(): Promise<void> {
    const { hub, registry, events, host, metrics, clock, log } = this.#options;
    const { signal } = this.#abort;
    if (hub === undefined) return;
    const unlock = await this.#mutex.lock(signal);
    try {
      const secret = registry.systemSecret(HUB_SECRET);
      const authorities = readAuthorities(secret);
      if (secret === undefined || authorities === undefined) return;
      this.#authorities = authorities;
      const tls = await this.#serving(authorities);
      if (this.#hub === undefined) {
        const opened = await hub.open(tls, this, (cluster) => {
          registry.member(cluster)?.noteRenewal();
          events.emit("agent", cluster);
        });
        // Stopped meanwhile, when there was nothing to close yet.
        if (signal.aborted) return await opened.close();
        this.#hub = opened;
        log.info({ addresses: authorities.addresses }, "hub serves");
        if (hub.endpoint !== undefined) await this.#publish(hub.endpoint);
      } else if (tls !== this.#tls) this.#hub.renew(tls);
      this.#tls = tls;
      metrics?.setCertificateExpiry("hub", expiresAt(tls.cert));
      const data = await renewed(authorities, clock.wall());
      for (const { metadata } of registry.clusters()) this.#userAccess.ensure(metadata.name);
      if (data === undefined) return;
      const body = { metadata: { resourceVersion: secret.metadata.resourceVersion }, data };
      await host.patch(secrets, { namespace: SYSTEM_NAMESPACE, name: HUB_SECRET }, { type: "merge", body }, { signal });
    } finally {
      unlock();
    }
  }

  /** Keeps this process the hub's endpoint: agents would go to the earlier leader, whose last write may come late. */
  async #publish(endpoint: HubEndpoint, failures: Backoff = new Backoff(SERVE_AGAIN)): Promise<void> {
    const { host, clock, log } = this.#options;
    const { signal } = this.#abort;
    if (signal.aborted) return;
    let nextMs = PUBLISH_EVERY_MS;
    try {
      await publishEndpoint(host, endpoint, signal);
      failures.reset();
    } catch (err) {
      if (!signal.aborted) log.warn({ err }, "the hub's endpoint was not published");
      nextMs = failures.next();
    }
    clock.after(nextMs, () => void this.#publish(endpoint, failures));
  }

  /** Returns the hub's certificate, a new one when due. */
  async #serving(authorities: HubAuthorities): Promise<HubTls> {
    const { current, addresses } = authorities;
    const hosts = [...addresses.map((address) => hostOfAddress(address)), RELAY_SERVER_NAME];
    const issue = { authority: current, hosts, now: this.#options.clock.wall(), lifetimeMs: SERVING_LIFETIME_MS };
    const serving = this.#tls;
    const certificate = await currentServing(serving, issue);
    const bundle = trusted(authorities);
    if (certificate === serving && serving?.authorities === bundle) return serving;
    return { cert: certificate.cert, key: certificate.key, authorities: bundle };
  }
}

/** Reports whether two kubeconfigs differ in nothing but the token. */
function isAtSameAddress(before: string | undefined, after: string, token: string): boolean {
  return before !== undefined && withToken(before, token) === after;
}

function kubeconfigOf(cluster: Cluster, secret: Stored<Secret> | undefined): string | undefined {
  return secretText(secret, cluster.spec.credentialsSecret.key ?? CLUSTER_DEFAULTS.credentialsKey);
}
