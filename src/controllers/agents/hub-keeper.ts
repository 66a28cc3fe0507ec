import type { Socket } from "node:net";
import { HUB_SECRET, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { currentServing } from "../../certificates/current.ts";
import { DAY_MS, expiresAt } from "../../certificates/validity.ts";
import type { Registry } from "../../clusters/registry.ts";
import { unlessAborted } from "../../kube/abort.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { WayPending } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { Backoff } from "../../runtime/backoff.ts";
import { type Clock, onClockStep, type Timer } from "../../runtime/clock.ts";
import { Mutex } from "../../runtime/mutex.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { ARRIVAL_MS } from "../../tunnel/cluster-agents.ts";
import type { Gatekeeper, Hub, HubTls } from "../../tunnel/hub.ts";
import { hostOfAddress } from "../../tunnel/hub-address.ts";
import { RELAY_SERVER_NAME } from "../../tunnel/relay.ts";
import { type HubAuthorities, readAuthorities, renewed, trusted } from "./authority.ts";
import { type HubEndpoint, publishEndpoint } from "./endpoint.ts";

export interface HubServing {
  readonly open: (tls: HubTls, gatekeeper: Gatekeeper, onChange: (cluster: string) => void) => Promise<Hub>;
  readonly endpoint: HubEndpoint | undefined;
  /** `HOST:PORT` of this process in the host's network. Undefined: as agents reach it. */
  readonly address: string | undefined;
}

export interface HubKeeperOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "systemSecret">;
  /** Undefined: this controller takes no agents. */
  readonly serving: HubServing | undefined;
  readonly gatekeeper: Gatekeeper;
  /** Called when a cluster's agent comes or goes. */
  readonly onChange: (cluster: string) => void;
  /** Called each time the hub is in step with its Secret. */
  readonly onLoaded: () => void;
  readonly signal: AbortSignal;
  readonly metrics?: Metrics | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

const SERVING_LIFETIME_MS = 90 * DAY_MS;
// Meanwhile no agent finds the leader, and the host's API server may just be coming back.
const SERVE_AGAIN = { initialMs: 1_000, maxMs: 30_000 };
const CHECK_CERTIFICATE_MS = DAY_MS / 4;
// An apply without a change costs the API server no write.
const PUBLISH_EVERY_MS = 60_000;

/** Opens the hub, and keeps it in step with its Secret: the authorities, its own certificate and its endpoint. */
export class HubKeeper {
  readonly #options: HubKeeperOptions;
  readonly #mutex = new Mutex();
  readonly #failures = new Backoff(SERVE_AGAIN);
  /** Resolves when the hub was opened, or failed to be. */
  readonly #loaded = Promise.withResolvers<void>();
  #authorities: HubAuthorities | undefined;
  #tls: HubTls | undefined;
  #hub: Hub | undefined;
  /** Why the hub does not serve. */
  #problem: string | undefined;
  #timer: Timer | undefined;
  #steps: Timer | undefined;

  constructor(options: HubKeeperOptions) {
    this.#options = options;
  }

  /** The hub. Undefined while it does not serve. */
  get hub(): Hub | undefined {
    return this.#hub;
  }

  /** The content of the hub's Secret. Undefined while there is none. */
  get authorities(): HubAuthorities | undefined {
    return this.#authorities;
  }

  /** `HOST:PORT` at which `legation access` reaches the hub. Undefined while it does not serve. */
  get address(): string | undefined {
    return this.#options.serving?.address ?? this.#authorities?.addresses[0];
  }

  /** Resolves once the hub listens, if there is a Secret for it. Never rejects. */
  async start(): Promise<void> {
    // Certificates may not be valid yet, or any more.
    this.#steps = onClockStep(this.#options.clock, () => void this.refresh());
    await this.refresh();
    this.#loaded.resolve();
  }

  /** Call it once the signal has fired. */
  async stop(): Promise<void> {
    this.#steps?.cancel();
    this.#timer?.cancel();
    await this.#hub?.close();
  }

  /** Opens a connection to a member. Rejects with the reason why there is none: `WayPending` while the hub is being opened. */
  async dial(name: string, signal: AbortSignal): Promise<Socket> {
    // Members are probed before: a new leader that opens the hub must not take them for lost.
    if (this.#hub === undefined && this.#options.serving !== undefined) {
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(ARRIVAL_MS)]);
      const pending = (): Error => new WayPending("this controller has not opened its hub yet");
      await unlessAborted(this.#loaded.promise, inTime, pending);
    }
    if (this.#hub !== undefined) return this.#hub.dial(name, signal);
    throw new Error(this.#absence(name));
  }

  /** Loads now, and again later. Never rejects: other members need the controller, too. */
  async refresh(): Promise<void> {
    const { serving, clock, log, signal } = this.#options;
    let problem: string | undefined;
    try {
      if (serving !== undefined) await this.#mutex.run(signal, () => this.#load(serving));
    } catch (err) {
      problem = err instanceof Error ? err.message : String(err);
      if (!signal.aborted) log.error({ err }, "the hub's Secret or its address cannot be used");
    }
    this.#problem = problem;
    this.#timer?.cancel();
    if (signal.aborted) return;
    if (problem === undefined) this.#failures.reset();
    const nextMs = problem === undefined ? CHECK_CERTIFICATE_MS : this.#failures.next();
    this.#timer = clock.after(nextMs, () => void this.refresh());
  }

  #absence(name: string): string {
    if (this.#options.serving === undefined) return "this controller takes no agents: start it with --hub-listen";
    if (this.#problem !== undefined) return `the hub does not serve: ${this.#problem}`;
    return `Secret ${SYSTEM_NAMESPACE}/${HUB_SECRET} is missing: run \`legation join ${name} --agent\``;
  }

  /** Brings the hub in step with its Secret, and the Secret with the time. */
  async #load(serving: HubServing): Promise<void> {
    const { registry, host, metrics, clock, signal } = this.#options;
    const secret = registry.systemSecret(HUB_SECRET);
    const authorities = readAuthorities(secret);
    if (secret === undefined || authorities === undefined) return;
    this.#authorities = authorities;
    const tls = await this.#currentTls(authorities);
    if (this.#hub === undefined) await this.#open(serving, tls, authorities);
    else if (tls !== this.#tls) this.#hub.renew(tls);
    if (this.#hub === undefined) return;
    this.#tls = tls;
    metrics?.setCertificateExpiry("hub", expiresAt(tls.cert));
    const data = await renewed(authorities, clock.wall());
    this.#options.onLoaded();
    if (data === undefined) return;
    const body = { metadata: { resourceVersion: secret.metadata.resourceVersion }, data };
    await host.patch(secrets, { namespace: SYSTEM_NAMESPACE, name: HUB_SECRET }, { type: "merge", body }, { signal });
  }

  async #open({ open, endpoint }: HubServing, tls: HubTls, { addresses }: HubAuthorities): Promise<void> {
    const { gatekeeper, onChange, log, signal } = this.#options;
    const opened = await open(tls, gatekeeper, onChange);
    // Stopped meanwhile, when there was nothing to close yet.
    if (signal.aborted) return await opened.close();
    this.#hub = opened;
    this.#loaded.resolve();
    log.info({ addresses }, "hub serves");
    if (endpoint !== undefined) await this.#publish(endpoint);
  }

  /** Keeps this process the hub's endpoint: agents would go to the earlier leader, whose last write may come late. */
  async #publish(endpoint: HubEndpoint, failures: Backoff = new Backoff(SERVE_AGAIN)): Promise<void> {
    const { host, clock, log, signal } = this.#options;
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
  async #currentTls(authorities: HubAuthorities): Promise<HubTls> {
    const { current, addresses } = authorities;
    const hosts = [...addresses.map((address) => hostOfAddress(address)), RELAY_SERVER_NAME];
    const issue = { authority: current, hosts, now: this.#options.clock.wall(), lifetimeMs: SERVING_LIFETIME_MS };
    const served = this.#tls;
    const certificate = await currentServing(served, issue);
    const bundle = trusted(authorities);
    if (certificate === served && served?.authorities === bundle) return served;
    return { cert: certificate.cert, key: certificate.key, authorities: bundle };
  }
}
