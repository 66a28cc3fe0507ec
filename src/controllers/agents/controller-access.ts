import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION } from "../../api/keys.ts";
import { type Secret, type Stored, secretData, secretText } from "../../api/kubernetes.ts";
import { memberKubeconfig } from "../../clusters/kubeconfig.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { secrets } from "../../kube/resources.ts";
import { tokenClaims, withToken } from "../../kube/service-account-token.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { MemberCredentials } from "../../tunnel/messages.ts";

export interface ControllerAccessOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "cluster" | "secret">;
  /** Called when credentials name another address or authority than those before. */
  readonly onMoved: (cluster: string) => void;
  readonly signal: AbortSignal;
}

const ASK_EVERY_MS = 30_000;

/** Stores the tokens that agents bring, by which the controller itself reaches members. */
export class ControllerAccess {
  readonly #options: ControllerAccessOptions;
  /** When agents were last asked for credentials though stored ones are valid: after a new join, or a refusal by the member. */
  readonly #askedAt = new Map<string, number>();
  readonly #storedAt = new Map<string, number>();

  constructor(options: ControllerAccessOptions) {
    this.#options = options;
  }

  /** Notes that the member refuses the stored token. Reports whether its agent is to be asked for another. */
  refused(name: string): boolean {
    const now = this.#options.clock.now();
    if (now - (this.#askedAt.get(name) ?? Number.NEGATIVE_INFINITY) < ASK_EVERY_MS) return false;
    this.#askedAt.set(name, now);
    return true;
  }

  /** Replaces the member's token, since another agent has come: it may be for another address or authority. */
  renew(name: string): void {
    this.#askedAt.set(name, this.#options.clock.now());
    this.#storedAt.delete(name);
  }

  forget(name: string): void {
    this.#askedAt.delete(name);
    this.#storedAt.delete(name);
  }

  /** Reports whether a connected agent is to send a token. */
  isWanted(name: string): boolean {
    const { clock, registry } = this.#options;
    const cluster = registry.cluster(name);
    const kubeconfig = cluster === undefined ? undefined : kubeconfigOf(cluster, registry.secret(cluster));
    const claims = kubeconfig === undefined ? undefined : tokenClaims(kubeconfig);
    return claims === undefined || claims.expiresAt <= clock.wall() || this.#askedAt.has(name);
  }

  /** Stores a token that the member's agent brought, where one is wanted. Rejects with KubeError. */
  async store(name: string, { server, certificateAuthority, token, expires }: MemberCredentials): Promise<void> {
    const { host, registry, onMoved, signal, clock, log } = this.#options;
    const cluster = registry.cluster(name);
    const secret = cluster === undefined ? undefined : registry.secret(cluster);
    // A Secret of an operator's own stays as it is.
    if (cluster === undefined || secret?.metadata.annotations?.[TOKEN_EXPIRES_ANNOTATION] === undefined) return;
    const now = clock.now();
    // An agent that brings useless tokens, one for each of its connections, does not cost as many writes.
    const isEarly = now - (this.#storedAt.get(name) ?? Number.NEGATIVE_INFINITY) < ASK_EVERY_MS;
    if (!this.isWanted(name) || isEarly) return;
    this.#storedAt.set(name, now);
    const { key = CLUSTER_DEFAULTS.credentialsKey, name: secretName } = cluster.spec.credentialsSecret;
    const kubeconfig = memberKubeconfig({ cluster: name, server, certificateAuthority, token });
    const { resourceVersion } = secret.metadata;
    const body = {
      metadata: { resourceVersion, annotations: { [TOKEN_EXPIRES_ANNOTATION]: expires } },
      data: secretData({ [key]: kubeconfig }),
    };
    const ref = { namespace: SYSTEM_NAMESPACE, name: secretName };
    await host.patch(secrets, ref, { type: "merge", body }, { signal });
    this.#askedAt.delete(name);
    log.info({ member: name, expires }, "credentials received from the agent");
    if (!isAtSameAddress(kubeconfigOf(cluster, secret), kubeconfig, token)) onMoved(name);
  }
}

/** Reports whether two kubeconfigs differ in nothing but the token. */
function isAtSameAddress(before: string | undefined, after: string, token: string): boolean {
  return before !== undefined && withToken(before, token) === after;
}

function kubeconfigOf(cluster: Cluster, secret: Stored<Secret> | undefined): string | undefined {
  return secretText(secret, cluster.spec.credentialsSecret.key ?? CLUSTER_DEFAULTS.credentialsKey);
}
