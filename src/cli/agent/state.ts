import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { type Secret, type Stored, secretData, secretText } from "../../api/kubernetes.ts";
import { requestClient } from "../../certificates/issue.ts";
import { renewalReason } from "../../certificates/validity.ts";
import type { ClusterClient, PathUpgrades } from "../../kube/client.ts";
import type { ClusterCredentials, RequestIdentity } from "../../kube/credentials.ts";
import { type Environment, environmentProxy } from "../../kube/environment-proxy.ts";
import { createClusterClient } from "../../kube/http-client.ts";
import { secrets } from "../../kube/resources.ts";
import { Backoff } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { CERTIFICATE_PATH, CLUSTER_HEADER, certificateAnswer } from "../../tunnel/messages.ts";
import { AGENT_KEYS } from "../member/agent-keys.ts";
import { Failure } from "../shared/failure.ts";

const REQUIRED = ["hub", "cluster", "account", "authorities"] as const;
type Texts = Readonly<Partial<Record<keyof typeof AGENT_KEYS, string | undefined>>>;

export type AgentSecret = Texts & Readonly<Record<(typeof REQUIRED)[number], string>>;

// An API server that is restarted is back within this time.
const STORE_AGAIN = { initialMs: 2_000, maxMs: 60_000 };

/** The agent's Secret, which holds all of its state. */
export class AgentState {
  readonly #client: Pick<ClusterClient, "patch">;
  readonly #name: string;
  #current: AgentSecret;
  /** Authorities that are trusted though not stored yet. */
  #trusted: string | undefined;

  private constructor(client: Pick<ClusterClient, "patch">, name: string, current: AgentSecret) {
    this.#client = client;
    this.#name = name;
    this.#current = current;
  }

  /** Rejects with `Failure` when the Secret is missing or lacks a key. */
  static async read(
    client: Pick<ClusterClient, "find" | "patch">,
    name: string,
    signal: AbortSignal,
  ): Promise<AgentState> {
    const found = await client.find(secrets, { namespace: SYSTEM_NAMESPACE, name }, { signal });
    return new AgentState(client, name, parse(found, name));
  }

  get current(): AgentSecret {
    return this.#trusted === undefined ? this.#current : { ...this.#current, authorities: this.#trusted };
  }

  /** Trusts these authorities (PEM) at once, since the hub announces them once a connection, and stores them. Never rejects. */
  async trust(
    authorities: string,
    { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
  ): Promise<void> {
    if (authorities === this.current.authorities) return;
    this.#trusted = authorities;
    const backoff = new Backoff(STORE_AGAIN);
    while (this.#trusted === authorities && !signal.aborted) {
      try {
        await this.store({ authorities }, signal);
        if (this.#trusted === authorities) this.#trusted = undefined;
      } catch (err) {
        if (signal.aborted) return;
        log.warn({ err }, "the hub's authorities were not stored");
        await clock.sleep(backoff.next(), signal).catch(() => {});
      }
    }
  }

  /** Stores keys beside those that are there. Rejects with KubeError. */
  async store(keys: Partial<Record<keyof typeof AGENT_KEYS, string>>, signal: AbortSignal): Promise<void> {
    const texts = Object.entries(keys).map(([field, text]) => [AGENT_KEYS[field as keyof typeof keys], text]);
    const data = secretData(Object.fromEntries(texts));
    const ref = { namespace: SYSTEM_NAMESPACE, name: this.#name };
    const stored = await this.#client.patch(secrets, ref, { type: "merge", body: { data } }, { signal });
    this.#current = parse(stored, this.#name);
    // A certificate comes with the authorities of its time.
    if (keys.cert !== undefined) this.#trusted = undefined;
  }
}

function parse(secret: Stored<Secret> | undefined, name: string): AgentSecret {
  const entries = Object.entries(AGENT_KEYS).map(([field, key]) => [field, secretText(secret, key) || undefined]);
  const texts: Texts = Object.fromEntries(entries);
  const { hub = "", cluster = "", account = "", authorities = "" } = texts;
  const missing = REQUIRED.find((field) => texts[field] === undefined);
  if (secret !== undefined && missing === undefined) return { ...texts, hub, cluster, account, authorities };
  throw new Failure("failure", {
    object: `Secret ${SYSTEM_NAMESPACE}/${name}`,
    problem: missing === undefined || secret === undefined ? "is missing" : `has no key ${AGENT_KEYS[missing]}`,
    remedy: "apply the manifest of `legation join NAME --agent`, which holds it, or name another Secret with --secret",
  });
}

export function hubClient(state: AgentState, env: Environment, userAgent: string): ClusterClient & PathUpgrades {
  const server = `https://${state.current.hub}`;
  const proxy = environmentProxy(server, env);
  const credentials: ClusterCredentials = {
    server,
    source: "the agent's Secret",
    insecureSkipTlsVerify: false,
    ...(proxy === undefined ? {} : { environmentProxyUrl: proxy }),
    identity: () => identityOf(state),
    refresh: () => {},
  };
  return createClusterClient({ cluster: "hub", credentials, userAgent });
}

function identityOf({ current: { cert, key, authorities, token, cluster } }: AgentState): RequestIdentity {
  if (cert !== undefined && key !== undefined) return { ca: authorities, cert, key };
  return {
    ca: authorities,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    headers: { [CLUSTER_HEADER]: cluster },
  };
}

/** Gets the agent's first certificate, or the next one when due. Rejects with KubeError, with the hub's reason for a refusal. */
export async function ensureCertificate(
  state: AgentState,
  hub: ClusterClient,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<void> {
  const { cert, request: asked, requestKey: askedWith } = state.current;
  if (cert !== undefined && renewalReason(cert, { now }) === undefined) return;
  const { request, key } =
    asked === undefined || askedWith === undefined ? await requestClient() : { request: asked, key: askedWith };
  // Stored first: the token is bound to this key, and the answer may be lost.
  if (asked !== request) await state.store({ request, requestKey: key }, signal);
  const body = { request };
  const answer = await hub.raw({ method: "POST", path: CERTIFICATE_PATH, body, signal });
  const { certificate, authorities } = certificateAnswer.parse(answer);
  await state.store({ cert: certificate, key, authorities, request: "", requestKey: "" }, signal);
}
