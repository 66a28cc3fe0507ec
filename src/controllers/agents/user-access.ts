import {
  ACCESS_KUBECONFIG_KEY,
  ACCESS_NAMESPACE,
  accessAccountName,
  accessSecretName,
  RELAY_KEYS,
  RELAY_SECRET,
} from "../../api/access.ts";
import { INSTALLED_LABELS, SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import { secretData, secretText } from "../../api/kubernetes.ts";
import { issueClientWithKey } from "../../certificates/issue.ts";
import { DAY_MS, renewalReason } from "../../certificates/validity.ts";
import { memberKubeconfig } from "../../clusters/kubeconfig.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { secrets } from "../../kube/resources.ts";
import { tokenClaims } from "../../kube/service-account-token.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import { KeyedTimers } from "../../runtime/keyed-timers.ts";
import { Mutex } from "../../runtime/mutex.ts";
import type { MemberCredentials } from "../../tunnel/messages.ts";
import { RELAY_NAME } from "../../tunnel/relay.ts";
import { type HubAuthorities, trusted } from "./authority.ts";

const RELAY_LIFETIME_MS = 30 * DAY_MS;
const RENEW_AGAIN_MS = 30_000;
// An agent that brings useless tokens does not cost as many writes.
const STORE_EVERY_MS = 30_000;

export interface UserAccessOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly hostId: string;
  readonly registry: Pick<Registry, "cluster">;
  /** Authorities of the hub, and the `HOST:PORT` at which `legation access` reaches it. Undefined: it does not serve. */
  readonly hub: () => { readonly authorities: HubAuthorities; readonly address: string } | undefined;
  /** Asks the cluster's agent for a token of the account by which `legation access` acts for users. */
  readonly ask: (cluster: string) => void;
}

/** Gives `legation access` the certificate for the hub, and the first token in each member with an agent. It renews tokens itself. */
export class UserAccess {
  readonly #options: UserAccessOptions;
  readonly #abort = new AbortController();
  readonly #mutex = new Mutex();
  /** Members whose agent is new: earlier credentials may be for another address or authority. */
  readonly #stale = new Set<string>();
  readonly #storedAt = new Map<string, number>();
  readonly #retries: KeyedTimers<string>;

  constructor(options: UserAccessOptions) {
    this.#options = options;
    this.#retries = new KeyedTimers(options.clock);
  }

  stop(): void {
    this.#retries.stop();
    this.#abort.abort();
  }

  /** Returns why `legation access` is not connected to the member through its agent. Undefined: it is. */
  refusal(name: string): string | undefined {
    const { spec } = this.#options.registry.cluster(name) ?? {};
    if (spec?.access === undefined) return `Cluster ${name} takes no requests of users`;
    return spec.agent === undefined ? `Cluster ${name} has joined without an agent` : undefined;
  }

  /** Replaces the member's token, since another agent has come. */
  renew(name: string): void {
    this.#stale.add(name);
    this.#storedAt.delete(name);
  }

  /** Asks for what is missing for a member. */
  ensure(name: string): void {
    if (this.refusal(name) !== undefined) return;
    this.#ensure(name).catch((err: unknown) => {
      if (this.#abort.signal.aborted) return;
      const { log } = this.#options;
      log.warn({ err, member: name }, "credentials for users' requests to the member not checked");
      // An agent that comes again and again starts no second retry.
      this.#retries.restart(name, RENEW_AGAIN_MS, () => this.ensure(name));
    });
  }

  /** Stores a token that the member's agent brought. Another account's is never stored: users would act with its rights. */
  async store(name: string, { server, certificateAuthority, token, expires }: MemberCredentials): Promise<void> {
    const { hostId, clock, log } = this.#options;
    if (this.refusal(name) !== undefined) return;
    const kubeconfig = memberKubeconfig({ cluster: name, server, certificateAuthority, token });
    const claims = tokenClaims(kubeconfig);
    const account = accessAccountName(hostId);
    if (claims?.namespace !== SYSTEM_NAMESPACE || claims.name !== account) {
      log.warn({ member: name }, `the agent brought a token that is not of ${SYSTEM_NAMESPACE}/${account}`);
      return;
    }
    const now = clock.now();
    if (now - (this.#storedAt.get(name) ?? Number.NEGATIVE_INFINITY) < STORE_EVERY_MS) return;
    if (!(await this.#isWanted(name))) return;
    this.#storedAt.set(name, now);
    const metadata = {
      namespace: ACCESS_NAMESPACE,
      name: accessSecretName(name),
      labels: { [VIRTUAL_NODE_LABEL]: name },
      annotations: { [TOKEN_EXPIRES_ANNOTATION]: expires },
    };
    await this.#apply(metadata, secretData({ [ACCESS_KUBECONFIG_KEY]: kubeconfig }));
    this.#stale.delete(name);
    log.info({ member: name, expires }, "credentials for users' requests received from the agent");
  }

  async #ensure(name: string): Promise<void> {
    await this.#mutex.run(this.#abort.signal, () => this.#ensureRelay());
    if (await this.#isWanted(name)) this.#options.ask(name);
  }

  async #isWanted(name: string): Promise<boolean> {
    const { host, clock } = this.#options;
    if (this.#stale.has(name)) return true;
    const ref = { namespace: ACCESS_NAMESPACE, name: accessSecretName(name) };
    const text = secretText(await host.find(secrets, ref, { signal: this.#abort.signal }), ACCESS_KUBECONFIG_KEY);
    const claims = text === undefined ? undefined : tokenClaims(text);
    return claims === undefined || claims.expiresAt <= clock.wall();
  }

  /** Brings the relay's Secret in step with the hub's authorities, its address and the time. */
  async #ensureRelay(): Promise<void> {
    const { host, clock, log } = this.#options;
    const { signal } = this.#abort;
    const hub = this.#options.hub();
    if (hub === undefined) return;
    const { authorities, address } = hub;
    const ref = { namespace: ACCESS_NAMESPACE, name: RELAY_SECRET };
    const found = await host.find(secrets, ref, { signal });
    const now = clock.wall();
    const authority = authorities.current.cert;
    const isDue = renewalReason(secretText(found, RELAY_KEYS.cert) ?? "", { now, authority }) !== undefined;
    const bundle = trusted(authorities);
    const isCurrent = secretText(found, RELAY_KEYS.authorities) === bundle;
    if (!isDue && isCurrent && secretText(found, RELAY_KEYS.address) === address) return;
    const texts = { [RELAY_KEYS.authorities]: bundle, [RELAY_KEYS.address]: address };
    const issued = isDue ? await issueRelay(authorities, now) : {};
    const metadata = { ...ref, labels: { ...INSTALLED_LABELS } };
    await this.#apply(metadata, { ...found?.data, ...secretData({ ...texts, ...issued }) });
    log.info({ address }, "certificate issued for users' connections through the hub");
  }

  async #apply(metadata: { readonly namespace: string; readonly name: string }, data: object): Promise<void> {
    const body = { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque", data };
    const { namespace, name } = metadata;
    const write = { fieldManager: "legation", signal: this.#abort.signal };
    await this.#options.host.patch(secrets, { namespace, name }, { type: "apply", body, force: true }, write);
  }
}

async function issueRelay({ current }: HubAuthorities, now: number): Promise<Record<string, string>> {
  const options = { now, lifetimeMs: RELAY_LIFETIME_MS };
  const { cert, key } = await issueClientWithKey(current, { name: RELAY_NAME, uid: RELAY_NAME }, options);
  return { [RELAY_KEYS.cert]: cert, [RELAY_KEYS.key]: key };
}
