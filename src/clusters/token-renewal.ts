import { TOKEN_EXPIRES_ANNOTATION } from "../api/keys.ts";
import { type Secret, type Stored, secretData, secretText, type TokenClaims } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { ignoring } from "../kube/errors.ts";
import { requestToken, tokenClaims, withToken } from "../kube/service-account-token.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../runtime/controller.ts";

/** A member's kubeconfig, where it is stored, and the way to the member. */
export interface StoredToken {
  readonly secret: Stored<Secret>;
  /** The kubeconfig's key in the Secret. */
  readonly key: string;
  /** Returns a client of the member, and how a client of its own ends. Undefined: the member does not answer. */
  readonly connect?:
    | ((kubeconfig: string) => { readonly client: ClusterClient; readonly close?: () => Promise<void> })
    | undefined;
}

export interface RenewedToken {
  readonly secret: Stored<Secret>;
  /** Empty: the Secret is an operator's own. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly data: Readonly<Record<string, string>>;
}

export interface TokenRenewalOptions extends ControllerOptions {
  /** Names the loop in metrics and logs. */
  readonly name: string;
  /** Returns a member's kubeconfig. Undefined: it has none. */
  readonly find: (cluster: string) => StoredToken | undefined;
  /** Writes the Secret, with its version as the precondition: a join may have written other credentials. Rejects with KubeError. */
  readonly store: (renewed: RenewedToken, signal: AbortSignal) => Promise<void>;
  /** Called with a member's token whenever the loop looks at it. */
  readonly onClaims?: (cluster: string, claims: TokenClaims | undefined) => void;
}

export interface Observed {
  /** Undefined if the credentials are no such token: the operator renews them. */
  readonly claims: TokenClaims | undefined;
  readonly reachable: boolean;
  /** Time of the last request; epoch ms. */
  readonly renewedAt?: number;
}

export type Action = { readonly type: "renew"; readonly namespace: string; readonly name: string };

// To a clock that is ahead by more than half of a token's life, every new token is due.
const LEAST_AGE_MS = 60_000;

/** Renews a member's token at half of its life. The other half is for times without a member or leader. */
export function decide(
  { claims, reachable, renewedAt = Number.NEGATIVE_INFINITY }: Observed,
  now: number,
  wall: number = now,
): { readonly actions: readonly Action[]; readonly outcome: string; readonly requeueAt?: number } {
  if (claims === undefined) return { actions: [], outcome: "Foreign" };
  const { namespace, name, issuedAt, expiresAt } = claims;
  const due = Math.max(issuedAt + (expiresAt - issuedAt) / 2 + now - wall, renewedAt + LEAST_AGE_MS);
  if (now < due) return { actions: [], outcome: "Valid", requeueAt: due };
  // The return of the connection is an event.
  if (!reachable) return { actions: [], outcome: "Unreachable" };
  return { actions: [{ type: "renew", namespace, name }], outcome: "Renewing" };
}

/** Renews the tokens by which members are reached, in the Secrets that hold them. The key is the Cluster's name. */
export class TokenRenewal {
  readonly #options: TokenRenewalOptions;
  readonly #loop: Controller<string, Observed, Action>;
  readonly #renewedAt = new Map<string, number>();
  /** A kubeconfig takes a millisecond to parse, and each event of a member asks for its token. */
  readonly #claims = new Map<string, Pick<StoredToken, "secret" | "key"> & Pick<Observed, "claims">>();

  constructor(options: TokenRenewalOptions) {
    this.#options = options;
    this.#loop = new Controller<string, Observed, Action>(
      {
        name: options.name,
        observe: (cluster) => this.#observe(cluster),
        decide,
        execute: (action, context) => this.#renew(action, context),
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

  #find(cluster: string): (StoredToken & { readonly kubeconfig: string }) | undefined {
    const found = this.#options.find(cluster);
    const kubeconfig = found && secretText(found.secret, found.key);
    return found === undefined || kubeconfig === undefined ? undefined : { ...found, kubeconfig };
  }

  #observe(cluster: string): Observed | undefined {
    const found = this.#find(cluster);
    const claims = found && this.#claimsOf(cluster, found);
    this.#options.onClaims?.(cluster, claims);
    if (found === undefined) {
      this.#claims.delete(cluster);
      this.#renewedAt.delete(cluster);
      return undefined;
    }
    const renewedAt = this.#renewedAt.get(cluster);
    return { claims, reachable: found.connect !== undefined, ...(renewedAt === undefined ? {} : { renewedAt }) };
  }

  #claimsOf(
    cluster: string,
    { secret, key, kubeconfig }: StoredToken & { readonly kubeconfig: string },
  ): Observed["claims"] {
    const known = this.#claims.get(cluster);
    if (known?.secret === secret && known.key === key) return known.claims;
    const claims = tokenClaims(kubeconfig);
    this.#claims.set(cluster, { secret, key, claims });
    return claims;
  }

  async #renew(
    account: Action,
    { key: cluster, signal, log }: ActionContext<string>,
  ): Promise<Expectation<Observed> | undefined> {
    const found = this.#find(cluster);
    if (found?.connect === undefined) return undefined;
    const { secret, key, kubeconfig } = found;
    const { client, close } = found.connect(kubeconfig);
    try {
      const { token, expires } = await requestToken(client, account, signal);
      // `legation join` sets this annotation. The operator maintains a Secret without it.
      const isOurs = TOKEN_EXPIRES_ANNOTATION in (secret.metadata.annotations ?? {});
      const annotations: Record<string, string> = isOurs ? { [TOKEN_EXPIRES_ANNOTATION]: expires } : {};
      const data = secretData({ [key]: withToken(kubeconfig, token) });
      // Another replica may have renewed it, or a join have written it, which is an event.
      await ignoring(this.#options.store({ secret, annotations, data }, signal), "Conflict", "NotFound");
      this.#renewedAt.set(cluster, this.#options.clock.now());
      log.info({ member: cluster, expires }, "token renewed");
      const before = tokenClaims(kubeconfig)?.issuedAt;
      return ({ claims }) => claims?.issuedAt !== before;
    } finally {
      await close?.();
    }
  }
}
