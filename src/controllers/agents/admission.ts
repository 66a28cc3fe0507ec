import type { Cluster } from "../../api/cluster.ts";
import { AGENT_JOIN_ANNOTATION, AGENT_KEY_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Secret, Stored } from "../../api/kubernetes.ts";
import { issueClient, readRequest } from "../../certificates/issue.ts";
import { DAY_MS } from "../../certificates/validity.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { AgentIdentity } from "../../tunnel/agent-session.ts";
import { AgentRefusal, type Proof, type TokenProof } from "../../tunnel/hub.ts";
import type { CertificateAnswer } from "../../tunnel/messages.ts";
import { type HubAuthorities, trusted } from "./authority.ts";
import { sha256, tokenProblem } from "./credentials.ts";

export interface AdmissionOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "cluster" | "secret">;
  readonly authorities: () => HubAuthorities | undefined;
  /** Called when an agent has shown its join token. `isFirst`: it ends the connections of agents of earlier joins. */
  readonly onJoin: (cluster: string, isFirst: boolean) => void;
  readonly signal: AbortSignal;
}

const AGENT_LIFETIME_MS = 90 * DAY_MS;

/** Decides which agents may connect, and signs their certificates. Joins are recorded in the members' Secrets. */
export class AgentAdmission {
  readonly #options: AdmissionOptions;
  /** Joins that were recorded by this controller, whose Secrets may not show it yet. */
  readonly #joins = new Map<string, string>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** Notes that the Cluster or its Secret has changed. */
  noteChange(name: string): void {
    const isGone = this.#options.registry.cluster(name) === undefined;
    if (isGone || this.#recordedJoin(name) === this.#joins.get(name)) this.#joins.delete(name);
  }

  /** Returns why the agent may not connect. Undefined: it may. */
  refusal({ cluster: name, uid, join }: AgentIdentity): string | undefined {
    const cluster = this.#options.registry.cluster(name);
    if (cluster === undefined) return `Cluster ${name} has not joined`;
    if (cluster.spec.agent === undefined) return `Cluster ${name} has joined without an agent`;
    const current = this.#joins.get(name) ?? this.#recordedJoin(name);
    if (cluster.metadata.uid === uid && (current === undefined || current === join)) return undefined;
    return `Cluster ${name} has joined anew since this agent's certificate was issued; run \`legation join ${name} --agent\` again`;
  }

  /** Signs an agent's request (PEM). Rejects with `AgentRefusal`. */
  async certify(request: string, proof: Proof): Promise<CertificateAnswer> {
    const { clock, log } = this.#options;
    const authorities = this.#options.authorities();
    if (authorities === undefined) throw new Error("the hub has no authority");
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
      // They may have been renewed meanwhile.
      authorities: trusted(this.#options.authorities() ?? authorities),
    };
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
    const { host, signal, onJoin } = this.#options;
    const { cluster, secret } = this.#checkToken(proof, key);
    const { name } = cluster.metadata;
    const ref = { namespace: SYSTEM_NAMESPACE, name: cluster.spec.credentialsSecret.name };
    const { annotations = {}, resourceVersion } = secret.metadata;
    const join = sha256(key);
    const isFirst = annotations[AGENT_KEY_ANNOTATION] === undefined;
    if (isFirst) {
      const recorded = { [AGENT_KEY_ANNOTATION]: join, [AGENT_JOIN_ANNOTATION]: join };
      const body = { metadata: { resourceVersion, annotations: recorded } };
      try {
        await host.patch(secrets, ref, { type: "merge", body }, { signal });
      } catch (error) {
        if (!isKubeError(error, "Conflict", "NotFound")) throw error;
        throw new AgentRefusal(`Cluster ${name}: its Secret was changed meanwhile; the agent tries again`);
      }
      this.#joins.set(name, join);
    }
    onJoin(name, isFirst);
    return { cluster: name, uid: cluster.metadata.uid, join };
  }

  #recordedJoin(name: string): string | undefined {
    const { registry } = this.#options;
    const cluster = registry.cluster(name);
    return cluster === undefined ? undefined : registry.secret(cluster)?.metadata.annotations?.[AGENT_JOIN_ANNOTATION];
  }
}
