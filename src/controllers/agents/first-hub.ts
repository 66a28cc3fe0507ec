import type { Socket } from "node:net";
import { HUB_SECRET, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { type Certificate, issueClientWithKey } from "../../certificates/issue.ts";
import { DAY_MS, renewalReason } from "../../certificates/validity.ts";
import type { Registry } from "../../clusters/registry.ts";
import { isKubeError, WayPending } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Mutex } from "../../runtime/mutex.ts";
import { CONTROLLER_NAME, HubDialer } from "../../tunnel/relay.ts";
import { type HubAuthorities, readAuthorities, trusted } from "./authority.ts";

const LIFETIME_MS = 30 * DAY_MS;
// Another controller takes a lost leader's lease after 15 s, and opens its hub within seconds.
const TAKEOVER_MS = 30_000;

/** The way of other shards to members with agents: through the hub of the first shard's holder, where agents find it. */
export class FirstHub {
  readonly #registry: Pick<Registry, "systemSecret">;
  readonly #clock: Pick<Clock, "now" | "wall">;
  readonly #mutex = new Mutex();
  readonly #hub = new HubDialer({ userAgent: "legation", source: `Secret ${SYSTEM_NAMESPACE}/${HUB_SECRET}` });
  #certificate: Certificate = { cert: "", key: "" };
  /** Since when no connection to the hub was made; ms of the clock. */
  #unreachedSince: number | undefined;

  constructor({ registry, clock }: { readonly registry: Pick<Registry, "systemSecret">; readonly clock: Clock }) {
    this.#registry = registry;
    this.#clock = clock;
  }

  /** Opens a connection to a member. Rejects with the reason why there is none: `WayPending` while the hub may have a new leader. */
  async dial(name: string, signal: AbortSignal): Promise<Socket> {
    await this.#update(signal);
    try {
      const socket = await this.#hub.dial(name, `run \`legation join ${name} --agent\``)(signal);
      this.#unreachedSince = undefined;
      return socket;
    } catch (error) {
      if (!isKubeError(error, "NotSent")) {
        this.#unreachedSince = undefined;
        throw error;
      }
      const now = this.#clock.now();
      this.#unreachedSince ??= now;
      if (now - this.#unreachedSince >= TAKEOVER_MS) throw error;
      throw new WayPending(error.detail, { cause: error });
    }
  }

  stop(): Promise<void> {
    return this.#hub.close();
  }

  async #update(signal: AbortSignal): Promise<void> {
    const authorities = readAuthorities(this.#registry.systemSecret(HUB_SECRET));
    const [address] = authorities?.addresses ?? [];
    if (authorities === undefined || address === undefined) return;
    await this.#mutex.run(signal, async () => {
      const now = this.#clock.wall();
      const isDue = renewalReason(this.#certificate.cert, { now, authority: authorities.current.cert }) !== undefined;
      if (isDue) this.#certificate = await issued(authorities, now);
      this.#hub.update({ address, identity: { ...this.#certificate, ca: trusted(authorities) } });
    });
  }
}

function issued({ current }: HubAuthorities, now: number): Promise<Certificate> {
  const subject = { name: CONTROLLER_NAME, uid: CONTROLLER_NAME };
  return issueClientWithKey(current, subject, { now, lifetimeMs: LIFETIME_MS });
}
