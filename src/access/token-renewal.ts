import { ACCESS_KUBECONFIG_KEY } from "../api/access.ts";
import { TOKEN_EXPIRES_ANNOTATION } from "../api/keys.ts";
import { type Secret, type Stored, secretData, secretText } from "../api/kubernetes.ts";
import { type Action, decide, type Observed } from "../controllers/member-token/decide.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { secrets } from "../kube/resources.ts";
import { requestToken, tokenClaims, withToken } from "../kube/service-account-token.ts";
import type { Clock } from "../runtime/clock.ts";
import { Controller } from "../runtime/controller.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface TokenRenewalOptions {
  readonly host: ClusterClient;
  /** Returns the Secret with a member's kubeconfig. Undefined if users do not reach the member. */
  readonly secretOf: (cluster: string) => Stored<Secret> | undefined;
  /** Connects to the member with that kubeconfig. */
  readonly connect: (cluster: string, kubeconfig: string) => ClusterClient;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Renews the tokens by which users act in members, at half of their life. The key is the Cluster's name. */
export class TokenRenewal {
  readonly #options: TokenRenewalOptions;
  readonly #loop: Controller<string, Observed, Action>;
  readonly #renewedAt = new Map<string, number>();

  constructor(options: TokenRenewalOptions) {
    this.#options = options;
    this.#loop = new Controller<string, Observed, Action>(
      {
        name: "access-token",
        observe: (cluster) => this.#observe(cluster),
        decide,
        execute: async (action, { key, signal }) => {
          await this.#renew(key, action, signal);
          return undefined;
        },
      },
      options,
    );
  }

  /** Looks at a member's token now, and again when it is due. */
  note(cluster: string): void {
    this.#loop.enqueue(cluster);
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  #observe(cluster: string): Observed | undefined {
    const kubeconfig = secretText(this.#options.secretOf(cluster), ACCESS_KUBECONFIG_KEY);
    if (kubeconfig === undefined) {
      this.#renewedAt.delete(cluster);
      return undefined;
    }
    const renewedAt = this.#renewedAt.get(cluster);
    return { claims: tokenClaims(kubeconfig), reachable: true, ...(renewedAt === undefined ? {} : { renewedAt }) };
  }

  async #renew(cluster: string, { namespace, name }: Action, signal: AbortSignal): Promise<void> {
    const { host, secretOf, connect, clock, log } = this.#options;
    const secret = secretOf(cluster);
    const kubeconfig = secretText(secret, ACCESS_KUBECONFIG_KEY);
    if (secret === undefined || kubeconfig === undefined) return;
    const member = connect(cluster, kubeconfig);
    try {
      const { token, expires } = await requestToken(member, { namespace, name }, signal);
      const metadata = {
        ...secret.metadata,
        annotations: { ...secret.metadata.annotations, [TOKEN_EXPIRES_ANNOTATION]: expires },
      };
      const data = { ...secret.data, ...secretData({ [ACCESS_KUBECONFIG_KEY]: withToken(kubeconfig, token) }) };
      await host.replace(secrets, { ...secret, metadata, data }, { signal });
      log.info({ member: cluster, expires }, "token renewed");
    } catch (error) {
      // Another replica has renewed it, or a join has written it.
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    } finally {
      await member.close();
    }
    this.#renewedAt.set(cluster, clock.now());
  }
}
