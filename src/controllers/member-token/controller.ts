import { CLUSTER_DEFAULTS } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION } from "../../api/keys.ts";
import { secretData, secretText } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { requestToken, tokenClaims, withToken } from "../../kube/service-account-token.ts";
import { Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { ControllerEvents } from "../events.ts";
import { type Action, decide, type Observed } from "./decide.ts";

export interface MemberTokenOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly registry: Registry;
  readonly events: Events<ControllerEvents>;
  readonly metrics?: Metrics;
}

/** Renews the tokens with which Legation reaches members. The key is the Cluster's name. */
export class MemberTokenController {
  readonly #options: MemberTokenOptions;
  readonly #loop: Controller<string, Observed, Action>;
  readonly #renewedAt = new Map<string, number>();

  constructor(options: MemberTokenOptions) {
    this.#options = options;
    this.#loop = new Controller<string, Observed, Action>(
      {
        name: "member-token",
        observe: (name) => this.#observe(name),
        decide,
        execute: (action, { key, signal, log: reconcileLog }) => this.#renew(action, key, signal, reconcileLog),
      },
      options,
    );
    const { events } = options;
    events.on("cluster", (name) => this.#loop.enqueue(name));
    events.on("connection", ({ name }) => this.#loop.enqueue(name));
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  #observe(name: string): Observed | undefined {
    const kubeconfig = this.#kubeconfig(name);
    const claims = kubeconfig === undefined ? undefined : tokenClaims(kubeconfig);
    this.#options.metrics?.members.setCredentialsExpiry(name, claims?.expiresAt);
    if (kubeconfig === undefined) {
      this.#renewedAt.delete(name);
      return undefined;
    }
    const reachable = this.#options.registry.member(name)?.probed.reachable ?? false;
    const renewedAt = this.#renewedAt.get(name);
    return { claims, reachable, ...(renewedAt === undefined ? {} : { renewedAt }) };
  }

  #kubeconfig(name: string): string | undefined {
    const { registry } = this.#options;
    const cluster = registry.cluster(name);
    const secret = cluster === undefined ? undefined : registry.secret(cluster);
    return secretText(secret, cluster?.spec.credentialsSecret.key ?? CLUSTER_DEFAULTS.credentialsKey);
  }

  async #renew(
    { namespace, name: account }: Action,
    name: string,
    signal: AbortSignal,
    log: Logger,
  ): Promise<Expectation<Observed> | undefined> {
    const { host, registry } = this.#options;
    const cluster = registry.cluster(name);
    const secret = cluster === undefined ? undefined : registry.secret(cluster);
    const member = registry.member(name);
    const kubeconfig = this.#kubeconfig(name);
    if (cluster === undefined || secret === undefined || member === undefined || kubeconfig === undefined)
      return undefined;
    const { token, expires } = await requestToken(member.client, { namespace, name: account }, signal);
    const { resourceVersion, name: secretName, annotations: current = {} } = secret.metadata;
    const key = cluster.spec.credentialsSecret.key ?? CLUSTER_DEFAULTS.credentialsKey;
    // `legation join` sets this annotation. The operator maintains a Secret without it.
    const isOurs = TOKEN_EXPIRES_ANNOTATION in current;
    const annotations = isOurs ? { annotations: { [TOKEN_EXPIRES_ANNOTATION]: expires } } : {};
    const patch = {
      metadata: { resourceVersion, ...annotations },
      data: secretData({ [key]: withToken(kubeconfig, token) }),
    };
    try {
      const ref = { namespace: SYSTEM_NAMESPACE, name: secretName };
      await host.patch(secrets, ref, { type: "merge", body: patch }, { signal });
    } catch (error) {
      // Another client wrote the Secret, which is an event.
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    }
    this.#renewedAt.set(name, this.#options.clock.now());
    log.info({ member: name, expires }, "token renewed");
    const before = tokenClaims(kubeconfig)?.issuedAt;
    return ({ claims }) => claims?.issuedAt !== before;
  }
}
