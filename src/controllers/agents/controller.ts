import { HUB_SECRET } from "../../api/keys.ts";
import { isFirst, type Shard } from "../../api/shards.ts";
import { expiresAt } from "../../certificates/validity.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient, Dial } from "../../kube/client.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { AgentTraffic } from "../../telemetry/agents.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AgentIdentity } from "../../tunnel/agent-session.ts";
import type { ConnectedAgent } from "../../tunnel/cluster-agents.ts";
import type { Gatekeeper, Proof } from "../../tunnel/hub.ts";
import type { CertificateAnswer, MemberCredentials, TokenAccount } from "../../tunnel/messages.ts";
import type { ControllerEvents } from "../events.ts";
import { AgentAdmission } from "./admission.ts";
import { trusted } from "./authority.ts";
import { ControllerAccess } from "./controller-access.ts";
import { FirstHub } from "./first-hub.ts";
import { HubKeeper, type HubServing } from "./hub-keeper.ts";
import { UserAccess } from "./user-access.ts";

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
  readonly registry: Pick<Registry, "cluster" | "clusters" | "member" | "secret" | "systemSecret">;
  readonly events: Events<ControllerEvents>;
  /** Undefined: this controller takes no agents. */
  readonly hub: HubServing | undefined;
  readonly metrics?: Metrics;
  /** Agents connect to the first shard's holder. */
  readonly shard: Shard;
  readonly clock: Clock;
  readonly log: Logger;
}

const ASK_AGAIN_MS = 30_000;

/** Lets agents of joined clusters connect. State is in the hub's Secret and in those of the members. */
export class AgentController implements Gatekeeper {
  readonly #options: AgentControllerOptions;
  readonly #abort = new AbortController();
  readonly #hub: HubKeeper;
  readonly #firstHub: FirstHub;
  readonly #admission: AgentAdmission;
  readonly #controllerAccess: ControllerAccess;
  readonly #userAccess: UserAccess;
  /** Addresses at which pods reach the home API through agents, as last told. */
  readonly #homeAddresses = new Map<string, string | undefined>();

  constructor(options: AgentControllerOptions) {
    this.#options = options;
    const { events, registry } = options;
    const running = { ...options, signal: this.#abort.signal };
    this.#firstHub = new FirstHub(options);
    this.#hub = new HubKeeper({
      ...running,
      serving: options.hub,
      gatekeeper: this,
      onChange: (name) => {
        registry.member(name)?.noteRenewal();
        events.emit("agent", name);
      },
      onLoaded: () => {
        for (const { metadata } of registry.clusters()) this.#userAccess.ensure(metadata.name);
      },
    });
    this.#admission = new AgentAdmission({
      ...running,
      authorities: () => this.#hub.authorities,
      onJoin: (name, isFirst) => this.#onJoin(name, isFirst),
    });
    this.#controllerAccess = new ControllerAccess({
      ...running,
      onMoved: (name) => {
        // Credentials of `legation access` name the earlier address or authority, too.
        this.#userAccess.renew(name);
        this.#userAccess.ensure(name);
      },
    });
    this.#userAccess = new UserAccess({
      ...options,
      hub: () => {
        const { authorities, address } = this.#hub;
        return authorities === undefined || address === undefined ? undefined : { authorities, address };
      },
      ask: (name) => this.#hub.hub?.askForCredentials(name, "access"),
    });
    events.on("secret", (name) => {
      if (name === HUB_SECRET) void this.#hub.refresh();
    });
    events.on("cluster", (name) => this.#onCluster(name));
    events.on("clusterStatus", (name) => this.#noteHomeAddress(name));
  }

  /** Resolves once the hub listens, if there is a Secret for it. A hub that cannot serve stops nothing else. */
  async start(): Promise<void> {
    if (isFirst(this.#options.shard)) this.#options.metrics?.agents.follow(() => this.#states());
    await this.#hub.start();
  }

  async stop(): Promise<void> {
    if (isFirst(this.#options.shard)) this.#options.metrics?.agents.follow(undefined);
    this.#abort.abort();
    this.#userAccess.stop();
    await this.#hub.stop();
    await this.#firstHub.stop();
  }

  /** Returns how a member with an agent is reached. */
  connectionOf(name: string): AgentConnection {
    return {
      dial: (signal) => (isFirst(this.#options.shard) ? this.#hub : this.#firstHub).dial(name, signal),
      onUselessCredentials: () => {
        if (this.#controllerAccess.refused(name)) this.#hub.hub?.askForCredentials(name, "host");
      },
    };
  }

  /** Returns the cluster's agent. Undefined while none is connected. */
  agent(name: string): ConnectedAgent | undefined {
    return this.#hub.hub?.agent(name);
  }

  /** Returns the IP address at which pods of a cluster reach the host through its agent. Other shards find it in the Cluster. */
  homeAddress(name: string): string | undefined {
    const { shard, registry } = this.#options;
    return isFirst(shard) ? this.agent(name)?.homeAddress : registry.cluster(name)?.status?.agent?.homeAddress;
  }

  refusal(agent: AgentIdentity): string | undefined {
    return this.#admission.refusal(agent);
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
    this.#noteHomeAddress(name);
  }

  authorities(): string {
    const { authorities } = this.#hub;
    return authorities === undefined ? "" : trusted(authorities);
  }

  async certify(request: string, proof: Proof): Promise<CertificateAnswer> {
    const answer = await this.#admission.certify(request, proof);
    if ("agent" in proof) this.#hub.hub?.noteCertificate(proof.agent.cluster, expiresAt(answer.certificate));
    return answer;
  }

  wantsCredentials(name: string): boolean {
    return this.#controllerAccess.isWanted(name);
  }

  onCredentials(name: string, account: TokenAccount, credentials: MemberCredentials): void {
    const { clock, log } = this.#options;
    const access = account === "access" ? this.#userAccess : this.#controllerAccess;
    access.store(name, credentials).catch((err: unknown) => {
      if (this.#abort.signal.aborted) return;
      log.warn({ err, member: name, account }, "credentials of an agent not stored");
      clock.after(ASK_AGAIN_MS, () => this.#hub.hub?.askForCredentials(name, account));
    });
  }

  #noteHomeAddress(name: string): void {
    const address = this.homeAddress(name);
    if (address === this.#homeAddresses.get(name)) return;
    this.#homeAddresses.set(name, address);
    if (address !== undefined) this.#options.events.emit("homeApi");
  }

  #onCluster(name: string): void {
    this.#admission.noteChange(name);
    this.#userAccess.ensure(name);
    if (this.#options.registry.cluster(name) !== undefined) {
      this.#hub.hub?.recheck(name);
      return;
    }
    this.#hub.hub?.forget(name);
    this.#controllerAccess.forget(name);
    this.#homeAddresses.delete(name);
  }

  #onJoin(name: string, isFirst: boolean): void {
    // Ends the connections of agents of earlier joins.
    if (isFirst) this.#hub.hub?.recheck(name);
    this.#controllerAccess.renew(name);
    this.#userAccess.renew(name);
  }

  *#states(): Iterable<AgentTraffic> {
    const { hub } = this.#hub;
    for (const { metadata, spec } of this.#options.registry.clusters()) {
      if (spec.agent !== undefined && hub !== undefined) yield { name: metadata.name, ...hub.state(metadata.name) };
    }
  }
}
