import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { type Secret, type Stored, secretData, secretText } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { secrets } from "../../kube/resources.ts";
import { Backoff } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/logger.ts";
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
